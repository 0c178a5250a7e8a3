//! `events.restored`: at the end each object has the children that it should have, also those that somebody deleted or edited.

use super::Events;
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Verdict, Word};
use crate::record::{ChildProblem, ChildrenState, EventCounts, FaultEvent, Record};
use crate::words::{count, counted};

/// The name of the harness's own deed among the faults.
pub const DRIFT: &str = "children-drift";
/// Problems that a sentence names.
const NAMED_MAX: usize = 3;

/// `events.restored`.
pub(super) struct Restored;

impl Rule for Restored {
    type Section = Events;
    type Limit = bool;
    const KEY: &'static str = "restored";
    const DOC: &'static str = "`true`: after the drain each object has its children as `subject.children` says: none too few, none too many, none \
        of an older version, none that is still as `drift` edited it, and none whose parent is gone.";
    const WORD: Option<Word> = Some(Word::Drifted);

    fn judge(record: &Record, _: &EventCounts, limit: &bool, findings: &mut Findings) {
        if !*limit {
            return;
        }
        let (verdict, observed, text) = judge(record);
        findings.push(Name::of::<Self>(), verdict, observed, "as they should be", text);
    }
}

fn judge(record: &Record) -> (Verdict, String, String) {
    let unread = |why: &str| (Verdict::Inconclusive, "not read".to_owned(), why.to_owned());
    let Some(state) = &record.end_state else {
        return unread("the run did not come to the end of its drain, so the children were not read.");
    };
    let Some(children) = &state.children else { return unread("the children were not read.") };
    if let Some(why) = &children.unread {
        return unread(&format!("the children could not be compared: {why}."));
    }
    let drifted = drifted(record);
    if children.problems() > 0 {
        let text = format!(
            "of {} of {}, {}{}; {}.",
            counted(children.parents, "object"),
            state.resource,
            kinds(children),
            deeds(drifted),
            named(children)
        );
        return (Verdict::Fail, kinds(children), text);
    }
    if children.wanted == 0 && state.left.is_none() {
        return unread("no object should have had a child at the end, so nothing was compared.");
    }
    let text = format!(
        "each of {} has its children ({} {}){}.",
        counted(children.parents, "object"),
        count(children.found),
        children.resource,
        deeds(drifted)
    );
    (Verdict::Pass, "as they should be".to_owned(), text)
}

/// Children that the harness deleted or edited.
fn drifted(record: &Record) -> u64 {
    let deeds = record.faults.iter().filter(|row| row.name == DRIFT && row.event == FaultEvent::Hit);
    deeds.map(|row| row.hits).max().unwrap_or(0)
}

fn deeds(drifted: u64) -> String {
    match drifted {
        0 => String::new(),
        1 => ", after the harness deleted or edited one child".to_owned(),
        more => format!(", after the harness deleted or edited {} children", count(more)),
    }
}

fn kinds(children: &ChildrenState) -> String {
    let kinds = [
        (children.lacking, "has too few children", "have too few children"),
        (children.surplus, "has too many children", "have too many children"),
        (children.stale, "child is of an older version", "children are of an older version"),
        (children.edited, "child is still as it was edited", "children are still as they were edited"),
        (children.orphans, "child has no parent any more", "children have no parent any more"),
    ];
    let said: Vec<String> = kinds
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format!("{} {}", count(number), if number == 1 { one } else { many }))
        .collect();
    said.join(", ")
}

fn named(children: &ChildrenState) -> String {
    let one = |problem: &ChildProblem| {
        let child = problem.child.as_ref().map(|child| format!(", child {child}")).unwrap_or_default();
        format!("{}{child}: {} instead of {}", problem.object, problem.found, problem.wanted)
    };
    let named: Vec<String> = children.examples.iter().take(NAMED_MAX).map(one).collect();
    format!("first: {}", named.join("; "))
}
