//! `requests.watches`, `requests.openWatches`: the number of watches open at once.

use super::{Limit, SubjectRequests, at_least, at_most, watches};
use crate::budgets::AtLeast;
use crate::judge::rule::{Budget, Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, RequestRow, Verb};
use crate::words::{count, millis};

impl Limit for AtLeast {
    fn of(&self, name: Name) -> Vec<(Budget, String)> {
        vec![(name.into(), at_least(self.min))]
    }
}

pub(super) struct Watches;

impl Rule for Watches {
    const EXAMPLE: Option<&'static str> = Some("{min: 1}");
    const WORD: Option<Word> = Some(Word::TooFewWatches);

    fn judge(_: &Record, asked: &SubjectRequests, limit: &AtLeast, findings: &mut Findings) {
        judge_least(asked, limit.min, findings);
    }
}

pub(super) struct OpenWatches;

impl Rule for OpenWatches {
    const EXAMPLE: Option<&'static str> = Some("1");
    const WORD: Option<Word> = Some(Word::WatchLeak);

    fn judge(_: &Record, asked: &SubjectRequests, limit: &u64, findings: &mut Findings) {
        judge_most(asked, *limit, findings);
    }
}

fn judge_least(asked: &SubjectRequests, least: u64, findings: &mut Findings) {
    let (most, t_ms) = most_open(asked, &asked.rows);
    let verdict = if most < least { Verdict::Fail } else { Verdict::Pass };
    let text = format!("at most {} open at once, at {}.", were(most), millis(t_ms));
    findings.push(Name::of::<Watches>(), verdict, count(most), at_least(least), text);
}

fn judge_most(asked: &SubjectRequests, limit: u64, findings: &mut Findings) {
    let scopes = asked.scopes.iter().map(|(scope, rows)| (most_open(asked, rows), scope));
    let ((most, t_ms), text) = match scopes.max_by_key(|((most, _), _)| *most) {
        Some(((most, t_ms), scope)) => ((most, t_ms), format!(" of {scope}")),
        None => ((0, 0), String::new()),
    };
    let text = format!("at most {} open at once{text}, at {}.", were(most), millis(t_ms));
    at_most(findings, Name::of::<OpenWatches>(), most, limit, text);
}

fn were(number: u64) -> String {
    format!("{} {}", watches(number), if number == 1 { "was" } else { "were" })
}

/// The largest number of watches that were open at once, and the first time with that number.
pub(super) fn most_open(asked: &SubjectRequests, rows: &[&RequestRow]) -> (u64, u64) {
    // A watch that carried an error stays open until one side closes it.
    let open = rows.iter().filter(|row| row.verb == Verb::Watch && (200..300).contains(&row.status));
    let mut turns: Vec<(u64, bool)> = Vec::new();
    for row in open {
        let end_ms = asked.end_ms(row);
        // A watch that began and ended before the warm-up has no length.
        if end_ms > row.t_ms || row.ended_ms.is_none() {
            turns.push((row.t_ms, true));
            turns.push((end_ms, false));
        }
    }
    // Within a millisecond the end comes first, so that a resumed watch does not count twice.
    turns.sort_unstable();
    let (mut now, mut most) = (0_i64, (0, 0));
    for (t_ms, begins) in turns {
        now += if begins { 1 } else { -1 };
        if now > most.0 {
            most = (now, t_ms);
        }
    }
    (u64::try_from(most.0).unwrap_or(0), most.1)
}
