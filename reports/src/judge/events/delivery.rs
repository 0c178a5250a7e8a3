//! `events.delivery`: whether superseded versions may stay unobserved.

use crate::budgets::Delivery;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record, Sight};
use crate::words::{count, counted};

pub(super) struct EveryVersion;

impl Rule for EveryVersion {
    const EXAMPLE: Option<&'static str> = Some("latest");
    // A required version that was superseded without being observed.
    const WORD: Option<Word> = Some(Word::Missed);

    /// The limit `latest` needs no fact from the witness.
    fn needs(limit: &Delivery) -> &'static [Sight] {
        if *limit == Delivery::EveryVersion { &[Sight::Intermediate] } else { &[] }
    }

    fn judge(_: &Record, counts: &EventCounts, limit: &Delivery, findings: &mut Findings) {
        judge(counts, *limit, findings);
    }
}

fn judge(counts: &EventCounts, delivery: Delivery, findings: &mut Findings) {
    if delivery != Delivery::EveryVersion {
        return;
    }
    let (verdict, text) = if counts.coalesced == 0 {
        (Verdict::Pass, "every version was observed.".to_owned())
    } else {
        let versions = counted(counts.coalesced, "version");
        (Verdict::Fail, format!("{versions} superseded before an observation, but the scenario demands every version."))
    };
    findings.push(
        Name::of::<EveryVersion>(),
        verdict,
        format!("{} coalesced", count(counts.coalesced)),
        "every version",
        text,
    );
}
