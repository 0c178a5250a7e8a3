//! Decides whether a series of samples grows faster than its budget: one pure function from samples to a verdict with
//! its confidence.
//!
//! Owns the method that decides growth; `docs/decisions/025-when-growth-is-decided.md` has the reasons. The module
//! knows neither records nor names of budgets. Do not use least squares through raw samples in this module. Memory is
//! autocorrelated, and least squares raises a false alarm in a third of clean runs.

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

pub const CONFIDENCE: f64 = 0.95;
/// The confidence of late growth of a series, which prevents a pass. The judge searches for late growth only after the
/// whole run has passed.
const LATE_CONFIDENCE: f64 = 0.99;
/// Confidence of each bound of the slopes of the first and second half of a series. Growth has levelled off only if the
/// bounds of both slopes do not overlap; together their confidence is about 96 %.
const BEND_CONFIDENCE: f64 = 0.9;
/// If the lower bound of a slope is at least this many budgets, the result is a failure even if the series was never
/// steady.
const FAR: f64 = 10.0;
/// For a failure of a series that was never steady, the second half must grow by at least this fraction of the first
/// half's growth. Slower growth in the second half may belong to a warm-up that is not over.
const UNBROKEN: f64 = 0.6;
/// A warm-up or a sudden step does not matter to the verdict if it gains less than this fraction of the growth that the
/// budget allows for the whole run.
const MATTERS: f64 = 0.25;
/// The smallest fraction of the scatter that is assumed to remain after subtracting a fitted parabola.
const SCATTER_LEFT_LEAST: f64 = 0.1;
/// The fraction of the time that samples must cover for any verdict.
const COVERED_LEAST: f64 = 0.9;
/// The longest time that one sample covers, in multiples of the usual time between samples.
const REACH: f64 = blocks::REACH;
/// Gaps up to this length, in seconds, are bridged. A busy machine sometimes delays a reader for some seconds, and in a
/// run of a minute each such gap would split the series.
const BRIDGED_S: f64 = 15.0;
/// The fraction of the time that samples must still cover if short gaps are bridged.
const BRIDGED_COVERED_LEAST: f64 = 0.8;
/// The fraction of the time that samples must cover if only a failure can be the result.
const HOLED_COVERED_LEAST: f64 = 0.5;
/// The fraction of the planned length that a pass needs: half of a run does not have the power of the plan. A failure
/// does not need the planned length.
const PLANNED_LEAST: f64 = 0.9;
/// The distance between slope and budget, in half widths of the slope's interval, with which four of five runs are
/// decided: `1 + 0.84 / 1.64`.
const POWER: f64 = 1.51;
/// The largest half width, in budgets, of an interval that can pass. If noise alone makes slopes of many budgets, one
/// run in twenty falls steeply by chance.
const WIDTH_MOST: f64 = 1.5;
/// The smallest and the largest factor by which a longer run is recommended. Growth exactly at its budget is never
/// decided.
const LONGER: (f64, f64) = (1.1, 4.0);

/// A series of samples, its budget and the assumptions for judging its growth.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The samples of the series, without missing values.
    pub series: Series<'a>,
    /// Maximum growth of the value for each unit of the axis.
    pub budget: f64,
    /// The planned length of the series, in seconds.
    pub planned_s: f64,
    /// The smallest scatter that is assumed, in the unit of the value. A quiet minute does not prove that an hour is
    /// quiet.
    pub sigma_least: f64,
    /// The shortest correlation time that is assumed, in seconds. In a short series a long correlation time looks like
    /// growth.
    pub tau_least_s: f64,
    /// The number of series that are judged against one budget, any of which may break it. The allowed chance of a
    /// false alarm is divided by this number.
    pub looks: usize,
}

impl Question<'_> {
    /// The confidence of each bound, such that the confidence for all series of a budget together is [`CONFIDENCE`].
    fn confidence(&self) -> f64 {
        1.0 - (1.0 - CONFIDENCE) / self.looks.max(1) as f64
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// With 95 % confidence the series grows more slowly than the budget.
    Pass,
    /// With 95 % confidence the series grows faster than the budget.
    Fail,
    /// The samples prove neither slower nor faster growth than the budget.
    Inconclusive {
        /// The length of a run that would decide, in seconds; none if no length would.
        needed_s: Option<f64>,
    },
    /// The series cannot be trusted.
    Invalid { why: Why },
}

