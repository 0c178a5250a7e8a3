//! Since when custom resources are served as they are now.
//!
//! Owns what becomes of the watches on a custom resource whose definition changes. A real server makes a new cache for it: watches on the old one
//! end, and a watch that resumes from before the new one gets 410, so that its client lists again and sees every object in
//! the form that it has now ("Versions in `CustomResourceDefinitions`"; `crdHandler` of apiextensions-apiserver).

use std::collections::HashMap;

use mock_store::ResourceId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// All custom resources, as they are served.
#[derive(Debug, Default)]
pub(crate) struct Serving(Mutex<HashMap<ResourceId, Since>>);

#[derive(Debug, Default)]
struct Since {
    /// The revision of the definition's last change.
    revision: u64,
    /// The next change ends it.
    ends: CancellationToken,
}

impl Serving {
    /// What ends a watch that is opened now.
    pub fn ends(&self, resource: ResourceId) -> CancellationToken {
        self.0.lock().entry(resource).or_default().ends.clone()
    }

    /// The revision from which on a watch can resume.
    pub fn since(&self, resource: ResourceId) -> u64 {
        self.0.lock().get(&resource).map_or(0, |since| since.revision)
    }

    /// The definition was changed by the commit with this revision.
    pub fn changed(&self, resource: ResourceId, revision: u64) {
        let before = self.0.lock().insert(resource, Since { revision, ends: CancellationToken::new() });
        if let Some(before) = before {
            before.ends.cancel();
        }
    }

    /// The definition is gone, and with it whatever was served.
    pub fn gone(&self, resource: ResourceId) {
        if let Some(before) = self.0.lock().remove(&resource) {
            before.ends.cancel();
        }
    }

    /// The store has no revision after `to` any more.
    pub fn rewound(&self, to: u64) {
        for since in self.0.lock().values_mut() {
            since.revision = since.revision.min(to);
        }
    }
}
