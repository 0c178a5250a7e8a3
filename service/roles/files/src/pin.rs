//! Pins the images in manifest files, for users and pre-commit hooks.

use service_core::role::Review;
use tokio::task::yield_now;

use crate::edit;
use crate::objects::{Finding, Pin, Severity, Wanted, judge, objects};
use crate::yaml::{Error, documents};

#[derive(Debug)]
pub struct Pinned {
    /// The manifest text, in which every image that can be pinned is pinned.
    pub text: String,
    pub findings: Vec<Finding>,
    pub pins: Vec<Pin>,
}

impl Pinned {
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// Pins the images of all objects in `text`; YAML documents that are no objects do not change.
pub async fn pin(review: &dyn Review, text: &str, wanted: &Wanted) -> Result<Pinned, Error> {
    let (mut edits, mut findings, mut pins) = (Vec::new(), Vec::new(), Vec::new());
    for document in documents(text)? {
        for object in objects(&document) {
            let judged = judge(review, (text, &document), &object, wanted).await?;
            edits.extend(judged.edits);
            findings.extend(judged.findings);
            pins.extend(judged.pins);
        }
        yield_now().await;
    }
    Ok(Pinned { text: edit::apply(text, edits), findings, pins })
}

/// The lines that differ, in the format of `diff -u`.
pub fn diff(name: &str, before: &str, after: &str) -> String {
    let lines = similar::TextDiff::from_lines(before, after);
    lines.unified_diff().context_radius(2).header(name, name).to_string()
}
