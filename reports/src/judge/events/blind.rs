//! `events.blind`: a subject that has stopped sending requests, according to the control plane's counts.

use super::{UNTOLD, untold};
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record};
use crate::words::{counted, millis};

/// A subject counts as blind if it has no open request for this time, in milliseconds. Known clients retry at least
/// every 60 s.
const BLIND_MS: u64 = 120_000;
/// The time without an open request, in milliseconds, that makes a subject blind at the end of a run with unsettled
/// versions. The time is shorter than [`BLIND_MS`] because the subject could catch up in the drain phase.
const BLIND_AT_END_MS: u64 = 30_000;

pub(super) struct Blind;

impl Rule for Blind {
    const DOC: &'static str = "The subject had no request open and sent none for 2 min, or for 30 s at the end while versions waited to be \
        observed. Judged where the control plane reports requests: the mock, and by their audit logs `local` and `node`.";
    const WORD: Option<Word> = Some(Word::Blind);

    fn judge(record: &Record, counts: &EventCounts, (): &(), findings: &mut Findings) {
        judge(record, counts, findings);
    }
}

fn judge(record: &Record, counts: &EventCounts, findings: &mut Findings) {
    if untold(record) {
        findings.note(format!("{} was not judged: {UNTOLD}", Name::of::<Blind>()));
        return;
    }
    let longest = record.intervals.iter().filter_map(|row| Some((row.api.subject_idle_ms?, row.end_ms))).max();
    let last = record.intervals.last();
    let at_end = last.and_then(|row| row.api.subject_idle_ms).unwrap_or(0);
    let unsettled = counts.missed + counts.ghost + counts.identity_swap + last.map_or(0, |row| row.pending);
    let limit = millis(BLIND_MS);
    match longest {
        Some((idle_ms, end_ms)) if idle_ms > BLIND_MS => {
            let text = format!(
                "the subject had no open request and sent none for {} (until {} of the run): it gave up silently.",
                millis(idle_ms),
                millis(end_ms)
            );
            findings.push(Name::of::<Blind>(), Verdict::Fail, millis(idle_ms), limit, text);
        }
        _ if at_end > BLIND_AT_END_MS && unsettled > 0 => {
            let text = format!(
                "at the end of the run the subject had no open request and had sent none for {}, although {} unobserved: it gave up \
                 silently.",
                millis(at_end),
                counted(unsettled, "version")
            );
            findings.push(Name::of::<Blind>(), Verdict::Fail, millis(at_end), millis(BLIND_AT_END_MS), text);
        }
        _ => {
            let idle = longest.map_or(0, |(idle_ms, _)| idle_ms);
            findings.push(
                Name::of::<Blind>(),
                Verdict::Pass,
                millis(idle),
                limit,
                "the subject kept sending requests.",
            );
        }
    }
}
