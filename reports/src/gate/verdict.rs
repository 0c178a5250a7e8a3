//! The verdict of a gate, by pure functions of its record.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::certificate::{self, RESAMPLES, certificate};
use super::decide::{Decision, Word, decide};
use super::metric::{Load, Metric, RULES, Rule, Scale};
use super::order::{BLOCK, Side};
use super::pairs::{Pairs, median, pairs};
use super::pressure;
use super::record::{Header, Record, SCHEMA, Shortened};
use super::slice::Slice;
use crate::exit;
use crate::words::{count, counted, percent};

/// Minimum number of pairs that can decide a metric; bounds exist from five pairs on.
pub const PAIRS_LEAST: usize = 6;
/// The largest fraction of failed requests of a baseline that can be compared.
const BASELINE_FAILS_MOST: f64 = 0.01;

/// The outcome of a whole gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A metric is better and none is worse.
    Better,
    /// No metric is worse or better by more than its limit.
    Same,
    /// A metric is worse in two sessions.
    Worse,
    /// The machine is too noisy, or the gate too short, for a decision.
    CannotSay,
    /// The measurements of the gate cannot be trusted.
    Invalid,
}

impl Outcome {
    pub fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::Worse => "worse",
            Self::CannotSay => "cannot say",
            Self::Invalid => "invalid",
        }
    }

    /// The exit code, as for a soak: 0 same or better, 1 worse, 2 not decided.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Better | Self::Same => exit::PASS,
            Self::Worse => exit::FAIL,
            Self::CannotSay => exit::INCONCLUSIVE,
            Self::Invalid => exit::INVALID,
        }
    }
}

/// Maximum number of metrics that the reason of a verdict names.
const NAMED_MAX: usize = 2;

/// The judgement of a gate, with all rows of its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The verdict.
    pub outcome: Outcome,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// The exit code.
    pub exit_code: u8,
    /// The two builds and the settings of the comparison.
    pub header: Header,
    /// The results for the metrics, counts first.
    pub rows: Vec<Row>,
    /// The number of measurements.
    pub slices: usize,
    /// The measurements that were dropped.
    pub dropped: Vec<Dropped>,
    /// The number of sessions: 2 if a result had to be confirmed.
    pub sessions: u32,
    /// How often this gate would raise a false alarm on this machine, as a fraction: identical builds called worse by
    /// any metric in two sessions.
    pub false_alarm: Option<f64>,
    /// Reasons why values could not be measured.
    pub notes: Vec<String>,
}

/// A measurement of a gate that was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The number of the session.
    pub session: u32,
    /// The number of the block, from 0.
    pub block: u32,
    /// The index of the measurement in its block, 0 to 3.
    pub place: u32,
    /// The reason why the measurement was dropped.
    pub why: String,
}

/// The result of one metric: a row of the gate's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The metric of this row.
    pub metric: Metric,
    /// The metric's name for people.
    pub name: String,
    /// The decision about build B, compared with A.
    pub word: Word,
    /// The decision about B from the first session alone.
    pub first: Word,
    /// The median of A, in the metric's unit.
    pub a: f64,
    /// The median of B, in the metric's unit.
    pub b: f64,
    /// The change of B compared with A: a fraction (0.05 is 5 % more), or a difference in the metric's unit if values
    /// may be zero.
    pub change: f64,
    /// The lower bound of the change. None for exact counts, or if too few pairs are left.
    pub lower: Option<f64>,
    /// The upper bound of the change. None for exact counts, or if too few pairs are left.
    pub upper: Option<f64>,
    /// The largest change that does not matter.
    pub limit: f64,
    /// The number of pairs that were compared; 0 for exact counts.
    pub pairs: usize,
    /// How often this metric would call identical builds worse in two sessions, as a fraction.
    pub false_alarm: Option<f64>,
    /// The smallest change that two sessions would call worse with a probability of 80 %.
    pub smallest: Option<f64>,
    /// The decision on each build compared with itself; none if too few measurements are left.
    pub halves: Option<Word>,
    /// Whether the gate cannot pass while this metric is undecided.
    pub leads: bool,
    /// The change in each pair, B compared with A, in the unit of `change`, for a chart.
    pub points: Vec<f64>,
}

