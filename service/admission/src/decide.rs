//! The decision of a review: combines the outcomes of all images into one answer.
//!
//! Images are decided in the order of their names, so equal reviews give equal bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::patch;
use super::policy::{BUILT_IN, RuleName};
use super::review::{Decision, Notes};
use super::site::Site;
use super::text::{Escaped, printable};
use crate::config::Action;
use crate::validator::Approval;
use service_registry::verdicts::{Class, Failure};

/// Maximum number of bytes of an image reference in messages and annotations. No valid image reference by tag is
/// longer.
const IMAGE_BYTES_MAX: usize = 400;
/// Maximum number of bytes of a failure's cause in a message.
const CAUSE_BYTES_MAX: usize = 600;
/// Longest warning that kubectl shows whole (Kubernetes asks for at most 120 characters).
const WARNING_CHARS_MAX: usize = 120;
/// Maximum number of warnings in one answer: the API server passes only 4 KiB of warnings to the user.
const WARNINGS_MAX: usize = 16;
/// Number of bytes of an image's entry in an annotation, without the image text: JSON, a digest and a rule.
const ENTRY_BYTES: usize = 160;
/// Maximum number of bytes of a signer or of its evidence in an annotation.
const PROOF_BYTES_MAX: usize = 300;
/// Maximum number of images in one annotation of the audit log; further images are only counted.
const ANNOTATED_MAX: usize = 32;

/// The kind of webhook that the API server calls: mutating or validating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// The webhook that may change the object.
    Mutating,
    /// The webhook that can only refuse objects: an image that the mutating webhook would pin must already be pinned.
    Validating,
}

/// The result for an image that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub digest: Arc<str>,
    /// Whether the image is pinned to the digest.
    pub pin: bool,
    /// The signers of the image, if signatures were verified.
    pub approval: Option<Arc<Approval>>,
}

