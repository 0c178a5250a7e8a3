//! The text of the decision whether one amount, such as memory, grows faster than its budget.
//!
//! Owns the text of the decision; [`crate::growth`] decides. If the subject was started again, or samples are missing
//! for long, the time ranges between these breaks are judged one by one (`parts.rs`). If memory grew too fast in one of
//! these time ranges, the budget is broken, whatever later ones show.

use super::amount::Amount;
use super::axis::Axis;
use super::parts::{self, Stretch};
use super::settled::Settled;
use crate::growth::{self, Answer, Outcome, Question, WarmUp};
use crate::judge::Verdict;
use crate::judge::resources::anew;
use crate::record::{Phase, Record};
use crate::statistics::blocks::Series;
use crate::statistics::theil_sen::Slope;
use crate::words::{count, millis, three_digits};

pub(in crate::judge::resources) struct Limit {
    /// Maximum growth of the amount for each unit of the axis.
    pub most: f64,
    pub text: String,
    pub axis: Axis,
}

impl Limit {
    /// The limit converted to growth per second, by how far the axis moved in the steady phase.
    pub(super) fn per_second(&self, record: &Record) -> f64 {
        let steady = record.intervals.iter().filter(|row| row.phase == Phase::Steady);
        let (from, to) = steady.fold((u64::MAX, 0), |(from, to), row| (from.min(row.start_ms), to.max(row.end_ms)));
        let (from_s, to_s) = (from as f64 / 1000.0, to as f64 / 1000.0);
        let scale = self.axis.of(record);
        if to_s > from_s { self.most * (scale.at(to_s) - scale.at(from_s)) / (to_s - from_s) } else { 0.0 }
    }
}

#[derive(Debug)]
pub(in crate::judge::resources) struct Decided {
    pub verdict: Verdict,
    pub observed: String,
    /// The text of the finding: one or more sentences.
    pub text: String,
    /// The growth of the amount, as the end of a sentence; none if it is unknown.
    pub grew: Option<String>,
    /// The length of a steady phase that would decide the budget, in seconds.
    pub needed_s: Option<f64>,
    /// The upper bound of the growth, in units of the limit.
    pub upper: Option<f64>,
    /// The lower bound of the growth over the whole judged time, in the amount's unit; 0 if it is unknown.
    pub least: f64,
    /// Whether the samples cannot be judged, however long the run is.
    pub is_unusable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// The number of series that are judged against one budget.
    pub looks: usize,
    /// Whether the series has gaps; a series with gaps can fail but not pass.
    pub holed: bool,
}

impl Look {
    /// The conditions for judging a series without a gap, which is one of `looks` series.
    pub(super) fn of(looks: usize) -> Self {
        Self { looks, holed: false }
    }
}

/// The growth judge's answer, the time from which other series were steady, and the position of each value on the axis.
pub(super) fn ask(record: &Record, limit: &Limit, amount: &Amount, look: Look) -> (Answer, Settled, Vec<f64>) {
    let Look { looks, holed } = look;
    let scale = limit.axis.of(record);
    let axis: Vec<f64> = amount.t_s.iter().map(|t_s| scale.at(*t_s)).collect();
    let series = Series { t_s: &amount.t_s, value: &amount.value, axis: &axis };
    let (sigma_least, tau_least_s) = (amount.sigma_least, growth::length::TAU_S);
    let question =
        Question { series, budget: limit.most, planned_s: planned_s(record), sigma_least, tau_least_s, looks };
    let mut settled = Settled::of(record);
    // Another series that settled only after the middle of a part shows nothing about that part.
    let middle_s = amount.t_s.get(amount.t_s.len() / 2).copied().unwrap_or_default();
    if looks > 1 && settled.since_s > middle_s {
        settled = Settled::default();
    }
    let judge = if holed { growth::judge_holed } else { growth::judge_since };
    let answer = judge(&question, settled.since_s);
    (answer, settled, axis)
}

fn planned_s(record: &Record) -> f64 {
    record.manifest.phases.steady_ms as f64 / 1000.0
}

pub(in crate::judge::resources) fn decide(record: &Record, limit: &Limit, amount: &Amount) -> Decided {
    let parts = parts::of(record, amount);
    if let [only] = parts.as_slice() {
        return one(record, limit, &only.amount, Look::of(1));
    }
    let holed = parts::holed(record, amount);
    let looks = parts.len() + holed.len();
    let each = || parts.iter().map(|part| (part, one(record, limit, &part.amount, Look::of(looks))));
    let longest = each().max_by(|(a, _), (b, _)| a.amount.span_s().total_cmp(&b.amount.span_s()));
    let place = |part: &Stretch| format!("from {} to {}", seconds(part.begin_s()), seconds(part.end_s()));
    let broken = parts::broken(record, amount);
    let sentence = broken.replacen("the", "The", 1);
    let across = holed.iter().map(|part| (part, one(record, limit, &part.amount, Look { looks, holed: true })));
    if let Some((part, decided)) = each().chain(across).find(|(_, decided)| decided.verdict == Verdict::Fail) {
        let text = format!("{}, {} {sentence}.", place(part), decided.text);
        return Decided { text, ..decided };
    }
    match longest {
        Some((part, decided)) if decided.verdict == Verdict::Pass => {
            let text = format!("{}, {} {sentence}.", place(part), decided.text);
            Decided { text, ..decided }
        }
        Some((part, decided)) if decided.grew.is_some() => {
            let text =
                format!("growth is not judged: {broken}. The longest part was {}: {}", place(part), decided.text);
            let observed = parts::observed(record).to_owned();
            // Another series may cover a gap of this one; a process that ended is over for every series.
            let is_unusable = anew(record).is_none();
            Decided { verdict: Verdict::Inconclusive, observed, text, is_unusable, ..decided }
        }
        _ => Decided {
            verdict: Verdict::Inconclusive,
            observed: parts::observed(record).to_owned(),
            text: format!("growth is not judged: {broken}. No part of the run is long enough by itself."),
            grew: None,
            needed_s: Some(planned_s(record)),
            upper: None,
            least: 0.0,
            is_unusable: true,
        },
    }
}