pub fn judge(record: &Record) -> Judgement {
    judge_by(record, RESAMPLES)
}

/// Like [`judge`], with another number of random choices of signs for the A/A certificate; 0 omits the certificate.
pub(crate) fn judge_by(record: &Record, resamples: usize) -> Judgement {
    let why = pressure::dropped(&record.slices);
    let mut rows: Vec<Row> = RULES.iter().filter_map(|rule| row(record, &why, rule, resamples)).collect();
    let pressed = pressed(record, &why);
    // Too few pairs decide nothing; pressure does not change exact counts.
    for row in rows.iter_mut().filter(|row| pressed.is_some() && row.pairs > 0) {
        (row.first, row.word) = (Word::CannotSay, Word::CannotSay);
    }
    let sessions = record.slices.iter().map(|slice| slice.session).max().unwrap_or(1);
    let of = |(slice, why): (&Slice, &Option<String>)| {
        let why = why.clone()?;
        Some(Dropped { session: slice.session, block: slice.block, place: slice.place, why })
    };
    let (outcome, reason) = match (invalid(record), whole(&rows, sessions), pressed) {
        (Some(why), ..) => (Outcome::Invalid, why),
        (None, (Outcome::Worse, reason), _) => (Outcome::Worse, reason),
        (None, _, Some(pressed)) => (Outcome::CannotSay, pressed),
        (None, decided, None) => decided,
    };
    let alarms: Vec<f64> = rows.iter().filter_map(|row| row.false_alarm).collect();
    Judgement {
        schema: SCHEMA.to_owned(),
        outcome,
        reason,
        exit_code: outcome.exit_code(),
        header: record.header.clone(),
        false_alarm: (!alarms.is_empty()).then(|| certificate::together(alarms)),
        rows,
        slices: record.slices.len() + record.replaced.len(),
        dropped: record.slices.iter().zip(&why).filter_map(of).collect(),
        sessions,
        notes: notes(record),
    }
}

fn notes(record: &Record) -> Vec<String> {
    let mut notes = record.notes.clone();
    if !record.replaced.is_empty() {
        let (many, all) = (record.replaced.len() as u64, record.slices.len() as u64);
        notes.push(format!(
            "{} of {all} were played again, because the machine was under pressure",
            counted(many, "slice")
        ));
    }
    notes.extend(record.shortened.iter().map(|one| shortened(record, *one)));
    notes
}

fn shortened(record: &Record, one: Shortened) -> String {
    let (session, played, planned) = (one.session, counted(u64::from(one.blocks), "block"), record.header.blocks);
    format!("session {session} has {played} instead of {planned}, because its time was up")
}

/// Whether a second session of the gate has to confirm the result of the first session.
pub fn wants_confirmation(judgement: &Judgement) -> bool {
    let valid = judgement.outcome != Outcome::Invalid;
    valid && judgement.sessions == 1 && judgement.rows.iter().any(|row| row.first == Word::Worse)
}

/// Why the measurements of a gate cannot be trusted; none if they can.
fn invalid(record: &Record) -> Option<String> {
    let first: Vec<&Slice> = record.slices.iter().filter(|slice| slice.session == 1).collect();
    let planned = (record.blocks(1) * BLOCK) as usize;
    if first.len() < planned {
        let why = record.notes.last().map(|note| format!(": {note}")).unwrap_or_default();
        return Some(format!("it ended after {} of {planned} slices{why}", first.len()));
    }
    let differ = |pair: &[Slice]| pair.len() == 2 && pair[0].fingerprint != pair[1].fingerprint;
    if record.slices.chunks(2).any(differ) {
        return Some("the two slices of a pair did not send the same payloads".to_owned());
    }
    let all = vec![None; record.slices.len()];
    let baseline = [
        (Metric::Failures, "failed", "requests"),
        (Metric::EventFailures, "missed or was late with", "events"),
        (Metric::StartFailures, "died or did not become ready in", "starts"),
    ];
    for (metric, what, of) in baseline {
        let fails = median(&pairs(&record.slices, &all, 1, metric).a);
        if fails > BASELINE_FAILS_MOST {
            return Some(format!("A {what} {} of its {of}, so there is no baseline", percent(fails)));
        }
    }
    None
}

