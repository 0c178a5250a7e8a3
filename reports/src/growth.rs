//! Whether a series grows faster than it may: one pure function from samples to a verdict with its confidence.
//!
//! Owns the method; `docs/decisions/025-when-growth-is-decided.md` says why it is so. It knows nothing of records and of the names of
//! budgets. Least squares through raw samples must not come back here: memory is autocorrelated, and that cries wolf in a third of
//! clean runs.

use crate::statistics::blocks::{self, Blocks, Nature, Series};
use crate::statistics::saw_tooth::SawTooth;
use crate::statistics::theil_sen::{self, Slope};
use crate::statistics::{self, correlation, normal, quantile};

pub mod calibration;
pub mod length;
mod shape;
#[cfg(test)]
mod tests;
mod warm_up;

pub use shape::Step;
pub use warm_up::WarmUp;

/// The confidence of each bound.
pub const CONFIDENCE: f64 = 0.95;
/// Growth that began late keeps a run from passing only if it is as sure as this: it is looked for after the whole run has passed.
const LATE_CONFIDENCE: f64 = 0.99;
/// Confidence of each bound of the two halves that must not overlap before growth has levelled off: both together about 96 %.
const BEND_CONFIDENCE: f64 = 0.9;
/// A slope whose lower bound is so many budgets is a failure even where the series was never steady, …
const FAR: f64 = 10.0;
/// … as long as its second half grows by at least this share of what the first half does: what slows down may be a start that is not over.
const UNBROKEN: f64 = 0.6;
/// A start or a step that gains less than this share of what the whole run may gain does not matter to the verdict.
const MATTERS: f64 = 0.25;
/// The least share of the scatter that a parabola is believed to leave.
const SCATTER_LEFT_LEAST: f64 = 0.1;
/// Share of the time that samples must cover.
const COVERED_LEAST: f64 = 0.9;
/// A sample stands for at most so many usual distances between samples.
const REACH: f64 = blocks::REACH;
/// Gaps are bridged where none is longer than this, in seconds: a busy machine keeps a reader waiting for some seconds now and then, and of a minute's run each of them would
/// be a hole, …
const BRIDGED_S: f64 = 15.0;
/// … and where samples cover this share of the time all the same.
const BRIDGED_COVERED_LEAST: f64 = 0.8;
/// With less than this share covered even a failure is not looked for.
const HOLED_COVERED_LEAST: f64 = 0.5;
/// Share of the planned length that a pass needs: a plan's promise is not kept by half of its run. A failure needs none.
const PLANNED_LEAST: f64 = 0.9;
/// An interval must be so many times narrower than its distance from the budget to decide in four of five runs: 1 + 0.84 / 1.64.
const POWER: f64 = 1.51;
/// Half an interval that is wider than so many budgets passes nothing: where the noise alone makes slopes of many budgets, one that is
/// steep enough downwards comes by chance in one run of twenty, whatever the subject does.
const WIDTH_MOST: f64 = 1.5;
/// How much longer a run is at most recommended, and how much at least: growth right at its budget is never decided.
const LONGER: (f64, f64) = (1.1, 4.0);

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The samples; what is missing is left out.
    pub series: Series<'a>,
    /// How much the value may grow for each unit of the axis.
    pub budget: f64,
    /// How long the series was planned to be, in seconds.
    pub planned_s: f64,
    /// The least scatter that is believed, in the unit of the value: a quiet minute does not vouch for an hour.
    pub sigma_least: f64,
    /// The least correlation time that is believed, in seconds: a short series cannot tell a long one from growth.
    pub tau_least_s: f64,
    /// How many series are asked about one budget, of which any may break it: each has its share of the chance of a false alarm.
    pub looks: usize,
}

impl Question<'_> {
    /// The confidence of each bound: over all looks together it is [`CONFIDENCE`].
    fn confidence(&self) -> f64 {
        1.0 - (1.0 - CONFIDENCE) / self.looks.max(1) as f64
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// With 95 % confidence it grows more slowly than it may.
    Pass,
    /// With 95 % confidence it grows faster than it may.
    Fail,
    /// Neither is sure.
    Inconclusive {
        /// The length that would decide, in seconds; none where no length would.
        needed_s: Option<f64>,
    },
    /// The series cannot be trusted.
    Invalid {
        /// Why not.
        why: Why,
    },
}

