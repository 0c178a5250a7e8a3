//! The revision since which each custom resource is served in its current form.
//!
//! Owns the fate of watches on a custom resource whose definition changes. A real server makes a new cache for it.
//! Watches on the old cache end, and a watch that resumes from before the new one gets 410. Its client then lists again
//! and sees every object in the current form ("Versions in `CustomResourceDefinitions`"; `crdHandler` of
//! apiextensions-apiserver).

use std::collections::HashMap;

use mock_store::ResourceId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Serving(Mutex<HashMap<ResourceId, Since>>);

#[derive(Debug, Default)]
struct Since {
    /// The revision of the definition's last change.
    revision: u64,
    /// Cancelled by the next change.
    ends: CancellationToken,
}

impl Serving {
    /// The token that ends a watch opened now.
    pub fn ends(&self, resource: ResourceId) -> CancellationToken {
        self.0.lock().entry(resource).or_default().ends.clone()
    }

    /// The first revision from which a watch can resume.
    pub fn since(&self, resource: ResourceId) -> u64 {
        self.0.lock().get(&resource).map_or(0, |since| since.revision)
    }

    /// Notes that the commit with this revision changed the definition.
    pub fn changed(&self, resource: ResourceId, revision: u64) {
        let before = self.0.lock().insert(resource, Since { revision, ends: CancellationToken::new() });
        if let Some(before) = before {
            before.ends.cancel();
        }
    }

    /// Notes that the definition is gone, which ends all watches of its objects.
    pub fn gone(&self, resource: ResourceId) {
        if let Some(before) = self.0.lock().remove(&resource) {
            before.ends.cancel();
        }
    }

    /// Notes that the store has no revision after `to` any more.
    pub fn rewound(&self, to: u64) {
        for since in self.0.lock().values_mut() {
            since.revision = since.revision.min(to);
        }
    }
}
