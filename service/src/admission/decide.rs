//! The decision: what is known about each image, turned into one answer.
//!
//! Pure and deterministic: images are judged in the order of their names, so equal input gives byte-equal answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::patch;
use super::review::Decision;
use super::walk::Site;
use crate::verdicts::Failure;

/// What became of each distinct image.
pub type Outcomes = BTreeMap<String, Result<Arc<str>, Failure>>;

/// Allows with the patch, or denies naming *all* images that failed.
pub fn decide(sites: &[Site], outcomes: &Outcomes) -> Decision {
    let failed: Vec<_> = outcomes
        .iter()
        .filter_map(|(image, outcome)| outcome.as_ref().err().map(|failure| format!("{image}: {failure}")))
        .collect();
    if !failed.is_empty() {
        let count = match failed.len() {
            1 => "1 image has no digest".to_owned(),
            many => format!("{many} images have no digest"),
        };
        return Decision::Deny { message: format!("{count}: {}", failed.join("; ")) };
    }
    let digest = |image: &str| outcomes.get(image)?.as_deref().ok();
    Decision::Allow { patch: patch::replace(sites, digest), reason: None }
}
