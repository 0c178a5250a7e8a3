//! Measures how often [`judge`] is right about generated series with known growth.
//!
//! Owns the generator of series, the kinds of series and the promised rates of right verdicts.
//! `cargo xtask calibrate --synthetic` prints the results of this calibration, and an ordinary test checks them. The
//! functions are pure: the same seeds give the same table. If a promise does not hold for a kind of series, correct the
//! judge, never the promise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Outcome, Question, judge, length};
use crate::statistics::Error;
use crate::statistics::blocks::Series;
use crate::statistics::proportion::{Interval, wilson};

const MIB: f64 = 1024.0 * 1024.0;
/// The budget of every series: 1 MiB/h.
pub const BUDGET: f64 = MIB;
/// Seconds between samples.
const EACH_S: f64 = 2.0;
/// The length of a gap in the samples, in seconds.
const HOLE_S: f64 = 20.0;
/// The level around which each series scatters, in bytes.
const LEVEL: f64 = 60.0 * MIB;
/// The largest fraction of clean runs (without growth) that may fail.
pub const FALSE_ALARMS_MOST: f64 = 0.05;
/// At least this fraction of runs with growth at twice the budget must fail, and of clean runs must pass. For series
/// with a sudden step or a bend, this fraction applies to growth at four times the budget.
const DECIDED_LEAST: f64 = 0.8;
/// At least this fraction of runs with growth at four times the budget must fail.
const FOUR_TIMES_LEAST: f64 = 0.95;

/// Pseudo-random numbers that are the same on every machine (`SplitMix64`, Steele, Lea & Flood 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normally distributed number, by the method of Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The shape of a series: the value in MiB that is added to the noise, at a fraction of the run and at a second of it.
type Form = fn(share: f64, t_s: f64) -> f64;

/// A kind of generated series: autocorrelated noise plus a shape.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// The shape of the series, for people.
    pub about: &'static str,
    form: Form,
    /// The fraction of samples that are missing singly at random, and the fraction that is missing in gaps of 20 s.
    missing: (f64, f64),
    /// The length of the series as a multiple of the length planned for the budget.
    longer: f64,
    /// Whether most runs of the planned length must be decided; if not, only wrong decisions are forbidden.
    decided: bool,
    /// Growth, in budgets, that must be detected in a run that is too short to pass; 0 for kinds of the planned length.
    fast: f64,
}

const LEVEL_KIND: Kind = Kind {
    name: "level",
    about: "noise alone",
    form: |_, _| 0.0,
    missing: (0.0, 0.0),
    longer: 1.0,
    decided: true,
    fast: 0.0,
};

const fn short(name: &'static str, about: &'static str, longer: f64, fast: f64) -> Kind {
    Kind { name, about, longer, fast, decided: false, ..LEVEL_KIND }
}

/// Every kind of series, in the order of the table.
pub const KINDS: [Kind; 11] = [
    LEVEL_KIND,
    Kind {
        name: "missing",
        about: "2 % of the samples missing, and 3 % in gaps of 20 s",
        missing: (0.02, 0.03),
        ..LEVEL_KIND
    },
    // A minimum scatters more than a median, so a saw-tooth takes 30 % longer than a plan that does not know of it.
    Kind {
        name: "saw-tooth",
        about: "20 MiB up and down every two minutes; 1.3 times the planned length",
        form: |_, t| 20.0 * (t / 120.0).fract(),
        longer: 1.3,
        ..LEVEL_KIND
    },
    Kind {
        name: "step up",
        about: "8 MiB more at once, behind the middle",
        form: |share, _| if share < 0.55 { 0.0 } else { 8.0 },
        decided: false,
        ..LEVEL_KIND
    },
    Kind {
        name: "step down",
        about: "8 MiB less at once, in the middle",
        form: |share, _| if share < 0.5 { 0.0 } else { -8.0 },
        decided: false,
        ..LEVEL_KIND
    },
    Kind {
        name: "levels off",
        about: "12 MiB more at the start, ever more slowly",
        form: |share, _| -12.0 * (-12.0 * share).exp(),
        decided: false,
        ..LEVEL_KIND
    },
    short("1/25 of the length", "noise alone, six minutes", 0.04, 400.0),
    short("1/14 of the length", "noise alone, ten minutes", 0.07, 400.0),
    short("1/8 of the length", "noise alone, eighteen minutes", 0.12, 100.0),
    short("1/5 of the length", "noise alone, half an hour", 0.2, 40.0),
    short("1/3 of the length", "noise alone, 52 minutes", 0.35, 20.0),
];

impl Kind {
    /// The speeds of growth of the kind's runs, in budgets: zero, and the speeds that must be detected.
    pub fn speeds(&self) -> Vec<f64> {
        if self.fast > 0.0 { vec![0.0, 4.0, self.fast] } else { vec![0.0, 2.0, 4.0] }
    }

    /// The judge's answer to one run whose memory grows at this multiple of the budget.
    pub fn play(&self, times_budget: f64, seed: u64) -> Answer {
        let planned_s = planned_s() * self.longer;
        let (t_s, value) = self.generate(times_budget, seed, planned_s);
        let axis: Vec<f64> = t_s.iter().map(|t| t / 3600.0).collect();
        let series = Series { t_s: &t_s, value: &value, axis: &axis };
        judge(&Question { series, budget: BUDGET, planned_s, sigma_least: 0.0, tau_least_s: length::TAU_S, looks: 1 })
    }

