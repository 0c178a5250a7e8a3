//! The revision since which each custom resource is served in its current form.
//!
//! Owns the effect of a changed definition on the watches of its custom resource. After a change of a definition, a
//! real server makes a new cache. Watches on the old cache end, and a watch that resumes from an older revision gets
//! 410. Clients therefore list again and see every object in the current form ("Versions in
//! `CustomResourceDefinitions`"; `crdHandler` of apiextensions-apiserver).

use std::collections::HashMap;

use mock_store::ResourceId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Serving(Mutex<HashMap<ResourceId, Since>>);

#[derive(Debug, Default)]
struct Since {
    /// The revision at which the definition last changed.
    revision: u64,
    /// The token that is cancelled when the definition changes the next time.
    ends: CancellationToken,
}

impl Serving {
    /// The token that is cancelled to end a watch that is opened now.
    pub fn ends(&self, resource: ResourceId) -> CancellationToken {
        self.0.lock().entry(resource).or_default().ends.clone()
    }

    /// The oldest revision from which a watch can resume.
    pub fn since(&self, resource: ResourceId) -> u64 {
        self.0.lock().get(&resource).map_or(0, |since| since.revision)
    }

    /// Records that the commit with this revision changed the definition.
    pub fn changed(&self, resource: ResourceId, revision: u64) {
        let before = self.0.lock().insert(resource, Since { revision, ends: CancellationToken::new() });
        if let Some(before) = before {
            before.ends.cancel();
        }
    }

    /// Records that the definition was deleted, which ends all watches on its objects.
    pub fn gone(&self, resource: ResourceId) {
        if let Some(before) = self.0.lock().remove(&resource) {
            before.ends.cancel();
        }
    }

    /// Records that the store was restored to revision `to`.
    pub fn rewound(&self, to: u64) {
        for since in self.0.lock().values_mut() {
            since.revision = since.revision.min(to);
        }
    }
}
