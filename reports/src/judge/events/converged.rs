//! `events.converged`: after the drain, the subject's view equals a fresh list of the control plane.
//!
//! A subject can break this budget even if it reported every event in time, because it can report one state and keep
//! another.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{Difference, DifferenceKind, EndState, EventCounts, Record};
use crate::words::{counted, millis};

pub(super) struct Converged;

impl Rule for Converged {
    const EXAMPLE: Option<&'static str> = Some("true");
    const WORD: Option<Word> = Some(Word::Diverged);

    fn judge(record: &Record, _: &EventCounts, limit: &bool, findings: &mut Findings) {
        if !*limit {
            return;
        }
        let (verdict, observed, text) = judge(record);
        findings.push(Name::of::<Self>(), verdict, observed, "equal", text);
    }
}

fn judge(record: &Record) -> (Verdict, String, String) {
    let Some(state) = &record.end_state else {
        let text = "the run did not reach the end of its drain, so the end state was not read.";
        return (Verdict::Inconclusive, "not read".to_owned(), text.to_owned());
    };
    let objects = counted(state.listed, "object");
    if let Some(left) = state.left.as_ref().filter(|left| left.objects > 0) {
        let objects = counted(left.objects, "object");
        let text = format!(
            "all objects were deleted before the drain, but {objects} of them {} still there (first: {}).",
            if left.objects == 1 { "is" } else { "are" },
            left.examples.join(", ")
        );
        return (Verdict::Fail, objects, text);
    }
    let source = state.source.words();
    match state.agrees {
        Some(true) => {
            let text = format!("by {source}, the subject's state equals a fresh list of {objects}{}.", times(state));
            (Verdict::Pass, "equal".to_owned(), text)
        }
        Some(false) => {
            let text = format!(
                "by {source}, the subject's state differs from a fresh list of {objects}{}: {}{}.",
                times(state),
                kinds(state),
                first_of(state)
            );
            (Verdict::Fail, kinds(state), text)
        }
        None => {
            let why = state.unread.as_deref().unwrap_or("nobody knows why");
            (Verdict::Inconclusive, "not read".to_owned(), format!("the end state could not be compared: {why}."))
        }
    }
}

/// A text with the times at which the list of the control plane and the subject's view were read.
fn times(state: &EndState) -> String {
    format!(" (listed at {}, its state read at {})", millis(state.listed_ms), millis(state.read_ms))
}

fn kinds(state: &EndState) -> String {
    let all = state.differences;
    let kinds = [
        (all.gone, "that is gone", "that are gone"),
        (all.unknown, "unknown to it", "unknown to it"),
        (all.behind, "in another version", "in another version"),
        (all.replaced, "replaced under its name", "replaced under their names"),
    ];
    let said: Vec<String> = kinds
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format!("{} {}", counted(number, "object"), if number == 1 { one } else { many }))
        .collect();
    match (said.is_empty(), state.believed) {
        (false, _) => said.join(", "),
        (true, Some(believed)) => format!("it counts {} and has another checksum", counted(believed, "object")),
        (true, None) => "its children are not as they should be".to_owned(),
    }
}

fn place(one: &Difference) -> String {
    if one.namespace.is_empty() { one.name.clone() } else { format!("{}/{}", one.namespace, one.name) }
}

fn first_of(state: &EndState) -> String {
    let Some(first) = state.examples.first() else { return String::new() };
    let version = |revision: &Option<String>| revision.clone().unwrap_or_else(|| "an older one".to_owned());
    let how = match first.kind {
        DifferenceKind::Gone => {
            format!("it knows version {}, but the object is gone", version(&first.believed_revision))
        }
        DifferenceKind::Unknown => {
            format!("it does not know the object, which has version {}", version(&first.listed_revision))
        }
        DifferenceKind::Behind | DifferenceKind::Replaced => format!(
            "it knows version {}, but the object has version {}",
            version(&first.believed_revision),
            version(&first.listed_revision)
        ),
    };
    format!(" (first: {}: {how})", place(first))
}
