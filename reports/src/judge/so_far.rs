//! Interim verdicts on growth while a run is under way, and how much longer the run needs to decide each budget.
//!
//! Owns, in bounded memory, the facts that interim verdicts need. The final verdict on the run comes from its record
//! alone.

use super::{Findings, Verdict, resources};
use crate::record::{AdmissionRow, Interval, Latency, Manifest, MetricsRow, Record, Requests, Sample};

/// Maximum number of samples that are kept for interim verdicts. If there are more samples, every second sample is
/// dropped, and later samples are taken at half the rate. A sample has some hundred bytes, and this memory belongs to
/// the harness, whose own growth is judged. With eight times as many samples, the harness grew by two MiB in a run of
/// an hour, far below its limit.
const SAMPLES_MAX: usize = 1024;
/// Maximum number of intervals that are kept for interim verdicts. If there are more, each two neighbouring intervals
/// become one.
const INTERVALS_MAX: usize = 256;
/// The prefix of the key of each budget on growth, within its section.
const GROWTH: &str = "growth";

/// The facts of the run so far that the growth judges need.
pub struct SoFar {
    record: Record,
    samples: Stride,
    metrics: Stride,
}

/// Keeps every n-th row, and doubles n whenever there are too many rows, so that all rows have the same distance. If
/// later rows were closer, the judge would find gaps between the earlier ones.
struct Stride {
    step: u64,
    seen: u64,
}

impl Stride {
    const ALL: Self = Self { step: 1, seen: 0 };

    /// Counts the next row, and returns whether it is kept.
    fn takes(&mut self) -> bool {
        self.seen += 1;
        (self.seen - 1).is_multiple_of(self.step)
    }

