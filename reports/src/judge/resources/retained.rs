//! `memory.retained`: whether memory falls again after many objects were made and deleted.
//!
//! An *object peak* is a time in which the number of objects rises and then falls to half of its highest value or less.
//! Memory before the object peak is compared with memory after it, while about as many objects exist. Memory is
//! compared by blocks, each by its lowest sample, because a garbage collector runs only now and then. If all pairs of
//! blocks, one before and one after the object peak, agree, the result is decided; otherwise it is undecided.

use units::Bytes;

use super::anew;
use super::growth::decide::size_of_bytes;
use crate::judge::rule::{Findings, Name, Record, Rule, Verdict, Word};
use crate::words::{bytes, count, millis};

/// After an object peak the number of objects is at most this fraction of its highest value.
const FALLS_TO: f64 = 0.5;
/// Before and after an object peak, the number of objects may be above its lowest value by this fraction of the peak's
/// height.
const CALM: f64 = 0.1;
/// Number of samples in a block, one a second, and minimum number of blocks for a decision.
const BLOCK_SAMPLES: usize = 3;
const BLOCKS_LEAST: usize = 3;

pub(super) struct Retained;

impl Rule for Retained {
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let name = Name::of::<Self>();
        if let Some(t_ms) = anew(record) {
            let text = format!("retained memory is not judged: the subject was restarted at {}.", millis(t_ms));
            findings.push(name, Verdict::Inconclusive, "restarted", bytes(limit.0), text);
            return;
        }
        let (verdict, observed, text) = match Burst::of(record) {
            Ok(burst) => burst.decide(record, limit.0),
            Err(why) => (Verdict::Inconclusive, "no burst".to_owned(), why),
        };
        findings.push(name, verdict, observed, bytes(limit.0), text);
    }
}

/// A time in which there were few objects, then many, then few again.
#[derive(Debug, PartialEq, Eq)]
struct Burst {
    /// The largest number of objects in the object peak.
    peak: u64,
    /// The number of objects that are left after the object peak.
    left: u64,
    /// The end of the time before the object peak, in milliseconds.
    rises_ms: u64,
    /// The start of the time after the object peak, in milliseconds; this time lasts until the end.
    falls_ms: u64,
}

impl Burst {
    /// Finds the object peak of a run. The error text says how to change the scenario.
    fn of(record: &Record) -> Result<Self, String> {
        let rows = &record.intervals;
        let none = || {
            "the number of objects never fell by half, so no memory had to be freed: create many objects and delete them."
                .to_owned()
        };
        let at = (0..rows.len()).max_by_key(|&at| (rows[at].live_objects, std::cmp::Reverse(at))).ok_or_else(none)?;
        let peak = rows[at].live_objects;
        let left = rows[at..].iter().map(|row| row.live_objects).min().unwrap_or(peak);
        if peak == 0 || left as f64 > peak as f64 * FALLS_TO {
            return Err(none());
        }
        let few = |row: &record::Interval| row.live_objects as f64 <= left as f64 + CALM * (peak - left) as f64;
        let Some(rise) = rows.iter().position(|row| !few(row)).filter(|rise| *rise > 0) else {
            return Err(format!(
                "there were {} objects from the start, so the memory before them is not known: create them after the subject has started.",
                count(peak)
            ));
        };
        // A row has the count at its end: after the last row with many objects, the next has few, and so have the
        // others.
        let fall = rows.iter().rposition(|row| !few(row)).map_or(rise, |last| last + 1).min(rows.len() - 1);
        Ok(Self { peak, left, rises_ms: rows[rise].start_ms, falls_ms: rows[fall].end_ms })
    }