/// Why too few pairs are left for a decision because of the machine's load; none if enough are left.
fn pressed(record: &Record, why: &[Option<String>]) -> Option<String> {
    // A metric that every slice of this load has.
    let steady = match record.header.load() {
        Load::Reviews => Metric::Failures,
        Load::Starts => Metric::StartFailures,
        Load::Events | Load::Either => Metric::CpuPerEvent,
    };
    let all = (record.blocks(1) * BLOCK) as usize / 2;
    let left = pairs(&record.slices, why, 1, steady).between.len();
    if left >= PAIRS_LEAST && left * 2 >= all {
        return None;
    }
    let example = why.iter().flatten().next().map(|why| format!(", such as: {why}")).unwrap_or_default();
    let again = match record.replaced.len() as u64 {
        0 => String::new(),
        again => format!(" and after {} were played again", counted(again, "slice")),
    };
    Some(format!(
        "the machine was under pressure: only {left} of {all} pairs are left when slices under pressure are dropped{again}{example}. Play it on a quieter machine, or with more `--blocks`"
    ))
}

/// The pairs of measurements of which one measurement was dropped, in order. Each pair is given by its block and by the
/// index of the first of its two measurements.
pub fn halves_dropped(record: &Record, session: u32) -> Vec<(u32, u32)> {
    let why = pressure::dropped(&record.slices);
    let dropped = record.slices.iter().zip(&why).filter(|(slice, why)| slice.session == session && why.is_some());
    let halves: BTreeSet<(u32, u32)> = dropped.map(|(slice, _)| (slice.block, slice.place / 2 * 2)).collect();
    halves.into_iter().collect()
}

fn whole(rows: &[Row], sessions: u32) -> (Outcome, String) {
    let of = |word: Word| rows.iter().filter(move |row| row.word == word);
    // One line: the table below has all rows.
    let named = |rows: Vec<&Row>| {
        let more = rows.len().saturating_sub(NAMED_MAX) as u64;
        let more = (more > 0).then(|| format!("{} more", count(more)));
        rows.iter().take(NAMED_MAX).map(|row| row_text(row)).chain(more).collect::<Vec<_>>().join("; ")
    };
    let worse: Vec<&Row> = of(Word::Worse).collect();
    if !worse.is_empty() {
        return (Outcome::Worse, format!("B is worse than A: {}", named(worse)));
    }
    let unconfirmed: Vec<&Row> = rows.iter().filter(|row| row.first == Word::Worse).collect();
    if let (false, 1) = (unconfirmed.is_empty(), sessions) {
        return (
            Outcome::CannotSay,
            format!("no second session confirmed the result of the first: {}", named(unconfirmed)),
        );
    }
    let open: Vec<&Row> = of(Word::CannotSay).filter(|row| row.leads || row.first == Word::Worse).collect();
    if !open.is_empty() {
        return (Outcome::CannotSay, format!("not decided: {}", named(open)));
    }
    if rows.iter().all(|row| !row.leads) {
        return (Outcome::CannotSay, "no deciding metric was measured".to_owned());
    }
    let better: Vec<&Row> = of(Word::Better).collect();
    if !better.is_empty() {
        return (Outcome::Better, format!("B is better than A, and no metric is worse: {}", named(better)));
    }
    let open = of(Word::CannotSay).count() as u64;
    let rest = if open > 0 { format!("; {} could not be decided", counted(open, "other")) } else { String::new() };
    (Outcome::Same, format!("no change that matters, in {}{rest}", counted(of(Word::Same).count() as u64, "metric")))
}

/// The result of a metric as text within a sentence. The change is computed pair by pair, so the medians of all
/// measurements need not agree with it. The value beside the change is the median of A multiplied by this change.
fn row_text(row: &Row) -> String {
    let rule = row.metric.rule();
    if row.pairs == 0 {
        return format!("{} {} ({} against {})", row.name, row.shown(row.change), rule.value(row.b), rule.value(row.a));
    }
    let changed = match rule.scale {
        Scale::Ratio { .. } => row.a * (1.0 + row.change),
        Scale::Difference { .. } => row.a + row.change,
    };
    let (before, after) = (rule.value(row.a), rule.value(changed.max(0.0)));
    format!("{} {} pair by pair (as from {before} to {after})", row.name, row.shown(row.change))
}

