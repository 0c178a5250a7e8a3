//! `events.restored`: at the end of the run each object has its expected children, including those that the harness
//! deleted or edited.

use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{ChildProblem, ChildrenState, Drifted, EventCounts, Record};
use crate::words::{count, counted};

/// The name that the harness's own deletions and edits of children have in `faults.jsonl`.
pub const DRIFT: &str = "children-drift";
const NAMED_MAX: usize = 3;

pub(super) struct Restored;

impl Rule for Restored {
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
        return unread("the run did not reach the end of its drain, so the children were not read.");
    };
    let all: Vec<&ChildrenState> = state.all_children().collect();
    if all.is_empty() {
        return unread("the children were not read.");
    }
    let wrong: Vec<&&ChildrenState> =
        all.iter().filter(|children| children.unread.is_none() && children.problems() > 0).collect();
    let unseen = all.iter().find_map(|children| children.unread.as_ref());
    // If one of several kinds was read and is wrong, that decides.
    if let (Some(why), true) = (unseen, wrong.is_empty()) {
        return unread(&format!("the children could not be compared: {why}."));
    }
    let drifted = drifted(record);
    let first = state.resource.split(" and ").next().unwrap_or_default();
    if !wrong.is_empty() {
        // The kind is named only if there are several.
        let of = |children: &ChildrenState| {
            if all.len() > 1 { format!(" ({})", children.resource) } else { String::new() }
        };
        let said: Vec<String> = wrong
            .iter()
            .map(|one| format!("of {} of {first}, {}{}", counted(one.parents, "object"), kinds(one), of(one)))
            .collect();
        let observed: Vec<String> = wrong.iter().map(|one| format!("{}{}", kinds(one), of(one))).collect();
        let named: Vec<String> = wrong.iter().map(|children| named(children)).collect();
        let text = format!("{}{}; {}.", said.join("; "), deeds(drifted), named.join("; "));
        return (Verdict::Fail, observed.join(", "), text);
    }
    if all.iter().all(|children| children.wanted == 0) && state.left.is_none() {
        return unread("no object should have had a child at the end, so nothing was compared.");
    }
    let has: Vec<String> = all
        .iter()
        .map(|children| format!("{} of {} {}", count(children.found), count(children.wanted), children.resource))
        .collect();
    let has = format!(
        "{} of {first} should have children and have them: {}",
        counted(all[0].parents, "object"),
        has.join(", ")
    );
    let proofs = record.objects.as_ref().and_then(|objects| objects.drift);
    match proofs.filter(|drift| drift.children > 0) {
        Some(drift) if drift.proofs() == 0 => (Verdict::Inconclusive, "not proven".to_owned(), unproved(&has, drift)),
        Some(drift) => {
            (Verdict::Pass, "as they should be".to_owned(), format!("{has}{}; {}.", deeds(drifted), proved(drift)))
        }
        None => (Verdict::Pass, "as they should be".to_owned(), format!("{has}{}.", deeds(drifted))),
    }
}

/// A text about drifted children (deleted or edited by the harness) whose parents were written again. Such children
/// prove nothing, because after the write of a parent the subject looks at the children as well.
fn unproved(has: &str, drift: Drifted) -> String {
    format!(
        "{has}. This does not prove that the subject watches them: all {} children that the harness deleted or edited belong to objects \
         that were written or deleted before the children were right again. Let some drift after the load, with the fault `{{name: children-drift, \
         afterLoad: 1s, share: 0.3}}`.",
        count(drift.children)
    )
}

fn proved(drift: Drifted) -> String {
    format!("{} of them without any write to their parent", count(drift.proofs()))
}

/// The number of children that the harness deleted or edited.
fn drifted(record: &Record) -> u64 {
    // Of many hits of a fault only some have a row; the last row has their number.
    let mut hits = std::collections::BTreeMap::<&str, u64>::new();
    for row in record.faults.iter().filter(|row| row.name == DRIFT) {
        let most = hits.entry(&row.id).or_default();
        *most = (*most).max(row.hits);
    }
    hits.values().sum()
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
        (children.stale, "child has an old version", "children have an old version"),
        (children.edited, "child still has the harness's edit", "children still have the harness's edit"),
        (children.orphans, "child has no parent", "children have no parent"),
    ];
    let said: Vec<String> = kinds
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format!("{} {}", count(number), if number == 1 { one } else { many }))
        .collect();
    // Missing children come first, if there are any.
    let unowned = match (children.unowned, children.lacking) {
        (0, _) | (_, 0) => return said.join(", "),
        (1, 1) => " (it exists, but without an owner reference)".to_owned(),
        (unowned, lacking) if unowned >= lacking => " (they exist, but without an owner reference)".to_owned(),
        (unowned, _) => format!(" (those of {} exist, but without an owner reference)", count(unowned)),
    };
    let (lacking, rest) = said.split_at(1);
    let lacking = lacking.iter().map(|lacking| format!("{lacking}{unowned}"));
    lacking.chain(rest.iter().cloned()).collect::<Vec<_>>().join(", ")
}

fn named(children: &ChildrenState) -> String {
    let one = |problem: &ChildProblem| {
        let child = problem.child.as_ref().map(|child| format!(", child {child}")).unwrap_or_default();
        format!("{}{child}: {} instead of {}", problem.object, problem.found, problem.wanted)
    };
    let named: Vec<String> = children.examples.iter().take(NAMED_MAX).map(one).collect();
    format!("first: {}", named.join("; "))
}