impl Found {
    /// The result for an image that is pinned without signature checks.
    pub fn pinned(digest: Arc<str>) -> Self {
        Self { digest, pin: true, approval: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The result for the image, or why it may not run.
    pub result: Result<Found, Failure>,
    pub rule: RuleName,
    pub course: Course,
    /// Whether the rule of the image demands signatures in addition to a digest.
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// The image is pinned to its digest; if no digest is found, this action follows.
    Enforce(Action),
    Detect,
}

/// The outcome of each distinct image.
pub type Outcomes<'s> = BTreeMap<&'s str, Outcome>;

/// The entry of an image in an annotation of the audit log.
struct Entry<'a> {
    image: Cow<'a, str>,
    digest: Option<&'a str>,
    class: Option<&'static str>,
    rule: RuleName,
    approval: Option<&'a Approval>,
}

impl Entry<'_> {
    fn write(&self, out: &mut Escaped) {
        out.push_escaped(r#"{\"image\":"#);
        out.push_quoted(&self.image);
        for (key, value) in [(r#",\"digest\":"#, self.digest), (r#",\"class\":"#, self.class)] {
            if let Some(value) = value {
                out.push_escaped(key);
                out.push_quoted(value);
            }
        }
        out.push_escaped(r#",\"rule\":"#);
        // The most frequent name is not formatted each time.
        match self.rule {
            RuleName::BuiltIn => out.push_quoted(BUILT_IN),
            rule => out.push_quoted(&rule.to_string()),
        }
        if let Some(approval) = self.approval {
            for (key, evidence) in [(r#",\"signers\":["#, false), (r#",\"evidence\":["#, true)] {
                out.push_escaped(key);
                for (index, signer) in approval.signers.iter().enumerate() {
                    out.push_escaped(if index == 0 { "" } else { "," });
                    let text = if evidence { &signer.evidence } else { &signer.name };
                    out.push_quoted(&printable(text, PROOF_BYTES_MAX));
                }
                out.push_escaped("]");
            }
        }
        out.push_escaped("}");
    }
}

/// Combines the outcomes of all images: allow the object with a patch, deny it, or let the webhook's `failurePolicy`
/// decide. The strongest action of all failed images decides (deny before error), and the message names *all* failed
/// images.
pub fn decide(hook: Hook, sites: &[Site], outcomes: &Outcomes<'_>) -> Decision {
    let failed: Vec<_> =
        outcomes.iter().filter_map(|(image, outcome)| Some((image, outcome, failing(outcome)?))).collect();
    let unpinned: Vec<_> = match hook {
        Hook::Mutating => Vec::new(),
        Hook::Validating => outcomes.iter().filter_map(|(image, outcome)| Some((image, found(outcome)?))).collect(),
    };
    let acts = |wanted: Action| failed.iter().any(|(_, _, (_, action))| *action == wanted);
    let message = || {
        let mut parts = Vec::new();
        if !failed.is_empty() {
            let lines = failed.iter().map(|(image, _, (failure, _))| {
                format!("{}: {}: {}", shown(image), failure.class, printable(&failure.cause, CAUSE_BYTES_MAX))
            });
            let (one, many) = if failed.iter().any(|(_, outcome, _)| outcome.signed) {
                ("1 image may not run", "images may not run")
            } else {
                ("1 image has no digest", "images have no digest")
            };
            parts.push(listing(failed.len(), one, many, lines));
        }
        if !unpinned.is_empty() {
            let lines = unpinned.iter().map(|(image, digest)| format!("{0}: write {0}@{digest}", shown(image)));
            parts.push(listing(unpinned.len(), "1 image is not pinned", "images are not pinned", lines));
        }
        parts.join(". ")
    };
    if acts(Action::Deny) || !unpinned.is_empty() {
        let mut notes = Notes::default();
        let denied = failed.iter().map(|(image, outcome, (failure, _))| entry(image, outcome, Some(failure.class)));
        let unpinned = unpinned.iter().filter_map(|(image, _)| Some(entry(image, outcomes.get(*image)?, None)));
        annotate(&mut notes, "denied", denied.chain(unpinned));
        return Decision::Deny { message: message(), notes };
    }
    if acts(Action::Error) {
        return Decision::Error { message: message() };
    }
    let digest = |image: &str| outcomes.get(image).and_then(found);
    let patch = match hook {
        Hook::Mutating => patch::replace(sites, digest),
        Hook::Validating => None,
    };
    Decision::Allow { notes: notes(hook, sites, outcomes), patch }
}

/// The failure classes of images that are admitted although they failed.
pub fn let_in(outcomes: &Outcomes<'_>) -> impl Iterator<Item = Class> {
    outcomes.values().filter_map(|outcome| outcome.result.as_ref().err()).map(|failure| failure.class)
}

/// The failure and its action; `None` if the image did not fail or its failure is only reported.
fn failing(outcome: &Outcome) -> Option<(&Failure, Action)> {
    match outcome.course {
        Course::Enforce(action) => Some((outcome.result.as_ref().err()?, action)),
        Course::Detect => None,
    }
}

fn found(outcome: &Outcome) -> Option<&str> {
    let found = outcome.result.as_ref().ok().filter(|found| found.pin)?;
    matches!(outcome.course, Course::Enforce(_)).then_some(&*found.digest)
}

fn notes(hook: Hook, sites: &[Site], outcomes: &Outcomes<'_>) -> Notes {
    let mut notes = Notes::default();
    let (mut pinned, mut verified, mut let_in, mut detected) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (image, outcome) in outcomes {
        let warning = match (&outcome.result, outcome.course) {
            (Ok(found), Course::Enforce(_)) => {
                if found.pin && sites.iter().any(|site| site.mutable && site.image == *image) {
                    pinned.push(entry(image, outcome, None));
                } else if found.approval.is_some() {
                    verified.push(entry(image, outcome, None));
                }
                continue;
            }
            (Ok(found), Course::Detect) => {
                detected.push(entry(image, outcome, None));
                if !found.pin {
                    continue;
                }
                format!(" is not pinned; detected by {}", outcome.rule)
            }
            (Err(failure), Course::Detect) => {
                detected.push(entry(image, outcome, Some(failure.class)));
                format!(" {} ({}); detected by {}", fails(outcome), failure.class, outcome.rule)
            }
            (Err(failure), Course::Enforce(_)) => {
                let_in.push(entry(image, outcome, Some(failure.class)));
                format!(" {} ({}); let in by {}", fails(outcome), failure.class, outcome.rule)
            }
        };
        if notes.warnings.len() < WARNINGS_MAX {
            // Every part of the end is ours and ASCII, so the rest of the line is for the image.
            let image = printable(image, WARNING_CHARS_MAX.saturating_sub(warning.len()));
            notes.warnings.push(image.into_owned() + &warning);
        }
    }
    if hook == Hook::Mutating {
        annotate(&mut notes, "pinned", pinned.into_iter());
    }
    annotate(&mut notes, "verified", verified.into_iter());
    annotate(&mut notes, "let-in", let_in.into_iter());
    annotate(&mut notes, "detected", detected.into_iter());
    notes
}

fn entry<'a>(image: &'a str, outcome: &'a Outcome, class: Option<Class>) -> Entry<'a> {
    let found = outcome.result.as_ref().ok();
    Entry {
        image: shown(image),
        digest: found.map(|found| &*found.digest),
        class: class.map(Class::name),
        rule: outcome.rule,
        approval: found.and_then(|found| found.approval.as_deref()),
    }
}

/// The part of a message that says how the image failed.
fn fails(outcome: &Outcome) -> &'static str {
    if outcome.signed { "may not run" } else { "has no digest" }
}

/// Formats a list of images for an annotation of the audit log.
pub fn list(images: &[&str]) -> Escaped {
    let mut text = Escaped::default();
    for (index, image) in images.iter().take(ANNOTATED_MAX).enumerate() {
        text.push_escaped(if index == 0 { "[" } else { "," });
        text.push_quoted(&shown(image));
    }
    text.push_escaped("]");
    if let more @ 1.. = images.len().saturating_sub(ANNOTATED_MAX) {
        text.push_escaped(&format!(" and {more} more"));
    }
    text
}

fn annotate<'a>(notes: &mut Notes, key: &'static str, entries: impl Iterator<Item = Entry<'a>>) {
    let all: Vec<_> = entries.collect();
    if all.is_empty() {
        return;
    }
    let first = &all[..all.len().min(ANNOTATED_MAX)];
    let mut text = Escaped::with_capacity(first.iter().map(|entry| entry.image.len() + ENTRY_BYTES).sum());
    for (index, entry) in first.iter().enumerate() {
        text.push_escaped(if index == 0 { "[" } else { "," });
        entry.write(&mut text);
    }
    text.push_escaped("]");
    if let more @ 1.. = all.len() - first.len() {
        text.push_escaped(&format!(" and {more} more"));
    }
    notes.annotations.insert(key, text);
}

fn shown(image: &str) -> Cow<'_, str> {
    printable(image, IMAGE_BYTES_MAX)
}

fn listing(count: usize, one: &str, many: &str, lines: impl Iterator<Item = String>) -> String {
    let lines = lines.collect::<Vec<_>>().join("; ");
    if count == 1 { format!("{one}: {lines}") } else { format!("{count} {many}: {lines}") }
}

#[cfg(test)]
mod tests;
