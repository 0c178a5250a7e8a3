//! A cache of the policy's treatment of each image text, because reviews contain the same images again and again.
//!
//! One policy always gives the same treatment for a text, so entries never become stale. The number and size of cached
//! entries are limited.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::policy::{Policy, Treatment};

/// Maximum number of image texts in the cache; a cluster uses some hundred images. If more texts are added, the cache
/// is emptied.
const TEXTS_MAX: usize = 1024;
/// Longest image text that is cached, in bytes; no valid reference is longer.
const TEXT_BYTES_MAX: usize = 520;

/// A policy with a cache of its treatments of images.
#[derive(Debug)]
pub struct Memo {
    policy: Arc<Policy>,
    said: Mutex<HashMap<String, Arc<Treatment>>>,
}

impl Memo {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { policy, said: Mutex::default() }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The treatment of `image`, equal to that of [`Policy::treatment`].
    pub fn treatment(&self, image: &str) -> Arc<Treatment> {
        if let Some(treatment) = self.said.lock().get(image) {
            return Arc::clone(treatment);
        }
        let treatment = Arc::new(self.policy.treatment(image));
        if image.len() <= TEXT_BYTES_MAX {
            let mut said = self.said.lock();
            if said.len() >= TEXTS_MAX {
                said.clear();
            }
            said.insert(image.to_owned(), Arc::clone(&treatment));
        }
        treatment
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn says_what_the_policy_says_and_stays_small() {
        let text = "{admission: {listen: 127.0.0.1:0, certificate: c, key: k}, policy: {rules: [{pattern: 'b*', mode: skip}]}}";
        let config = Config::parse(text, Path::new("c.yaml")).unwrap();
        let policy = Arc::new(Policy::new(&config));
        let memo = Memo::new(Arc::clone(&policy));
        let long = "x".repeat(9000);
        for image in ["a:1", "b.io/c:1", "a@", &long, "a:1", &long] {
            assert_eq!(*memo.treatment(image), policy.treatment(image), "{image}");
        }
        assert_eq!(memo.said.lock().len(), 3, "what is too long is not kept");
        for n in 0..3 * TEXTS_MAX {
            memo.treatment(&format!("a:{n}"));
            assert!(memo.said.lock().len() <= TEXTS_MAX);
        }
    }
}