/// Why a series proves nothing about its growth. The text of the reason follows "growth is not judged: ".
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Why {
    #[error("samples cover only {:.0} % of the time", 100.0 * covered)]
    Missing {
        /// The fraction of the time that the samples cover.
        covered: f64,
    },
    #[error("there are no samples for {gap_s:.0} s")]
    Hole {
        /// The length of the gap, in seconds.
        gap_s: f64,
    },
    /// The axis did not move: no objects or requests came in the run.
    #[error("the events that it is judged against did not happen")]
    AxisStill,
    #[error("the samples are not usable: {0}")]
    Unusable(statistics::Error),
}

/// Features of the shape of a series of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shape {
    /// The series grew at first and then stopped growing.
    pub levelled_off: bool,
    /// The series grew only late in the run.
    pub late: bool,
    /// The level of the series changed at once.
    pub step: Option<Step>,
    /// The series rises slowly and falls suddenly, again and again.
    pub saw_tooth: Option<SawTooth>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub outcome: Outcome,
    /// The slope that decided, in units of the value for each unit of the axis. Depending on the shape, this is the
    /// slope of the whole series, of the series without its sudden step, or of the time since it levelled off. None if
    /// no slope was computed.
    pub slope: Option<Slope>,
    pub warm_up: WarmUp,
    pub shape: Shape,
    /// The scatter, correlation time and saw-tooth shape of the series; none if they were not computed.
    pub nature: Option<Nature>,
    /// The number of blocks of samples through which the slope was fitted.
    pub blocks: usize,
}

/// Judges a series against its budget. The work is O(n log n) in the number of samples, which is capped at
/// [`blocks::SAMPLES_MAX`].
pub fn judge(question: &Question<'_>) -> Answer {
    judge_since(question, f64::NEG_INFINITY)
}

/// The end of a series' warm-up: the time before which its level differs from the later level. None if the series is
/// too short. Changes of the level below `matters`, in the unit of the value, are ignored.
pub fn warm_up(series: &Series<'_>, matters: f64) -> Option<WarmUp> {
    let nature = blocks::nature(series).ok()?;
    Some(warm_up::find(&blocks::reduce(series, &nature).ok()?, matters))
}

/// Judges only the samples from `since_s` on, in seconds of the series, because another series was not steady before.
pub fn judge_since(question: &Question<'_>, since_s: f64) -> Answer {
    judge_trusted(question, since_s, untrustworthy)
}

/// Judges a series with gaps for failure alone: gaps do not weaken the samples that exist, and the result is never a
/// pass.
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

/// The samples of a series after its warm-up.
struct Steady {
    warm_up: WarmUp,
    nature: Nature,
    blocks: Blocks,
    step: Option<Step>,
    axis: Vec<f64>,
    values: Vec<f64>,
    /// The error of a slope over one second that the shortest assumed correlation time causes, in units of the value
    /// for each unit of the axis. Over a longer time this error falls with the power 3/2.
    error: f64,
    /// The confidence of each bound of the slopes.
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
        // A step is reported as a step; only a series without one may have a warm-up.
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

    /// Whether the second half of the series alone grows far faster than the budget and has not slowed down; then the
    /// end of the warm-up does not matter.
    fn is_far_above(&self, budget: f64) -> bool {
        let half = self.values.len() / 2;
        let first = self.slope(0..half, LATE_CONFIDENCE);
        let second = self.slope(half..self.values.len(), LATE_CONFIDENCE);
        first
            .ok()
            .zip(second.ok())
            .is_some_and(|(first, second)| second.lower > FAR * budget && second.estimate >= UNBROKEN * first.estimate)
    }