impl Row {
    pub fn shown(&self, change: f64) -> String {
        self.metric.rule().change_text(change)
    }
}

/// The result of a metric; none if it was not measured.
fn row(record: &Record, why: &[Option<String>], rule: &'static Rule, resamples: usize) -> Option<Row> {
    let session = |number| pairs(&record.slices, why, number, rule.metric);
    let (first, second) = (session(1), session(2));
    let Some(alone) = decide(&first.between, rule.limit(median(&first.a))) else { return exact(record, rule) };
    let limit = rule.limit(median(&first.a));
    let again = decide(&second.between, limit);
    let all = Pairs {
        between: [first.between.clone(), second.between].concat(),
        within: Vec::new(),
        a: [first.a.clone(), second.a].concat(),
        b: [first.b.clone(), second.b].concat(),
    };
    let pooled = decide(&all.between, limit).unwrap_or(alone);
    let certificate = certificate(&first, limit, record.header.seed, resamples);
    let change = |place: f64| change(rule, place);
    let Decision { estimate, lower, upper, .. } = pooled;
    Some(Row {
        metric: rule.metric,
        name: rule.name.to_owned(),
        word: confirmed(alone.word, again.map(|again| again.word), pooled.word),
        first: alone.word,
        a: median(&all.a),
        b: median(&all.b),
        change: change(estimate),
        lower: lower.map(change),
        upper: upper.map(change),
        limit: change(limit),
        pairs: all.between.len(),
        false_alarm: certificate.map(|certificate| certificate.false_alarm),
        smallest: certificate.map(|certificate| change(certificate.smallest)),
        halves: certificate.and_then(|certificate| certificate.halves),
        leads: rule.leads_in(record.header.load()),
        points: all.between.into_iter().map(change).collect(),
    })
}

/// The combined decision of two sessions about a metric: "worse" needs both sessions.
fn confirmed(first: Word, second: Option<Word>, pooled: Word) -> Word {
    match (first, second) {
        (Word::Worse, Some(Word::Worse)) => Word::Worse,
        _ if pooled == Word::Worse => Word::CannotSay,
        _ => pooled,
    }
}

/// Converts a change from the scale on which pairs are compared to the unit of a row.
fn change(rule: &Rule, place: f64) -> f64 {
    match rule.scale {
        Scale::Ratio { .. } => place.exp_m1(),
        Scale::Difference { .. } => place,
    }
}

/// The result of a metric that is an exact count. B is worse only if every count of B is above every count of A, by
/// more than the limit.
fn exact(record: &Record, rule: &'static Rule) -> Option<Row> {
    let of = |side: Side, session: u32| {
        let counted = record.counted.iter().filter(move |one| {
            one.metric == rule.metric && one.side == side && one.session == session && one.value.is_finite()
        });
        counted.map(|one| one.value).collect::<Vec<f64>>()
    };
    let word = |session: u32| {
        let (a, b) = (of(Side::A, session), of(Side::B, session));
        let (a_least, a_most) = ends(&a)?;
        let (b_least, b_most) = ends(&b)?;
        let limit = rule.limit(a_most);
        let (least, most) = (rule.against(a_most, b_least)?, rule.against(a_least, b_most)?);
        Some(if least > limit {
            Word::Worse
        } else if most < -limit {
            Word::Better
        } else if least > -limit && most < limit {
            Word::Same
        } else {
            Word::CannotSay
        })
    };
    let first = word(1)?;
    let second = word(2);
    let all = |side: Side| [of(side, 1), of(side, 2)].concat();
    let (a, b) = (median(&all(Side::A)), median(&all(Side::B)));
    let limit = rule.limit(a);
    Some(Row {
        metric: rule.metric,
        name: rule.name.to_owned(),
        word: confirmed(first, second, if first == Word::Worse { Word::CannotSay } else { second.unwrap_or(first) }),
        first,
        a,
        b,
        change: change(rule, rule.against(a, b)?),
        lower: None,
        upper: None,
        limit: change(rule, limit),
        pairs: 0,
        false_alarm: None,
        smallest: Some(change(rule, limit)),
        halves: None,
        leads: rule.leads_in(record.header.load()),
        points: Vec::new(),
    })
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    Some((least, values.iter().copied().reduce(f64::max)?))
}

#[cfg(test)]
mod tests;
