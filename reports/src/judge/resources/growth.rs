//! `memory.growth`, `memory.growthPerObject`, `memory.growthPerRequest`: whether memory grows faster than it may.
//!
//! Owns which series of the record is asked, and the words of the answer; [`crate::growth`] decides.

use units::{Bytes, Growth};

use super::{Memory, restarted};
use crate::growth::{self, Answer, Outcome, Question, WarmUp};
use crate::judge::rule::{Name, Rule};
use crate::judge::{Findings, Verdict, Word};
use crate::record::{Interval, Record};
use crate::statistics::blocks::Series;
use crate::statistics::theil_sen::Slope;
use crate::words::{count, millis, three_digits};

mod settled;
#[cfg(test)]
mod tests;

use settled::Settled;

/// The least scatter of memory that is believed, in bytes: a page of noise would make any run long enough.
const SIGMA_BYTES_LEAST: f64 = 65_536.0;
const SECONDS_PER_HOUR: f64 = 3600.0;

/// `memory.growth`.
pub(super) struct Growing;

impl Rule for Growing {
    type Section = Memory;
    type Limit = Growth;
    const KEY: &'static str = "growth";
    const DOC: &'static str = "How much the resident set may grow with time at a constant population.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Growth, findings: &mut Findings) {
        let budget = Budget { limit: limit.bytes_per_hour as f64, text: limit.to_string(), per: "/h" };
        let series = Resident::of(record, |t_s| t_s / SECONDS_PER_HOUR);
        judge_growth(record, findings, Name::of::<Self>(), &budget, &series);
    }
}

/// `memory.growthPerObject`.
pub(super) struct PerObject;

impl Rule for PerObject {
    type Section = Memory;
    type Limit = Bytes;
    const KEY: &'static str = "growthPerObject";
    const DOC: &'static str = "How much the resident set may grow with each distinct object that has come and gone.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let objects = record.intervals.iter().filter_map(|row| Some((row, row.churn.as_ref()?.objects_total)));
        let counted = Counted::of(objects);
        let budget = Budget { limit: limit.0 as f64, text: format!("{limit}/object"), per: "/object" };
        let series = Resident::of(record, |t_s| counted.at(t_s));
        judge_growth(record, findings, Name::of::<Self>(), &budget, &series);
    }
}

/// `memory.growthPerRequest`.
pub(super) struct PerRequest;

impl Rule for PerRequest {
    type Section = Memory;
    type Limit = Bytes;
    const KEY: &'static str = "growthPerRequest";
    const DOC: &'static str = "How much the resident set may grow with each admission review.";
    const WORD: Option<Word> = Some(Word::Leak);

    fn judge(record: &Record, (): &(), limit: &Bytes, findings: &mut Findings) {
        let mut total = 0;
        let requests = record.intervals.iter().filter_map(|row| {
            total += row.admission.as_ref()?.sent;
            Some((row, total))
        });
        let counted = Counted::of(requests);
        let budget = Budget { limit: limit.0 as f64, text: format!("{limit}/request"), per: "/request" };
        let series = Resident::of(record, |t_s| counted.at(t_s));
        judge_growth(record, findings, Name::of::<Self>(), &budget, &series);
    }
}

/// A limit on growth.
struct Budget {
    /// In bytes for each unit of the axis.
    limit: f64,
    /// As it is shown.
    text: String,
    /// The unit of the axis, as in `B/h`.
    per: &'static str,
}

/// The resident set in the steady phase.
#[derive(Debug, Default)]
struct Resident {
    t_s: Vec<f64>,
    bytes: Vec<f64>,
    axis: Vec<f64>,
}

impl Resident {
    fn of(record: &Record, axis: impl Fn(f64) -> f64) -> Self {
        let mut series = Self::default();
        for sample in record.samples_in_turn() {
            let (Some(process), t_s) = (sample.subject, sample.t_ms as f64 / 1000.0) else { continue };
            series.t_s.push(t_s);
            series.bytes.push(process.rss_bytes as f64);
            series.axis.push(axis(t_s));
        }
        series
    }
}

/// A count that only rises, known at the ends of intervals.
struct Counted {
    /// Seconds and count.
    known: Vec<(f64, f64)>,
}

impl Counted {
    fn of<'a>(rows: impl Iterator<Item = (&'a Interval, u64)>) -> Self {
        let mut known: Vec<(f64, f64)> = Vec::new();
        for (row, total) in rows {
            let most = known.last().map_or(0.0, |last| last.1);
            known.push((row.end_ms as f64 / 1000.0, (total as f64).max(most)));
        }
        Self { known }
    }

    /// The count at this time, on the line between the two next that are known.
    fn at(&self, t_s: f64) -> f64 {
        let next = self.known.partition_point(|(known_s, _)| *known_s < t_s);
        match (next.checked_sub(1).and_then(|before| self.known.get(before)), self.known.get(next)) {
            (Some(before), Some(after)) => before.1 + (after.1 - before.1) * (t_s - before.0) / (after.0 - before.0),
            (Some(only), None) | (None, Some(only)) => only.1,
            (None, None) => 0.0,
        }
    }
}

