//! `api.staleness`: the greatest age of a count in an answer.

use units::Span;

use super::sum;
use crate::judge::rule::{Findings, Name, Rule, Verdict, Word};
use crate::record::{CallsRow, Record};
use crate::words::{count, counted, micros};

pub(super) struct Staleness;

impl Rule for Staleness {
    const WORD: Option<Word> = Some(Word::StaleAnswer);

    fn judge(_: &Record, rows: &Vec<&CallsRow>, limit: &Span, findings: &mut Findings) {
        let ages = rows.iter().filter_map(|row| row.staleness);
        let (told, oldest_us) = ages.fold((0, 0), |(told, oldest), age| (told + age.count, age.max_us.max(oldest)));
        let limit_us = limit.0.as_micros();
        let unjudged = sum(rows, |row| row.unjudged);
        let (verdict, text) = match () {
            () if u128::from(oldest_us) > limit_us => {
                let text = format!(
                    "the oldest of {} was {} old, over the limit of {limit}.",
                    counted(told, "count"),
                    micros(oldest_us)
                );
                (Verdict::Fail, text)
            }
            () if told == 0 => {
                (Verdict::Inconclusive, "no count was answered, so there was nothing to judge.".to_owned())
            }
            () if unjudged > 0 => {
                let text = format!(
                    "{} of {} could not be compared with the commits.",
                    count(unjudged),
                    counted(told + unjudged, "answer")
                );
                (Verdict::Inconclusive, text)
            }
            () => {
                let text = format!(
                    "the oldest of {} was {} old, within the limit of {limit}.",
                    counted(told, "count"),
                    micros(oldest_us)
                );
                (Verdict::Pass, text)
            }
        };
        let found = findings.push(Name::of::<Self>(), verdict, micros(oldest_us), limit.to_string(), text);
        found.used(oldest_us as f64, limit_us as f64);
    }
}