/// Why a series says nothing about growth. Reads after "growth is not judged: ".
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Why {
    /// Too many samples are missing.
    #[error("samples cover only {:.0} % of the time", 100.0 * covered)]
    Missing {
        /// The share of time that they cover.
        covered: f64,
    },
    /// There is a hole as long as a block.
    #[error("there are no samples for {gap_s:.0} s")]
    Hole {
        /// Its length, in seconds.
        gap_s: f64,
    },
    /// What growth is to be judged against did not happen.
    #[error("the events that it is judged against did not happen")]
    AxisStill,
    /// The samples cannot be computed with.
    #[error("the samples are not usable: {0}")]
    Unusable(statistics::Error),
}

/// What the series looks like besides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shape {
    /// It grew early and then no more.
    pub levelled_off: bool,
    /// It grew only late.
    pub late: bool,
    /// Its level changed at once.
    pub step: Option<Step>,
    /// It rises slowly and falls at once, again and again.
    pub saw_tooth: Option<SawTooth>,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// What became of it.
    pub outcome: Outcome,
    /// The slope that decided, in units of the value for each unit of the axis: of the whole series, without a step, or since it
    /// levelled off. None where it came to none.
    pub slope: Option<Slope>,
    /// What was cut at the start.
    pub warm_up: WarmUp,
    /// What it looks like besides.
    pub shape: Shape,
    /// Its scatter, correlation time and saw-tooth; none where it came to none.
    pub nature: Option<Nature>,
    /// How many blocks the slope was taken through.
    pub blocks: usize,
}

/// Decides. O(n log n) in the number of samples, which is capped at [`blocks::SAMPLES_MAX`].
pub fn judge(question: &Question<'_>) -> Answer {
    judge_since(question, f64::NEG_INFINITY)
}

/// Where the warm-up of a series ends: its level is not that of the rest before. None where the series is too short to say. What is less
/// than `matters`, in the unit of the value, is not looked at.
pub fn warm_up(series: &Series<'_>, matters: f64) -> Option<WarmUp> {
    let nature = blocks::nature(series).ok()?;
    Some(warm_up::find(&blocks::reduce(series, &nature).ok()?, matters))
}

/// Decides by what is since a time, in seconds of the series: something else was not steady before it.
pub fn judge_since(question: &Question<'_>, since_s: f64) -> Answer {
    judge_trusted(question, since_s, untrustworthy)
}

/// The same of a series with holes, as far as it proves a failure: what was not seen does not make less of what was. It never passes.
pub fn judge_holed(question: &Question<'_>, since_s: f64) -> Answer {
    let answer = judge_trusted(question, since_s, |series| {
        let Sampled { covered, .. } = Sampled::of(series);
        still(series).or((covered < HOLED_COVERED_LEAST).then_some(Why::Missing { covered }))
    });
    match answer.outcome {
        Outcome::Pass => Answer { outcome: Outcome::Inconclusive { needed_s: None }, ..answer },
        _ => answer,
    }
}

fn judge_trusted(question: &Question<'_>, since_s: f64, untrustworthy: impl Fn(&Series<'_>) -> Option<Why>) -> Answer {
    let series = &question.series;
    let nothing = |outcome| Answer {
        outcome,
        slope: None,
        warm_up: WarmUp::None,
        shape: Shape::default(),
        nature: None,
        blocks: 0,
    };
    match series.check() {
        Err(statistics::Error::TooFew { .. }) => {
            let needed_s = (question.planned_s > series.span_s()).then_some(question.planned_s);
            return nothing(Outcome::Inconclusive { needed_s });
        }
        Err(error) => return nothing(Outcome::Invalid { why: Why::Unusable(error) }),
        Ok(()) => {}
    }
    if let Some(why) = untrustworthy(series) {
        return nothing(Outcome::Invalid { why });
    }
    match Steady::of(question, since_s) {
        Ok(steady) => steady.decide(question),
        Err((warm_up, error, nature)) => {
            let shape = Shape { saw_tooth: nature.and_then(|nature| nature.saw_tooth), ..Shape::default() };
            let outcome = unfit(question, error, nature);
            Answer { warm_up, shape, nature, ..nothing(outcome) }
        }
    }
}

/// The part of a series that is judged.
struct Steady {
    warm_up: WarmUp,
    nature: Nature,
    blocks: Blocks,
    step: Option<Step>,
    axis: Vec<f64>,
    values: Vec<f64>,
    /// The error of a slope over one second, in units of the value for each unit of the axis, that the least correlation time makes; over
    /// a longer time it falls with the power 3/2.
    error: f64,
    /// Of each bound of the slopes.
    confidence: f64,
}

type Unfit = (WarmUp, statistics::Error, Option<Nature>);