    /// Judges runs with the seeds from 0 on and counts their outcomes.
    pub fn row(&self, times_budget: f64, runs: u64) -> Row {
        let mut row = Row {
            kind: self.name.to_owned(),
            about: self.about.to_owned(),
            times_budget,
            runs,
            passed: 0,
            failed: 0,
            undecided: 0,
            invalid: 0,
            promise: self.promise(times_budget),
        };
        for seed in 0..runs {
            let count = match self.play(times_budget, seed).outcome {
                Outcome::Pass => &mut row.passed,
                Outcome::Fail => &mut row.failed,
                Outcome::Inconclusive { .. } => &mut row.undecided,
                Outcome::Invalid { .. } => &mut row.invalid,
            };
            *count += 1;
        }
        row
    }

    fn promise(&self, times_budget: f64) -> Promise {
        let planned = self.fast <= 0.0;
        let decided = |least: f64| Some(if self.decided { least } else { DECIDED_LEAST });
        match times_budget {
            t if t <= 0.0 => Promise {
                failed_most: Some(FALSE_ALARMS_MOST),
                passed_least: self.decided.then_some(DECIDED_LEAST),
                ..Promise::default()
            },
            t if t < 4.0 => Promise {
                failed_least: self.decided.then_some(DECIDED_LEAST),
                passed_most: Some(FALSE_ALARMS_MOST),
                ..Promise::default()
            },
            t => Promise {
                failed_least: if planned || t >= self.fast { decided(FOUR_TIMES_LEAST) } else { None },
                passed_most: Some(0.0),
                ..Promise::default()
            },
        }
    }

    fn generate(&self, times_budget: f64, seed: u64, planned_s: f64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
        let keep = (-EACH_S / length::TAU_S).exp();
        let mut noise = random.normal();
        let mut hole_until = 0.0;
        let (mut t_s, mut values) = (Vec::new(), Vec::new());
        let mut now = 0.0;
        while now <= planned_s {
            noise = keep * noise + (1.0 - keep * keep).sqrt() * random.normal();
            if random.uniform() < self.missing.1 * EACH_S / HOLE_S {
                hole_until = now + HOLE_S;
            }
            if now >= hole_until && random.uniform() >= self.missing.0 {
                let grown = times_budget * BUDGET * now / 3600.0;
                t_s.push(now);
                values.push(LEVEL + length::SIGMA_BYTES * noise + grown + MIB * (self.form)(now / planned_s, now));
            }
            now += EACH_S;
        }
        (t_s, values)
    }
}

/// The length of a run that is planned for the budget, in seconds.
pub fn planned_s() -> f64 {
    // Every budget above 0 has one.
    length::needed_s(length::SIGMA_BYTES, length::TAU_S, BUDGET / 3600.0).unwrap_or(f64::INFINITY)
}

/// The number of runs from which the measured rates are compared with the promise directly, without an interval.
const RUNS_STRICT: u64 = 200;

/// The promised rates of outcomes for the runs of one kind at one speed of growth; an absent rate is not promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Promise {
    /// At least this fraction of the runs fails.
    pub failed_least: Option<f64>,
    /// At most this fraction of the runs fails.
    pub failed_most: Option<f64>,
    /// At least this fraction of the runs passes.
    pub passed_least: Option<f64>,
    /// At most this fraction of the runs passes.
    pub passed_most: Option<f64>,
}

/// The outcomes of the runs of one kind at one speed of growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The kind of series.
    pub kind: String,
    /// The shape of the series, for people.
    pub about: String,
    /// The growth of the series, in budgets; 0 is a clean run.
    pub times_budget: f64,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that passed.
    pub passed: u64,
    /// The number of runs that failed.
    pub failed: u64,
    /// The number of runs that were undecided.
    pub undecided: u64,
    /// The number of runs that could not be judged.
    pub invalid: u64,
    /// The rates that are promised for these runs.
    pub promise: Promise,
}

impl Row {
    /// Whether every promise for these runs holds.
    pub fn holds(&self) -> bool {
        let share = |count: u64| count as f64 / self.runs.max(1) as f64;
        let (failed, passed) = (share(self.failed), share(self.passed));
        let Promise { failed_least, failed_most, passed_least, passed_most } = self.promise;
        failed_least.is_none_or(|least| failed >= least)
            && failed_most.is_none_or(|most| failed <= most)
            && passed_least.is_none_or(|least| passed >= least)
            && passed_most.is_none_or(|most| passed <= most)
    }

    /// Whether these runs break a promise. With fewer than two hundred runs, one run more or less is chance, and
    /// Wilson's interval must confirm that a promise is broken.
    pub fn broken(&self) -> bool {
        if self.runs >= RUNS_STRICT {
            return !self.holds();
        }
        let bounds = |count: u64| {
            let share = count as f64 / self.runs.max(1) as f64;
            self.share(count).map_or((share, share), |sure| (sure.lower.min(share), sure.upper.max(share)))
        };
        let (failed, passed) = (bounds(self.failed), bounds(self.passed));
        let Promise { failed_least, failed_most, passed_least, passed_most } = self.promise;
        failed_least.is_some_and(|least| failed.1 < least)
            || failed_most.is_some_and(|most| failed.0 > most)
            || passed_least.is_some_and(|least| passed.1 < least)
            || passed_most.is_some_and(|most| passed.0 > most)
    }

    /// The fraction of `count` among these runs, with Wilson's 95 % interval. An error means that there were no runs.
    pub fn share(&self, count: u64) -> Result<Interval, Error> {
        wilson(count, self.runs, super::CONFIDENCE)
    }
}