    fn decide(&self, record: &Record, limit: u64) -> (Verdict, String, String) {
        let (what, values) = series(record);
        let (before, after): (Vec<_>, Vec<_>) = values
            .into_iter()
            .filter(|(t_ms, _)| *t_ms < self.rises_ms || *t_ms >= self.falls_ms)
            .partition(|(t_ms, _)| *t_ms < self.rises_ms);
        let (before, after) = (later_half(&blocks(&before)), later_half(&blocks(&after)));
        if before.len() < BLOCKS_LEAST || after.len() < BLOCKS_LEAST {
            let least = BLOCK_SAMPLES * BLOCKS_LEAST + 1;
            let text = format!(
                "{what} was sampled too seldom: {least} s before the objects come and {least} s after they are gone would decide it."
            );
            return (Verdict::Inconclusive, "too few samples".to_owned(), text);
        }
        let least = lowest(&after) as f64 - highest(&before) as f64;
        let most = highest(&after) as f64 - lowest(&before) as f64;
        let limit_f = limit as f64;
        let between = format!("{} to {} more", size_of_bytes(least.max(0.0)), size_of_bytes(most.max(0.0)));
        let told = format!(
            "{what} was at most {} before {} objects came, and at least {} in the end with {} left: {between}",
            bytes(highest(&before)),
            count(self.peak),
            bytes(lowest(&after)),
            count(self.left),
        );
        let limit_text = bytes(limit);
        let (verdict, text) = if most <= limit_f {
            (Verdict::Pass, format!("{told}, within {limit_text}."))
        } else if least <= limit_f {
            (
                Verdict::Inconclusive,
                format!(
                    "{told}, which does not decide the limit of {limit_text}: make the calm time before and after longer."
                ),
            )
        } else if let Some(more_s) = still_falling(&after, highest(&before) as f64 + limit_f) {
            (
                Verdict::Inconclusive,
                format!(
                    "{told}, more than {limit_text}, but it was still falling: about {more_s} s more would decide it."
                ),
            )
        } else {
            (Verdict::Fail, format!("{told}, more than {limit_text}."))
        };
        (verdict, between, text)
    }
}

/// The name and the values of the judged series: the heap in use if the subject reports it until the end, else the
/// resident set.
fn series(record: &Record) -> (String, Vec<(u64, u64)>) {
    let of = record.metrics.iter().find_map(|row| row.heap_of.as_deref());
    let heap: Vec<_> = record.metrics.iter().filter_map(|row| Some((row.t_ms, row.heap_bytes?))).collect();
    let until = record.metrics.last().map(|row| row.t_ms);
    if let Some(of) = of.filter(|_| heap.last().map(|(t_ms, _)| *t_ms) == until) {
        return (format!("the heap in use ({of})"), heap);
    }
    let resident = record.samples.iter().filter(|row| !row.peak);
    let resident = resident.filter_map(|row| Some((row.t_ms, row.subject?.rss_bytes)));
    ("the resident set".to_owned(), resident.collect())
}

/// The lowest value of each block; an incomplete last block is left out.
fn blocks(values: &[(u64, u64)]) -> Vec<(u64, u64)> {
    values
        .chunks_exact(BLOCK_SAMPLES)
        .filter_map(|block| block.iter().copied().min_by_key(|(_, value)| *value))
        .collect()
}

/// The later half of the blocks, but at least as many as a decision needs: a program that has just started still grows,
/// and freeing memory takes time.
fn later_half(blocks: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let from = (blocks.len() / 2).min(blocks.len().saturating_sub(BLOCKS_LEAST));
    blocks[from..].to_vec()
}

fn lowest(blocks: &[(u64, u64)]) -> u64 {
    blocks.iter().map(|(_, value)| *value).min().unwrap_or(0)
}

fn highest(blocks: &[(u64, u64)]) -> u64 {
    blocks.iter().map(|(_, value)| *value).max().unwrap_or(0)
}