impl Steady {
    fn of(question: &Question<'_>, since_s: f64) -> Result<Self, Unfit> {
        let cut = question.series.t_s.first().is_some_and(|first_s| *first_s < since_s);
        let given = if cut { WarmUp::Until { t_s: since_s } } else { WarmUp::None };
        let whole = &question.series.from(since_s);
        let none = |error| (given, error, None);
        let mut nature = blocks::nature(whole).map_err(none)?;
        let mut blocks = blocks::reduce(whole, &nature).map_err(|error| (given, error, Some(nature)))?;
        let mut series = *whole;
        let matters = MATTERS * per_second(question) * whole.span_s();
        // A step is told as what it is; only what has none may have a warm-up.
        let step = shape::step(whole, &blocks, nature.saw_tooth.is_some(), matters);
        let found = if step.is_some() { WarmUp::None } else { warm_up::find(&blocks, matters) };
        let warm_up = if found == WarmUp::None { given } else { found };
        if let WarmUp::Until { t_s } = found {
            series = whole.from(t_s);
            nature = blocks::nature(&series).map_err(|error| (warm_up, error, Some(nature)))?;
            blocks = blocks::reduce(&series, &nature).map_err(|error| (warm_up, error, Some(nature)))?;
        }
        let (axis, values) = blocks.blocks.iter().map(|block| (block.axis, block.value)).unzip();
        let error = error(question, &series, &nature, step.as_ref());
        Ok(Self { warm_up, nature, blocks, step, axis, values, error, confidence: question.confidence() })
    }

    fn decide(&self, question: &Question<'_>) -> Answer {
        let shape = Shape { step: self.step, saw_tooth: self.nature.saw_tooth, ..Shape::default() };
        let blocks = self.blocks.blocks.len();
        let answer = |outcome, slope, shape| Answer {
            outcome,
            slope: Some(slope),
            warm_up: self.warm_up,
            shape,
            nature: Some(self.nature),
            blocks,
        };
        match self.weigh(question, shape) {
            Ok((side, slope, shape)) => {
                let outcome = match side {
                    Side::Above if self.is_far_above(question.budget) => Outcome::Fail,
                    _ if self.warm_up == WarmUp::Never => {
                        Outcome::Inconclusive { needed_s: Some(LONGER.1 * question.series.span_s()) }
                    }
                    Side::Below if question.series.span_s() < PLANNED_LEAST * question.planned_s => {
                        Outcome::Inconclusive { needed_s: Some(question.planned_s) }
                    }
                    Side::Below if slope.upper - slope.estimate > WIDTH_MOST * question.budget => {
                        Outcome::Inconclusive { needed_s: self.longer(question, &slope) }
                    }
                    Side::Below => Outcome::Pass,
                    Side::Above => Outcome::Fail,
                    Side::Between => Outcome::Inconclusive { needed_s: self.longer(question, &slope) },
                };
                answer(outcome, slope, shape)
            }
            Err(error) => {
                let unknown = Slope { estimate: 0.0, lower: f64::NEG_INFINITY, upper: f64::INFINITY };
                Answer { slope: None, ..answer(unfit(question, error, Some(self.nature)), unknown, shape) }
            }
        }
    }

    /// Whether the second half alone is far above the budget and has not slowed down: then it does not matter when the start was over.
    fn is_far_above(&self, budget: f64) -> bool {
        let half = self.values.len() / 2;
        let first = self.slope(0..half, LATE_CONFIDENCE);
        let second = self.slope(half..self.values.len(), LATE_CONFIDENCE);
        first
            .ok()
            .zip(second.ok())
            .is_some_and(|(first, second)| second.lower > FAR * budget && second.estimate >= UNBROKEN * first.estimate)
    }

    /// On which side of the budget the slope is, which slope it was that told, and what else was seen.
    fn weigh(&self, question: &Question<'_>, mut shape: Shape) -> Result<(Side, Slope, Shape), statistics::Error> {
        let budget = question.budget;
        let whole = self.slope(0..self.values.len(), self.confidence)?;
        // What comes with a step is not growth, and what goes with one does not make good for growth.
        if let Some(step) = self.step {
            let within = self.without(&step)?;
            let (raw, side) = (Side::of(&whole, budget), Side::of(&within, budget));
            let excused = step.by > 0.0 || raw == Side::Below || side == Side::Above;
            return Ok(if excused && raw != side { (side, within, shape) } else { (raw, whole, shape) });
        }
        let half = self.values.len() / 2;
        let second = self.slope(half..self.values.len(), self.confidence)?;
        let side = Side::of(&whole, budget);
        if side == Side::Below {
            let late = self.slope(half..self.values.len(), LATE_CONFIDENCE)?;
            shape.late = late.lower > budget;
            return Ok(if shape.late { (Side::Between, late, shape) } else { (side, whole, shape) });
        }
        let first = self.slope(0..half, BEND_CONFIDENCE)?;
        let bent = self.slope(half..self.values.len(), BEND_CONFIDENCE)?;
        shape.levelled_off = first.lower > bent.upper;
        if Side::of(&second, budget) == Side::Below && (shape.levelled_off || side == Side::Above) {
            shape.levelled_off = true;
            return Ok((Side::Below, second, shape));
        }
        // It bends, but how flat the rest is cannot be told yet.
        Ok(if shape.levelled_off { (Side::of(&second, budget), second, shape) } else { (side, whole, shape) })
    }