    /// Whether the slope is above or below the budget, the slope that decided this, and the features of the series'
    /// shape.
    fn weigh(&self, question: &Question<'_>, mut shape: Shape) -> Result<(Side, Slope, Shape), statistics::Error> {
        let budget = question.budget;
        let whole = self.slope(0..self.values.len(), self.confidence)?;
        // A rise by a step is not growth, and a fall by a step does not make up for growth.
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
        // The series bends, but the slope of the rest is not certain yet.
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

    /// The slope with an interval at least as wide as the shortest assumed correlation time requires, because a short
    /// series looks quieter than it is. If the series has the planned length, this hardly changes the interval.
    fn widened(&self, slope: Slope, confidence: f64, cubes: f64) -> Result<Slope, statistics::Error> {
        let half = normal::quantile(confidence)? * self.error / cubes.sqrt();
        Ok(Slope {
            lower: slope.lower.min(slope.estimate - half),
            upper: slope.upper.max(slope.estimate + half),
            ..slope
        })
    }

    /// The length of a run that would decide, estimated from this slope; none if no length would.
    fn longer(&self, question: &Question<'_>, slope: &Slope) -> Option<f64> {
        let planned_s = length::needed_s(self.nature.sigma, self.nature.tau_s, per_second(question))?;
        let half = (slope.upper - slope.lower) / 2.0;
        let off = (question.budget - slope.estimate).abs();
        let factor = if half.is_finite() && off > 0.0 { (POWER * half / off).powf(2.0 / 3.0) } else { LONGER.1 };
        Some(planned_s.max(question.series.span_s() * factor.clamp(LONGER.0, LONGER.1)))
    }
}

/// Whether a slope is above the budget, below it, or undecided.
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

/// The error of a slope over one second, see [`Steady::error`]. Blocks of a series with a saw-tooth shape are whole
/// periods, so their scatter shows the whole error.
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
    // The parabola took a part of the scatter with it: three parameters, each as much as two correlation times have.
    let left = (1.0 - 6.0 * tau_s / series.span_s()).max(SCATTER_LEFT_LEAST);
    let sigma = (quantile::scale(&correlation::without_parabola(&values)) / left.sqrt()).max(question.sigma_least);
    sigma * (24.0 * tau_s).sqrt() / rate
}

/// The ranges of samples between the gaps of a series; one range if the series has no gap.
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
    // Gaps that are too long to bridge come first: between two of them there may be only a few short gaps.
    let apart = between(0..series.t_s.len(), hole_s.max(BRIDGED_S));
    let fine = |piece: std::ops::Range<usize>| {
        if Sampled::of(&at(&piece)).is_bridged() { vec![piece] } else { between(piece, hole_s) }
    };
    apart.into_iter().flat_map(fine).collect()
}

/// How densely the samples of a series cover its time.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    /// The longest time that one sample covers, in seconds.
    reach_s: f64,
    /// The fraction of the time that the samples cover.
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

    /// Whether the gaps between samples are short and few enough to be bridged.
    fn is_bridged(&self) -> bool {
        self.gap_s <= BRIDGED_S && self.covered >= BRIDGED_COVERED_LEAST
    }
}

/// The longest gap of a series that was bridged, in seconds; none if no gap is long enough to matter.
pub fn bridged_s(series: &Series<'_>) -> Option<f64> {
    let Sampled { reach_s, gap_s, .. } = Sampled::of(series);
    (gap_s > reach_s.max(series.span_s() / blocks::BLOCKS_AIM as f64)).then_some(gap_s)
}

/// Why the samples cannot be judged; none if they can.
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

/// Why growth cannot be judged if the axis (objects or requests) does not move; none if the axis moves.
fn still(series: &Series<'_>) -> Option<Why> {
    let moved = series.axis.last().zip(series.axis.first()).is_some_and(|(last, first)| last > first);
    (!moved).then_some(Why::AxisStill)
}

/// The outcome for a series whose slope cannot be computed.
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

fn per_second(question: &Question<'_>) -> f64 {
    question.budget * rate(&question.series)
}

/// How far the axis (time, objects or requests) moves in a second.
fn rate(series: &Series<'_>) -> f64 {
    let moved = series.axis.last().zip(series.axis.first()).map_or(0.0, |(last, first)| last - first);
    moved / series.span_s()
}