    /// Drops every second row when there are too many.
    fn thin<T>(&mut self, rows: &mut Vec<T>) {
        if rows.len() <= SAMPLES_MAX {
            return;
        }
        let mut keep = false;
        rows.retain(|_| {
            keep = !keep;
            keep
        });
        self.step *= 2;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Interim {
    /// The budget, such as `memory.growth`.
    pub budget: String,
    /// The verdict on this budget if the run ended now.
    pub verdict: Verdict,
    /// The measured value with its unit, without its interval.
    pub observed: String,
    /// The length of the steady phase that would decide, in seconds; none if the budget is decided, or if no length
    /// decides it.
    pub needed_s: Option<f64>,
}

impl SoFar {
    /// Begins to collect facts for a run with this manifest; none if the run has no budget on growth.
    pub fn new(manifest: &Manifest) -> Option<Self> {
        let memory = manifest.budgets.memory.iter().any(|memory| {
            memory.growth.is_some()
                || memory.growth_per_own_hour.is_some()
                || memory.growth_per_object.is_some()
                || memory.growth_per_request.is_some()
        });
        let series = manifest
            .budgets
            .metrics
            .values()
            .any(|one| one.growth.is_some() || one.growth_per_object.is_some() || one.growth_per_request.is_some());
        let grows = memory || series;
        let record = Record {
            manifest: manifest.clone(),
            intervals: Vec::new(),
            samples: Vec::new(),
            faults: Vec::new(),
            anomalies: Vec::new(),
            metrics: Vec::new(),
            crashes: Vec::new(),
            requests: Requests::default(),
            latency: Latency::default(),
            end_state: None,
            objects: None,
            answers: None,
            end: None,
            story: Vec::new(),
            notes: Vec::new(),
            files: Vec::new(),
        };
        grows.then_some(Self { record, samples: Stride::ALL, metrics: Stride::ALL })
    }

    pub fn sample(&mut self, sample: &Sample) {
        if self.samples.takes() {
            self.record.samples.push(sample.clone());
            self.samples.thin(&mut self.record.samples);
        }
    }

    pub fn metrics(&mut self, row: &MetricsRow) {
        let rows = &mut self.record.metrics;
        // Only one row has the name of the heap.
        let named = rows.iter().rev().find_map(|row| row.heap_of.clone());
        if self.metrics.takes() {
            rows.push(MetricsRow { heap_of: row.heap_of.clone().or(named), ..row.clone() });
            self.metrics.thin(rows);
        }
    }

    pub fn interval(&mut self, row: &Interval) {
        let admission = row.admission.as_ref();
        let admission =
            admission.map(|row| AdmissionRow { sent: row.sent, response: row.response, ..AdmissionRow::default() });
        let light = Interval { admission, refused: Vec::new(), faults_active: Vec::new(), lag: None, ..row.clone() };
        let intervals = &mut self.record.intervals;
        intervals.push(light);
        if intervals.len() > INTERVALS_MAX {
            *intervals = std::mem::take(intervals).into_iter().fold(Vec::new(), by_twos());
        }
    }

    /// The interim result of each budget on growth. The computation takes a few milliseconds, as long as judging a
    /// record.
    pub fn interims(&self) -> Vec<Interim> {
        interims(&self.record)
    }
}

/// The result of each budget on growth if the record ended now.
pub(crate) fn interims(record: &Record) -> Vec<Interim> {
    let mut findings = Findings::default();
    resources::judge(record, &mut findings);
    let needed = |budget: &str| findings.needed.iter().find(|(one, _)| one == budget).map(|(_, needed_s)| *needed_s);
    let grow = findings
        .judged
        .iter()
        .filter(|(name, _)| matches!(name.section, "memory" | "metrics") && name.key.starts_with(GROWTH));
    grow.map(|(_, finding)| Interim {
        budget: finding.budget.clone(),
        verdict: finding.verdict,
        observed: finding.observed.split(" (").next().unwrap_or_default().to_owned(),
        needed_s: needed(&finding.budget),
    })
    .collect()
}

/// Merges each two neighbouring intervals of the same phase.
fn by_twos() -> impl FnMut(Vec<Interval>, Interval) -> Vec<Interval> {
    let mut open = false;
    move |mut rows, row| {
        if let Some(last) = rows.last_mut().filter(|last| open && last.phase == row.phase) {
            let sent = |row: &Interval| row.admission.as_ref().map_or(0, |row| row.sent);
            let (start_ms, sent) = (last.start_ms, sent(last) + sent(&row));
            *last = Interval { start_ms, ..row };
            if let Some(admission) = &mut last.admission {
                admission.sent = sent;
            }
            open = false;
        } else {
            rows.push(row);
            open = true;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Example, Judged as _};

    fn budgets(example: &mut Example, json: &str) {
        example.manifest.budgets.memory = Some(serde_json::from_str(json).unwrap());
    }

    fn so_far(example: &Example) -> SoFar {
        let mut so_far = SoFar::new(&example.manifest).unwrap();
        example.samples.iter().for_each(|row| so_far.sample(row));
        example.intervals.iter().for_each(|row| so_far.interval(row));
        so_far
    }

    /// The interim result after the rows of a run equals the judge's result for a record with the same rows.
    #[test]
    fn it_says_what_the_judge_says() {
        for limit in ["100MiB/h", "1KiB/h"] {
            let mut example = Example::clean();
            budgets(&mut example, &format!(r#"{{"growth": "{limit}", "growthPerObject": "4KiB", "ceiling": "1GiB"}}"#));
            let interims = so_far(&example).interims();
            let judgement = example.judged();
            assert_eq!(interims.len(), 2, "{interims:?}");
            for standing in interims {
                let same = judgement.findings.iter().find(|finding| finding.budget == standing.budget).unwrap();
                assert_eq!(standing.verdict, same.verdict, "{standing:?}");
                assert!(same.observed.starts_with(&standing.observed));
                assert_eq!(standing.needed_s.is_some(), standing.verdict == Verdict::Inconclusive, "{standing:?}");
            }
        }
        let mut example = Example::clean();
        budgets(&mut example, r#"{"ceiling": "1GiB"}"#);
        assert!(SoFar::new(&example.manifest).is_none());
    }

    /// In a long run the memory for interim results stays bounded, merged rows lose no request, and samples stay at
    /// equal distances.
    #[test]
    fn it_is_bounded_and_loses_no_request() {
        let mut example = Example::clean();
        budgets(&mut example, r#"{"growthPerRequest": "256B"}"#);
        let before = so_far(&example).interims();
        let mut bounded = SoFar::new(&example.manifest).unwrap();
        let row = example.intervals[10].clone();
        for n in 0..20_000 {
            bounded.interval(&Interval { start_ms: 5000 * n, end_ms: 5000 * (n + 1), ..row.clone() });
            bounded.sample(&Sample { t_ms: 5000 * n, ..example.samples[60].clone() });
        }
        let Record { intervals, samples, .. } = &bounded.record;
        assert!(intervals.len() <= INTERVALS_MAX && samples.len() <= SAMPLES_MAX);
        let sent: u64 = intervals.iter().map(|row| row.admission.as_ref().unwrap().sent).sum();
        assert_eq!(sent, 20_000 * row.admission.unwrap().sent);
        assert!(intervals.windows(2).all(|pair| pair[0].end_ms == pair[1].start_ms));
        let apart: Vec<u64> = samples.windows(2).map(|pair| pair[1].t_ms - pair[0].t_ms).collect();
        assert!(apart.iter().all(|one| *one == apart[0]), "{apart:?}");
        assert_eq!(before.len(), 1);
    }

    /// A long run is judged like a short one, and samples that were dropped to save memory do not count as missing.
    #[test]
    fn it_still_judges_when_samples_were_left_out() {
        let mut example = Example::clean();
        budgets(&mut example, r#"{"growth": "100MiB/h"}"#);
        let mut long = SoFar::new(&example.manifest).unwrap();
        let (row, sample) = (example.intervals[10].clone(), example.samples[60].clone());
        for second in 0..30_000_u64 {
            let at_ms = row.start_ms + 1000 * second;
            let mut sample = Sample { t_ms: at_ms, ..sample.clone() };
            // The series is neither flat nor drifting.
            sample.subject.as_mut().unwrap().rss_bytes += (second * 7919 % 97) * 4096;
            long.sample(&sample);
            if second.is_multiple_of(5) {
                long.interval(&Interval { start_ms: at_ms, end_ms: at_ms + 5000, ..row.clone() });
            }
        }
        let interims = long.interims();
        assert_eq!(interims.iter().map(|one| one.verdict).collect::<Vec<_>>(), [Verdict::Pass], "{interims:?}");
    }
}