    fn slope(&self, part: std::ops::Range<usize>, confidence: f64) -> Result<Slope, statistics::Error> {
        let length_s = self.blocks.length_s * part.len() as f64;
        let (axis, values) = (&self.axis[part.clone()], &self.values[part]);
        let slope = theil_sen::slope(axis, values, confidence, self.blocks.inflation())?;
        self.widened(slope, confidence, length_s.powi(3))
    }

    fn without(&self, step: &Step) -> Result<Slope, statistics::Error> {
        let (axis, values) = (self.axis.split_at(step.block), self.values.split_at(step.block));
        let strata = [theil_sen::Stratum { x: axis.0, y: values.0 }, theil_sen::Stratum { x: axis.1, y: values.1 }];
        let slope = theil_sen::stratified(&strata, self.confidence, self.blocks.inflation())?;
        let cube = |part: &[f64]| (self.blocks.length_s * part.len() as f64).powi(3);
        self.widened(slope, self.confidence, cube(axis.0) + cube(axis.1))
    }

    /// The slope with an interval that is not narrower than the least correlation time allows: a series that is short for it looks
    /// calmer than it is. At the planned length this changes next to nothing.
    fn widened(&self, slope: Slope, confidence: f64, cubes: f64) -> Result<Slope, statistics::Error> {
        let half = normal::quantile(confidence)? * self.error / cubes.sqrt();
        Ok(Slope {
            lower: slope.lower.min(slope.estimate - half),
            upper: slope.upper.max(slope.estimate + half),
            ..slope
        })
    }

    /// The length that would decide, as far as one can tell from this slope.
    fn longer(&self, question: &Question<'_>, slope: &Slope) -> Option<f64> {
        let planned_s = length::needed_s(self.nature.sigma, self.nature.tau_s, per_second(question))?;
        let half = (slope.upper - slope.lower) / 2.0;
        let off = (question.budget - slope.estimate).abs();
        let factor = if half.is_finite() && off > 0.0 { (POWER * half / off).powf(2.0 / 3.0) } else { LONGER.1 };
        Some(planned_s.max(question.series.span_s() * factor.clamp(LONGER.0, LONGER.1)))
    }
}

/// On which side of the budget a slope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Between,
    Above,
}

impl Side {
    fn of(slope: &Slope, budget: f64) -> Self {
        if slope.lower > budget {
            Self::Above
        } else if slope.upper < budget {
            Self::Below
        } else {
            Self::Between
        }
    }
}

/// The error of a slope over one second, see [`Steady::error`]. Blocks of a saw-tooth are whole periods of their own, and tell it all.
fn error(question: &Question<'_>, series: &Series<'_>, nature: &Nature, step: Option<&Step>) -> f64 {
    let rate = rate(&question.series);
    if nature.saw_tooth.is_some() || rate <= 0.0 {
        return 0.0;
    }
    let (t_s, mut values) = series.thinned();
    if let Some(step) = step {
        values.iter_mut().zip(&t_s).filter(|(_, t)| **t >= step.t_s).for_each(|(value, _)| *value -= step.by);
    }
    let tau_s = nature.tau_s.max(question.tau_least_s);
    // The parabola took its part of the scatter with it: three parameters, each as much as two correlation times have.
    let left = (1.0 - 6.0 * tau_s / series.span_s()).max(SCATTER_LEFT_LEAST);
    let sigma = (quantile::scale(&correlation::without_parabola(&values)) / left.sqrt()).max(question.sigma_least);
    sigma * (24.0 * tau_s).sqrt() / rate
}

