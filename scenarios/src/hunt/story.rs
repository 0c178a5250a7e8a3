//! The course of a play as lines of text: operations, faults and the subject's writes in order of time.
//!
//! Owns the order, the wording and the length of a course. Does no I/O.

use reports::record::{FaultEvent, FaultRow};

use super::audit::Write;
use super::operations::{Extent, Operations};
use super::trial::Played;

/// Maximum number of lines of a course.
const LINES_MAX: usize = 80;

/// The course of a trial.
pub(crate) fn of_trial(played: &Played, operations: &Operations, extent: Extent) -> Vec<String> {
    let mut lines = planned(operations, extent);
    lines.extend(played.faults.iter().filter_map(fault));
    lines.extend(played.audit.writes.iter().map(write));
    told(lines, &operations.describe(extent))
}

/// The course of a play without disturbances, from the subject's writes.
pub(crate) fn without(writes: &[Write], operations: &Operations, extent: Extent) -> Vec<String> {
    let mut lines = planned(operations, extent);
    lines.extend(writes.iter().map(write));
    told(lines, &operations.describe(extent))
}

/// A line with its time, and its place among lines of the same time: operations, faults, writes.
type Line = (u64, u8, String);

fn told(mut lines: Vec<Line>, what: &str) -> Vec<String> {
    lines.sort_by_key(|(t_ms, place, _)| (*t_ms, *place));
    let more = lines.len().saturating_sub(LINES_MAX);
    let head = format!("Operations: {what}.");
    let shown = lines.into_iter().take(LINES_MAX);
    let shown = shown.map(|(t_ms, _, line)| format!("{:.2} s: {line}", t_ms as f64 / 1000.0));
    let mut all: Vec<String> = std::iter::once(head).chain(shown).collect();
    if more > 0 {
        all.push(format!("… and {more} more lines"));
    }
    all
}

fn planned(operations: &Operations, extent: Extent) -> Vec<Line> {
    let steps = operations.planned(extent).into_iter();
    steps.map(|(t_ms, what)| (t_ms, 0, format!("the hunt: {what}"))).collect()
}

fn fault(row: &FaultRow) -> Option<Line> {
    let detail = row.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let what = match row.event {
        FaultEvent::Started => "begins",
        FaultEvent::Hit => "hits",
        FaultEvent::Ended => "ends",
        FaultEvent::Planned | FaultEvent::CanaryBefore | FaultEvent::CanaryAfter => return None,
    };
    Some((row.t_ms, 1, format!("fault `{}` {what}{detail}", row.name)))
}

fn write(write: &Write) -> Line {
    let plural = write.resource.split('.').next().unwrap_or_default();
    let sub = if write.subresource.is_empty() { String::new() } else { format!("/{}", write.subresource) };
    let fields = if write.fields.is_empty() { String::new() } else { format!(" ({})", write.fields.join(", ")) };
    (write.t_ms, 2, format!("{} {plural}{sub} {}{fields} → {}", write.verb, write.object, write.status))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operations() -> Operations {
        let file = json!({"churn": {"resource": "caches.x/v1", "template": {"kind": "Cache"}}});
        Operations::of(file.as_object().unwrap()).unwrap()
    }

    /// Operations, faults and writes are in the order of their times, and a long course is cut.
    #[test]
    fn a_course_is_in_the_order_of_time() {
        let row = |t_ms, event| FaultRow {
            t_ms,
            id: "0".into(),
            name: "silent-watch".into(),
            event,
            hits: 1,
            ok: None,
            detail: None,
        };
        let faults = vec![row(150, FaultEvent::Started), row(0, FaultEvent::Planned)];
        let write = |t_ms| Write {
            t_ms,
            verb: "create".into(),
            resource: "pods".into(),
            object: "n/a".into(),
            status: 201,
            ..Write::default()
        };
        let mut played = Played { faults, ..Played::default() };
        played.audit.writes = vec![write(140), write(160)];
        let extent = Extent { changes: 0, returns: false, goes: false, scaled: false, late: false, ..Extent::ALL };
        let lines = of_trial(&played, &operations(), extent);
        let wanted = [
            "Operations: one object stays.",
            "0.10 s: the hunt: create hunt-a",
            "0.14 s: create pods n/a → 201",
            "0.15 s: fault `silent-watch` begins",
            "0.16 s: create pods n/a → 201",
        ];
        assert_eq!(lines, wanted);
        let many: Vec<Write> = (0..200).map(write).collect();
        let cut = without(&many, &operations(), extent);
        assert_eq!((cut.len(), cut[LINES_MAX + 1].as_str()), (LINES_MAX + 2, "… and 121 more lines"));
    }
}