/// The seconds until memory reaches `target` if it keeps falling at its present rate; none if that is longer than the
/// observed time.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run, not negative")]
fn still_falling(after: &[(u64, u64)], target: f64) -> Option<u64> {
    let ((from_ms, from), (to_ms, to)) = (*after.first()?, *after.last()?);
    let (fell, took_s) = (from.saturating_sub(to) as f64, (to_ms - from_ms) as f64 / 1000.0);
    let needed_s = (to as f64 - target) / fell * took_s;
    (fell > 0.0 && (0.0..=took_s).contains(&needed_s)).then(|| needed_s.ceil().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, Judged as _};
    use crate::judge::Finding;

    const MIB: u64 = 1 << 20;

    /// The finding for a run with this memory in each second. In this run, objects are made at 40 s and deleted at 80
    /// s.
    fn found(memory: impl Fn(u64) -> u64, spoil: impl Fn(&mut Example)) -> Finding {
        let mut example = Example::clean();
        for row in &mut example.intervals {
            row.live_objects = if (40_000..80_000).contains(&row.start_ms) { 5000 } else { 20 };
        }
        for sample in &mut example.samples {
            let wobble = sample.t_ms * 7919 % 13 * 4096;
            sample.subject.as_mut().unwrap().rss_bytes = 40 * MIB + memory(sample.t_ms / 1000) + wobble;
        }
        example.manifest.budgets.memory = Some(serde_json::from_str(r#"{"retained": "8MiB"}"#).unwrap());
        spoil(&mut example);
        let judgement = example.judged();
        judgement.findings.into_iter().find(|finding| finding.budget == "memory.retained").unwrap()
    }

    fn burst(second: u64) -> u64 {
        if (40..82).contains(&second) { 30 * MIB } else { 0 }
    }

    #[test]
    fn what_comes_back_passes_and_what_stays_fails() {
        let clean = found(burst, |_| {});
        assert_eq!(clean.verdict, Verdict::Pass, "{clean:?}");
        let leak = found(|second| if second < 40 { 0 } else { 30 * MIB }, |_| {});
        assert_eq!(leak.verdict, Verdict::Fail, "{leak:?}");
        assert!(leak.text.contains("before 5,000 objects came") && leak.text.contains("with 20 left"), "{}", leak.text);
        assert!(leak.text.ends_with("more than 8 MiB."), "{}", leak.text);
        // A part that stays is more than nothing, and less than the limit.
        let part = found(|second| if second < 40 { 0 } else { burst(second).max(4 * MIB) }, |_| {});
        assert_eq!(part.verdict, Verdict::Pass, "{part:?}");
    }

    /// If a garbage collector lets the heap rise and fall, only the lowest points count.
    #[test]
    fn a_heap_decides_before_the_resident_set_and_its_teeth_do_not_matter() {
        let stays = |second: u64| if second < 40 { 0 } else { 30 * MIB };
        let teeth = |second: u64| 20 * MIB + second % 3 * 6 * MIB;
        let heap = found(stays, |e| e.tell_metrics(|second| teeth(second) + burst(second), |_| 0.0));
        assert_eq!(heap.verdict, Verdict::Pass, "{heap:?}");
        assert!(heap.text.starts_with("the heap in use (Go) was at most "), "{}", heap.text);
        let leak = found(burst, |e| e.tell_metrics(|second| teeth(second) + stays(second), |_| 0.0));
        assert_eq!(leak.verdict, Verdict::Fail, "{leak:?}");
        let ended = found(burst, |e| {
            e.tell_metrics(|second| teeth(second) + stays(second), |_| 0.0);
            e.metrics.last_mut().unwrap().heap_bytes = None;
        });
        assert_eq!(ended.verdict, Verdict::Pass, "a page that stopped telling does not decide: {ended:?}");
    }

    #[test]
    fn what_cannot_be_decided_is_told_with_what_would() {
        let undecided = |memory: &dyn Fn(u64) -> u64, spoil: &dyn Fn(&mut Example), why: &str| {
            let finding = found(memory, spoil);
            assert_eq!(finding.verdict, Verdict::Inconclusive, "{finding:?}");
            assert!(finding.text.contains(why), "`{why}` is not in: {}", finding.text);
        };
        undecided(&burst, &|e| e.intervals.iter_mut().for_each(|row| row.live_objects = 500), "never fell by half");
        let from_start = |e: &mut Example| {
            e.intervals.iter_mut().filter(|row| row.start_ms < 80_000).for_each(|row| row.live_objects = 5000);
        };
        undecided(&burst, &from_start, "from the start, so the memory before");
        undecided(
            &burst,
            &|e| e.samples.retain(|sample| sample.t_ms < 85_000),
            "10 s before the objects come and 10 s after",
        );
        let noisy = |second: u64| if second < 40 { second % 7 * 2 * MIB } else { second / 5 % 4 * 8 * MIB };
        undecided(&noisy, &|_| {}, "does not decide the limit of");
        let slowly = |second: u64| if second < 40 { 0 } else { 30 * MIB - second.saturating_sub(80) * MIB / 5 };
        undecided(&slowly, &|_| {}, "was still falling: about");
        let restarted =
            found(burst, |e| e.samples[80..].iter_mut().for_each(|s| s.subject.as_mut().unwrap().starts = 2));
        assert_eq!(restarted.verdict, Verdict::Inconclusive, "{restarted:?}");
    }
}