/// The pieces of a series between its holes, as ranges of samples; one where it has none.
pub fn pieces(series: &Series<'_>) -> Vec<std::ops::Range<usize>> {
    let Sampled { reach_s, .. } = Sampled::of(series);
    let hole_s = reach_s.max(series.span_s() / blocks::BLOCKS_AIM as f64);
    let between = |piece: std::ops::Range<usize>, hole_s: f64| {
        let distances = series.t_s[piece.clone()].windows(2).map(|pair| pair[1] - pair[0]);
        let mut cuts = vec![piece.start];
        cuts.extend(
            (piece.start + 1..).zip(distances).filter(|(_, distance_s)| *distance_s > hole_s).map(|(at, _)| at),
        );
        cuts.push(piece.end);
        cuts.windows(2).map(|ends| ends[0]..ends[1]).collect::<Vec<_>>()
    };
    let at = |piece: &std::ops::Range<usize>| Series {
        t_s: &series.t_s[piece.clone()],
        value: &series.value[piece.clone()],
        axis: &series.axis[piece.clone()],
    };
    // What is too long to bridge comes first: between two of them short gaps may be few.
    let apart = between(0..series.t_s.len(), hole_s.max(BRIDGED_S));
    let fine = |piece: std::ops::Range<usize>| {
        if Sampled::of(&at(&piece)).is_bridged() { vec![piece] } else { between(piece, hole_s) }
    };
    apart.into_iter().flat_map(fine).collect()
}

/// How densely a series was sampled.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    /// The longest time that one sample stands for.
    reach_s: f64,
    /// The share of the time that samples cover.
    covered: f64,
    /// The longest time between two samples.
    gap_s: f64,
}

impl Sampled {
    fn of(series: &Series<'_>) -> Self {
        let distances: Vec<f64> = series.t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if distances.is_empty() {
            return Self { reach_s: 0.0, covered: 1.0, gap_s: 0.0 };
        }
        let reach_s = REACH * quantile::median(&distances);
        let covered = distances.iter().map(|distance_s| distance_s.min(reach_s)).sum::<f64>() / series.span_s();
        Self { reach_s, covered, gap_s: distances.iter().copied().fold(0.0, f64::max) }
    }

    /// Whether its gaps are short and few.
    fn is_bridged(&self) -> bool {
        self.gap_s <= BRIDGED_S && self.covered >= BRIDGED_COVERED_LEAST
    }
}

/// The longest gap of a series that was bridged, in seconds; none where no gap is so long that it would matter.
pub fn bridged_s(series: &Series<'_>) -> Option<f64> {
    let Sampled { reach_s, gap_s, .. } = Sampled::of(series);
    (gap_s > reach_s.max(series.span_s() / blocks::BLOCKS_AIM as f64)).then_some(gap_s)
}

/// Why samples say nothing, however they lie.
fn untrustworthy(series: &Series<'_>) -> Option<Why> {
    let sampled = Sampled::of(series);
    let Sampled { covered, gap_s, .. } = sampled;
    still(series).or(match () {
        () if sampled.is_bridged() => None,
        () if covered < COVERED_LEAST => Some(Why::Missing { covered }),
        () if gap_s > series.span_s() / blocks::BLOCKS_AIM as f64 => Some(Why::Hole { gap_s }),
        () => None,
    })
}

/// Why nothing can be judged against an axis that does not move.
fn still(series: &Series<'_>) -> Option<Why> {
    let moved = series.axis.last().zip(series.axis.first()).is_some_and(|(last, first)| last > first);
    (!moved).then_some(Why::AxisStill)
}

/// What becomes of a series through which no slope can be taken.
fn unfit(question: &Question<'_>, error: statistics::Error, nature: Option<Nature>) -> Outcome {
    let planned_s = nature.and_then(|nature| length::needed_s(nature.sigma, nature.tau_s, per_second(question)));
    match error {
        statistics::Error::TooShort { needed_s, .. } => {
            Outcome::Inconclusive { needed_s: Some(needed_s.max(planned_s.unwrap_or(0.0))) }
        }
        statistics::Error::TooFew { .. } => Outcome::Inconclusive { needed_s: planned_s },
        statistics::Error::Flat => Outcome::Invalid { why: Why::AxisStill },
        error => Outcome::Invalid { why: Why::Unusable(error) },
    }
}

/// The budget as the axis moved, for each second.
fn per_second(question: &Question<'_>) -> f64 {
    question.budget * rate(&question.series)
}

/// How far the axis moved in a second.
fn rate(series: &Series<'_>) -> f64 {
    let moved = series.axis.last().zip(series.axis.first()).map_or(0.0, |(last, first)| last - first);
    moved / series.span_s()
}
