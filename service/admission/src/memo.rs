//! Recent treatments by image text: the same images come again and again.
//!
//! A policy gives the same answer for the same text as long as it lives, so entries are never stale. Their number and
//! size are limited.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::policy::{Policy, Treatment};

/// Texts remembered; a cluster has some hundred images in use. Beyond this number, all are forgotten.
const TEXTS_MAX: usize = 1024;
/// The longest text that is remembered: no valid reference is longer.
const TEXT_BYTES_MAX: usize = 520;

/// A policy and its recent answers.
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

    /// The treatment of `image`, as [`Policy::treatment`].
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