fn judge_growth(record: &Record, findings: &mut Findings, name: Name, budget: &Budget, resident: &Resident) {
    if let Some(t_ms) = restarted(record) {
        let text = format!("growth is not judged: the subject was started anew at {}.", millis(t_ms));
        findings.push(name, Verdict::Invalid, "restarted", budget.text.clone(), text);
        return;
    }
    let series = Series { t_s: &resident.t_s, value: &resident.bytes, axis: &resident.axis };
    let planned_s = record.manifest.phases.steady_ms as f64 / 1000.0;
    let (sigma_least, tau_least_s) = (SIGMA_BYTES_LEAST, growth::length::TAU_S);
    let question = Question { series, budget: budget.limit, planned_s, sigma_least, tau_least_s };
    let settled = Settled::of(record);
    let answer = growth::judge_since(&question, settled.since_s);
    let observed = match (&answer.outcome, &answer.slope) {
        (Outcome::Invalid { .. }, _) => "not judged".to_owned(),
        (_, Some(slope)) => between(slope, budget.per),
        (_, None) => "not decided".to_owned(),
    };
    if let Outcome::Inconclusive { needed_s: Some(needed_s) } = answer.outcome {
        findings.needed.push((name, needed_s));
    }
    let (verdict, text) = match answer.outcome {
        Outcome::Pass => (Verdict::Pass, format!("{}, within {}.", grew(&answer, budget), budget.text)),
        Outcome::Fail => (Verdict::Fail, format!("{}, more than {}.", grew(&answer, budget), budget.text)),
        Outcome::Inconclusive { needed_s } => (Verdict::Inconclusive, undecided(&answer, budget, &series, needed_s)),
        Outcome::Invalid { why } => (Verdict::Invalid, format!("growth is not judged: {why}.")),
    };
    findings.push(name, verdict, observed, budget.text.clone(), text + &notes(record, &answer, planned_s, &settled));
}

fn grew(answer: &Answer, budget: &Budget) -> String {
    let slope = answer.slope.as_ref().map_or_else(String::new, |slope| between(slope, budget.per));
    let blocks = count(answer.blocks as u64);
    format!(
        "the resident set grew by {slope} with 95 % confidence on each side, by {blocks} blocks of the steady phase"
    )
}

fn undecided(answer: &Answer, budget: &Budget, series: &Series<'_>, needed_s: Option<f64>) -> String {
    let so_far = match answer.slope {
        Some(_) => format!(" So far {}.", grew(answer, budget)),
        None => String::new(),
    };
    match needed_s {
        Some(needed_s) => format!(
            "too short: the steady phase was sampled for {}, about {} would decide {}.{so_far}",
            seconds(series.span_s()),
            seconds(needed_s),
            budget.text
        ),
        None => format!("no length of run decides a budget of {} here.{so_far}", budget.text),
    }
}

/// What the series looks like besides, each a sentence with a space before it.
fn notes(record: &Record, answer: &Answer, planned_s: f64, settled: &Settled) -> String {
    let mut text = String::new();
    let mut note = |sentence: String| {
        text.push(' ');
        text.push_str(&sentence);
    };
    let shape = &answer.shape;
    if let Some(step) = &shape.step {
        let verb = if step.by > 0.0 { "rose" } else { "fell" };
        let by = size(step.by.abs());
        note(format!("It {verb} at once by {by} at {}{}.", seconds(step.t_s), during(record, step.t_s)));
    }
    if shape.levelled_off {
        note("It grew early and levelled off.".to_owned());
    }
    if shape.late {
        note("It began to grow only in the second half.".to_owned());
    }
    if let Some(teeth) = &shape.saw_tooth {
        note(format!(
            "It rises and falls by {} every {}; its minima count.",
            size(teeth.height),
            seconds(teeth.period_s)
        ));
    }
    match answer.warm_up {
        WarmUp::None => {}
        WarmUp::Until { t_s } if settled.since_s >= t_s => {
            let last = settled.last.unwrap_or_default();
            note(format!("What was before {} was warm-up still: {last} was not steady yet.", seconds(t_s)));
        }
        WarmUp::Until { t_s } => note(format!("What was before {} was warm-up still.", seconds(t_s))),
        WarmUp::Never => note(format!("It was never steady in {}.", seconds(planned_s))),
    }
    if !settled.never.is_empty() {
        note(format!("Never steady in {}: {}.", seconds(planned_s), settled.never.join(", ")));
    }
    text
}

/// The faults that were active at a time, as the end of a sentence.
fn during(record: &Record, t_s: f64) -> String {
    let row = record.intervals.iter().find(|row| t_s * 1000.0 <= row.end_ms as f64);
    let active = row.map(|row| row.faults_active.as_slice()).unwrap_or_default();
    let planned = record.manifest.faults.iter().filter(|fault| active.contains(&fault.id));
    let names: Vec<&str> = planned.map(|fault| fault.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", during {}", names.join(" and ")) }
}

fn between(slope: &Slope, per: &str) -> String {
    format!("{}{per} (between {} and {})", size(slope.estimate), size(slope.lower), size(slope.upper))
}

/// Bytes that may be negative, less than one, or without a bound.
fn size(bytes: f64) -> String {
    let sign = if bytes < 0.0 { "-" } else { "" };
    let (unit, size) = match bytes.abs() {
        x if x < 1024.0 => ("B", 1.0),
        x if x < 1_048_576.0 => ("KiB", 1024.0),
        x if x < 1_073_741_824.0 => ("MiB", 1_048_576.0),
        x if x.is_finite() => ("GiB", 1_073_741_824.0),
        _ => return format!("{sign}any size"),
    };
    format!("{sign}{} {unit}", three_digits(bytes.abs() / size))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
fn seconds(seconds: f64) -> String {
    millis((seconds * 1000.0) as u64)
}
