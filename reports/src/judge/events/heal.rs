//! `events.heal`: how long the subject had an outdated version of an object.

use units::Span;

use super::micros_of;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{EventCounts, Record, Sight, tag};
use crate::words::micros;

pub(super) struct Heal;

impl Rule for Heal {
    const EXAMPLE: Option<&'static str> = Some("10s");
    const WORD: Option<Word> = Some(Word::Late);
    const NEEDS: &'static [Sight] = &[Sight::Created, Sight::Updated, Sight::Deleted];

    fn judge(record: &Record, _: &EventCounts, limit: &Span, findings: &mut Findings) {
        judge(record, *limit, findings);
    }
}

fn judge(record: &Record, limit: Span, findings: &mut Findings) {
    let heal = record.latency.whole(tag::HEAL).filter(|heal| !heal.is_empty());
    let Some(max_us) = heal.map(|heal| heal.max()) else {
        findings.push(
            Name::of::<Heal>(),
            Verdict::Pass,
            "nothing late",
            limit.to_string(),
            "no version was late, so there was nothing to heal.",
        );
        return;
    };
    let broken = max_us > micros_of(limit);
    let text = format!("the subject was wrong about an object for at most {}, until it caught up.", micros(max_us));
    let found = findings.push(
        Name::of::<Heal>(),
        if broken { Verdict::Fail } else { Verdict::Pass },
        micros(max_us),
        limit.to_string(),
        text,
    );
    found.used(max_us as f64, micros_of(limit) as f64);
}
