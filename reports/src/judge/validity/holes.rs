//! Gaps in the harness's records of the subject's requests, and of commits and audit log of a real control plane.
//!
//! Owns the rules by which such a gap makes budgets undecided. A broken upper limit remains broken, whatever happened
//! in a gap; a met limit may have been broken in the gap. The judges of children, writes and finalizers report gaps in
//! their own watches.

use crate::judge::doubt::{self, Doubts, Unmet, condition};
use crate::judge::rule::Name;
use crate::judge::{Finding, Findings, Verdict, requests};
use crate::ledger::Outcome;
use crate::record::{Audited, Hole, Record};
use crate::words::{count, counted, millis};

use super::stalls;

const REQUESTS: Name = condition("requests");
const COMMITS: Name = condition("commits");
const AUDIT_LOG: Name = condition("auditLog");

pub(super) fn judge(record: &Record, findings: &mut Findings) {
    judge_requests(record, findings);
    let holes = record.end.as_ref().map_or(&[][..], |end| &end.holes);
    judge_holes(record, holes, Audited::Commits, findings);
    judge_holes(record, holes, Audited::Requests, findings);
}

/// Judges requests that have no row: the harness fell behind, or the subject sent more requests than the record has
/// rows for.
fn judge_requests(record: &Record, findings: &mut Findings) {
    let Some(from_ms) = record.requests.complete_until_ms() else { return };
    let lost = record.requests.lost();
    let because = if let Some((from_ms, to_ms, number)) = lost {
        format!(
            "the harness fell behind the subject's requests, and missed {} of them between {} and {}",
            count(number),
            millis(from_ms),
            millis(to_ms)
        )
    } else {
        let number: u64 = record.requests.summaries.iter().map(|summary| summary.requests).sum();
        format!("{} of the subject from {} on are only counted", counted(number, "request"), millis(from_ms))
    };
    let open = |name: Name, finding: &Finding| is_open(record, name, finding);
    let text = format!("{because}.");
    if lost.is_some() {
        findings.note(text.clone());
    }
    // A record without the rows that no budget needs is complete.
    if lost.is_some() || findings.judged.iter().any(|(name, finding)| open(*name, finding)) {
        let observed = lost.map_or_else(|| "counted".to_owned(), |(_, _, number)| format!("{} lost", count(number)));
        let unmet = Unmet { name: REQUESTS, observed, limit: "each has a row".to_owned(), text, because };
        findings.unmet(unmet, Doubts::Either, open);
    }
}

/// Whether requests without a row may change the finding's verdict.
fn is_open(record: &Record, name: Name, finding: &Finding) -> bool {
    let follows = record.requests.follows_until_ms().is_some();
    let passed = finding.verdict == Verdict::Pass;
    match (name.section, name.key) {
        // This is a lower limit: unseen watches may have been open later.
        ("requests", "watches") => follows && finding.verdict == Verdict::Fail,
        // The control plane or the interval counts these.
        ("requests", "rate") => false,
        ("requests", "connections") => passed && finding.budget != "requests.connections.open",
        ("requests", "hotLoop") => passed && !requests::excludes_hot_loop(record),
        ("requests", _) | ("events", "watchGrowth") => passed && follows,
        _ => false,
    }
}

/// Whether phantoms were reported before a gap. An unknown version reported after the gap need not be a phantom,
/// because it may have been written in the gap.
fn is_phantom_before(record: &Record, _: Name, from_ms: u64) -> bool {
    let limit = record.manifest.budgets.events.as_ref().and_then(|events| events.phantom).unwrap_or(0);
    let reported = record.anomalies.iter().filter(|row| row.outcome == Outcome::Phantom);
    reported.filter(|row| row.observed_ms.unwrap_or(row.t_ms) < from_ms).count() as u64 > limit
}

fn judge_holes(record: &Record, holes: &[Hole], of: Audited, findings: &mut Findings) {
    let mut holes = holes.iter().filter(|hole| hole.of == of);
    let Some(first) = holes.next() else { return };
    let more = holes.count() as u64;
    let (name, what) = match of {
        Audited::Commits => (COMMITS, "the writes to the control plane"),
        Audited::Requests => (AUDIT_LOG, "the subject's requests in the audit log of the API server"),
    };
    let when = if first.from_ms == first.to_ms {
        format!("at {}", millis(first.from_ms))
    } else {
        format!("from {} to {}", millis(first.from_ms), millis(first.to_ms))
    };
    let besides = if more == 0 { String::new() } else { format!(", and {} more", counted(more, "gap")) };
    let because = format!("the harness did not see {what} {when}{besides} ({})", first.detail);
    let text = format!("{because}.");
    findings.note(text.clone());
    let unmet = Unmet { name, observed: counted(more + 1, "gap"), limit: "no gap".to_owned(), text, because };
    let from_ms = first.from_ms;
    findings.unmet(unmet, Doubts::Either, |name, finding| match of {
        Audited::Commits => {
            let is_whole = if name.key == "phantom" { is_phantom_before } else { stalls::is_whole_before };
            let whole = finding.verdict == Verdict::Fail && is_whole(record, name, from_ms);
            doubt::is_witnessed(name) && name.key != "watchGrowth" && !whole
        }
        // The least number of requests is known. The number of open watches, or their absence, is not.
        Audited::Requests => match (name.section, name.key) {
            ("events", "hotLoop") => finding.verdict == Verdict::Pass,
            ("events", "blind") | ("openWatches", _) => true,
            _ => false,
        },
    });
}
