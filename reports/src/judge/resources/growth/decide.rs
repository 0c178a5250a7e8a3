//! Whether one amount grows faster than it may, in words.
//!
//! Owns the words of the answer; [`crate::growth`] decides.

use super::axis::Axis;
use super::settled::Settled;
use crate::growth::{self, Answer, Outcome, Question, WarmUp};
use crate::judge::Verdict;
use crate::record::{Phase, Record};
use crate::statistics::blocks::Series;
use crate::statistics::theil_sen::Slope;
use crate::words::{count, millis, three_digits};

/// A limit on growth.
pub(in crate::judge::resources) struct Limit {
    /// For each unit of the axis.
    pub most: f64,
    /// As it is shown.
    pub text: String,
    pub axis: Axis,
}

/// Something that may grow, in the steady phase.
pub(in crate::judge::resources) struct Amount {
    /// As the subject of a sentence.
    pub what: String,
    pub t_s: Vec<f64>,
    pub value: Vec<f64>,
    /// The least scatter that is believed, in its own unit.
    pub sigma_least: f64,
    /// A size in its unit; it may be negative, less than one, or without a bound.
    pub size: fn(f64) -> String,
}

/// What became of it.
#[derive(Debug)]
pub(in crate::judge::resources) struct Decided {
    pub verdict: Verdict,
    pub observed: String,
    /// One or more sentences.
    pub text: String,
    /// What it grew by, where that is known; the end of a sentence.
    pub grew: Option<String>,
    /// The length of the steady phase that would decide, in seconds.
    pub needed_s: Option<f64>,
    /// The most that it may grow with confidence, in units of the limit.
    pub upper: Option<f64>,
}

impl Amount {
    /// The values of the steady phase, by their times in milliseconds.
    pub(in crate::judge::resources) fn of(
        record: &Record,
        what: impl Into<String>,
        (sigma_least, size): (f64, fn(f64) -> String),
        values: impl Iterator<Item = (u64, f64)>,
    ) -> Self {
        let steady = values.filter(|(t_ms, _)| record.phase_at(*t_ms) == Phase::Steady);
        let (t_s, value) = steady.map(|(t_ms, value)| (t_ms as f64 / 1000.0, value)).unzip();
        Self { what: what.into(), t_s, value, sigma_least, size }
    }

    /// From the first value to the last, in seconds.
    fn span_s(&self) -> f64 {
        self.t_s.last().zip(self.t_s.first()).map_or(0.0, |(last, first)| last - first)
    }
}

/// The answer, what else was steady from when on, and where on the axis each value is.
pub(super) fn ask(record: &Record, limit: &Limit, amount: &Amount) -> (Answer, Settled, Vec<f64>) {
    let scale = limit.axis.of(record);
    let axis: Vec<f64> = amount.t_s.iter().map(|t_s| scale.at(*t_s)).collect();
    let series = Series { t_s: &amount.t_s, value: &amount.value, axis: &axis };
    let (sigma_least, tau_least_s) = (amount.sigma_least, growth::length::TAU_S);
    let question = Question { series, budget: limit.most, planned_s: planned_s(record), sigma_least, tau_least_s };
    let settled = Settled::of(record);
    let answer = growth::judge_since(&question, settled.since_s);
    (answer, settled, axis)
}

fn planned_s(record: &Record) -> f64 {
    record.manifest.phases.steady_ms as f64 / 1000.0
}

/// Decides.
pub(in crate::judge::resources) fn decide(record: &Record, limit: &Limit, amount: &Amount) -> Decided {
    let (answer, settled, _) = ask(record, limit, amount);
    let planned_s = planned_s(record);
    let said = Said { amount, limit, answer: &answer, settled: &settled, planned_s };
    let observed = match (&answer.outcome, &answer.slope) {
        (Outcome::Invalid { .. }, _) => "not judged".to_owned(),
        (_, Some(slope)) => said.between(slope),
        (_, None) => "not decided".to_owned(),
    };
    let needed_s = match answer.outcome {
        Outcome::Inconclusive { needed_s } => needed_s,
        _ => None,
    };
    let (verdict, text) = match answer.outcome {
        Outcome::Pass => (Verdict::Pass, format!("{}, within {}.", said.grew(), limit.text)),
        Outcome::Fail => (Verdict::Fail, format!("{}, more than {}.", said.grew(), limit.text)),
        Outcome::Inconclusive { needed_s } => (Verdict::Inconclusive, said.undecided(amount.span_s(), needed_s)),
        Outcome::Invalid { why } => (Verdict::Invalid, format!("growth is not judged: {why}.")),
    };
    let grew = answer.slope.as_ref().map(|slope| said.between(slope));
    let upper = answer.slope.map(|slope| slope.upper);
    Decided { verdict, observed, text: text + &said.notes(record), grew, needed_s, upper }
}

/// What is said of an answer.
struct Said<'a> {
    amount: &'a Amount,
    limit: &'a Limit,
    answer: &'a Answer,
    settled: &'a Settled,
    planned_s: f64,
}

impl Said<'_> {
    fn grew(&self) -> String {
        let slope = self.answer.slope.as_ref().map_or_else(String::new, |slope| self.between(slope));
        let blocks = count(self.answer.blocks as u64);
        let what = &self.amount.what;
        format!("{what} grew by {slope} with 95 % confidence on each side, by {blocks} blocks of the steady phase")
    }

    fn between(&self, slope: &Slope) -> String {
        let (size, per) = (self.amount.size, self.limit.axis.per());
        format!("{}{per} (between {} and {})", size(slope.estimate), size(slope.lower), size(slope.upper))
    }

    fn undecided(&self, span_s: f64, needed_s: Option<f64>) -> String {
        let so_far = match self.answer.slope {
            Some(_) => format!(" So far {}.", self.grew()),
            None => String::new(),
        };
        let limit = &self.limit.text;
        match needed_s {
            Some(needed_s) => format!(
                "too short: the steady phase was sampled for {}, about {} would decide {limit}.{so_far}",
                seconds(span_s),
                seconds(needed_s),
            ),
            None => format!("no length of run decides a budget of {limit} here.{so_far}"),
        }
    }

    /// What the series looks like besides, each a sentence with a space before it.
    fn notes(&self, record: &Record) -> String {
        let (size, settled, planned_s) = (self.amount.size, self.settled, self.planned_s);
        let mut text = String::new();
        let mut note = |sentence: String| {
            text.push(' ');
            text.push_str(&sentence);
        };
        let shape = &self.answer.shape;
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
        match self.answer.warm_up {
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
}

/// The faults that were active at a time, as the end of a sentence.
fn during(record: &Record, t_s: f64) -> String {
    let row = record.intervals.iter().find(|row| t_s * 1000.0 <= row.end_ms as f64);
    let active = row.map(|row| row.faults_active.as_slice()).unwrap_or_default();
    let planned = record.manifest.faults.iter().filter(|fault| active.contains(&fault.id));
    let names: Vec<&str> = planned.map(|fault| fault.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", during {}", names.join(" and ")) }
}

/// Bytes that may be negative, less than one, or without a bound.
pub(in crate::judge::resources) fn size_of_bytes(bytes: f64) -> String {
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

/// A number of no unit, as [`size_of_bytes`].
pub(in crate::judge::resources) fn size_of_count(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    if number.is_finite() { format!("{sign}{}", three_digits(number.abs())) } else { format!("{sign}any number") }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
pub(super) fn seconds(seconds: f64) -> String {
    millis((seconds * 1000.0) as u64)
}