/// The time range that decides, if the series is cut into several, and how the samples in this time range were judged.
pub(super) fn deciding(record: &Record, limit: &Limit, amount: &Amount) -> Option<(Amount, Look)> {
    let mut parts = parts::of(record, amount);
    if parts.len() < 2 {
        return parts.into_iter().next().map(|part| (part.amount, Look::of(1)));
    }
    let holed = parts::holed(record, amount);
    let look = Look::of(parts.len() + holed.len());
    parts.sort_by(|a, b| b.amount.span_s().total_cmp(&a.amount.span_s()));
    let longest = parts.first().map(|part| (part.amount.at(0..part.amount.t_s.len()), look));
    let across = holed.into_iter().map(|part| (part.amount, Look { holed: true, ..look }));
    let mut all = parts.into_iter().map(|part| (part.amount, look)).chain(across);
    all.find(|(amount, look)| one(record, limit, amount, *look).verdict == Verdict::Fail).or(longest)
}

/// Decides by one series of samples, which has no break or is judged in spite of its gaps.
fn one(record: &Record, limit: &Limit, amount: &Amount, look: Look) -> Decided {
    let (answer, settled, axis) = ask(record, limit, amount, look);
    let planned_s = planned_s(record);
    let said = Wording { amount, limit, answer: &answer, settled: &settled, planned_s };
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
        // This budget is undecided; other measurements still count.
        Outcome::Invalid { why } => (Verdict::Inconclusive, format!("growth is not judged: {why}.")),
    };
    let grew = answer.slope.as_ref().map(|slope| said.between(slope));
    let moved = axis.last().zip(axis.first()).map_or(0.0, |(last, first)| last - first);
    let least = answer.slope.as_ref().map_or(0.0, |slope| (slope.lower * moved).max(0.0));
    let upper = answer.slope.map(|slope| slope.upper);
    let is_unusable = matches!(answer.outcome, Outcome::Invalid { .. });
    Decided { verdict, observed, text: text + &said.notes(record), grew, needed_s, upper, least, is_unusable }
}

/// Writes the text of a decision on growth.
struct Wording<'a> {
    amount: &'a Amount,
    limit: &'a Limit,
    answer: &'a Answer,
    settled: &'a Settled,
    planned_s: f64,
}

impl Wording<'_> {
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

    /// Sentences about the features of the series' shape, each with a space before it.
    fn notes(&self, record: &Record) -> String {
        let (size, settled, planned_s) = (self.amount.size, self.settled, self.planned_s);
        let mut text = String::new();
        let mut note = |sentence: String| {
            text.push(' ');
            text.push_str(&sentence);
        };
        let (t_s, value) = (&self.amount.t_s, &self.amount.value);
        let bridged_s = growth::bridged_s(&Series { t_s, value, axis: t_s });
        if let Some(bridged_s) = bridged_s.filter(|_| self.answer.slope.is_some()) {
            note(format!("Times without a sample, of up to {}, are bridged.", seconds(bridged_s)));
        }
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
                "It rises and falls by {} every {}; its minima are judged.",
                size(teeth.height),
                seconds(teeth.period_s)
            ));
        }
        match self.answer.warm_up {
            WarmUp::None => {}
            WarmUp::Until { t_s } if settled.since_s >= t_s => {
                let last = settled.last.unwrap_or_default();
                note(format!("The time before {} counts as warm-up: {last} was not steady yet.", seconds(t_s)));
            }
            WarmUp::Until { t_s } => note(format!("The time before {} counts as warm-up.", seconds(t_s))),
            WarmUp::Never => note(format!("It was never steady in {}.", seconds(planned_s))),
        }
        if !settled.never.is_empty() {
            note(format!("Never steady in {}: {}.", seconds(planned_s), settled.never.join(", ")));
        }
        text
    }
}

/// The faults that were active at `t_s`, as the end of a sentence.
fn during(record: &Record, t_s: f64) -> String {
    let row = record.intervals.iter().find(|row| t_s * 1000.0 <= row.end_ms as f64);
    let active = row.map(|row| row.faults_active.as_slice()).unwrap_or_default();
    let planned = record.manifest.faults.iter().filter(|fault| active.contains(&fault.id));
    let names: Vec<&str> = planned.map(|fault| fault.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", during {}", names.join(" and ")) }
}

/// A number of bytes as text; it may be negative, less than one, or infinite.
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

/// A number without a unit as text, like [`size_of_bytes`].
pub(in crate::judge::resources) fn size_of_count(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    if number.is_finite() { format!("{sign}{}", three_digits(number.abs())) } else { format!("{sign}any number") }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
pub(super) fn seconds(seconds: f64) -> String {
    millis((seconds * 1000.0) as u64)
}
