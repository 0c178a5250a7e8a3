//! Tests of how often the verdict on growth is right, with generated series whose growth is known.

use super::calibration::{KINDS, Random, Row};
use super::*;

const MIB: f64 = 1024.0 * 1024.0;
/// Number of runs for each kind and speed of growth: enough to check a promise, and few enough for an ordinary test.
/// `cargo xtask calibrate --synthetic` uses more runs.
const RUNS: u64 = 60;

fn holds(rows: impl Fn(&Row) -> bool) {
    let all = KINDS.iter().flat_map(|kind| kind.speeds().into_iter().map(move |times| (kind, times)));
    let mut played = 0;
    for (kind, times_budget) in all {
        // The seeds are the same, so other rows need not be played.
        if rows(&kind.row(times_budget, 0)) {
            let row = kind.row(times_budget, RUNS);
            assert!(row.holds(), "{row:?}");
            played += 1;
        }
    }
    assert!(played > 0);
}

/// At most one in twenty clean runs fails, and four in five clean runs of the planned length pass.
#[test]
fn calibration_of_false_alarms() {
    holds(|row| row.times_budget <= 0.0);
}

/// With any kind of noise, at least four of five runs of the planned length detect growth at twice the budget, and
/// hardly any run passes.
#[test]
fn calibration_at_twice_the_budget() {
    holds(|row| row.times_budget > 0.0 && row.times_budget < 4.0);
}

/// At least 95 of 100 runs of the planned length detect growth at four times the budget. For series with a sudden step
/// or a bend, four of five such runs detect it. No run of any length with such growth passes. Growth at many times the
/// budget is detected in a short run as well.
#[test]
fn calibration_at_four_times_the_budget() {
    holds(|row| row.times_budget >= 4.0);
}

/// Every kind of series has a promise, and every promise can break.
#[test]
fn promises_break() {
    for kind in KINDS {
        for times_budget in kind.speeds() {
            let mut row = kind.row(times_budget, 0);
            (row.runs, row.passed, row.failed) = if times_budget > 0.0 { (100, 6, 79) } else { (100, 79, 6) };
            assert!(!row.holds(), "{row:?}");
        }
    }
}

/// One run of forty more or less is chance. A pass with a leak is not chance, and neither is a rate far from the
/// promise.
#[test]
fn few_runs_break_a_promise_only_where_it_is_no_chance() {
    let mut row = KINDS[0].row(0.0, 0);
    (row.promise.failed_most, row.promise.passed_least, row.promise.passed_most) = (Some(0.05), None, Some(0.0));
    let broken = |runs, failed, passed| Row { runs, passed, failed, ..row.clone() }.broken();
    assert!(!broken(40, 0, 0) && !broken(40, 3, 0));
    assert!(broken(40, 10, 0) && broken(40, 0, 1));
    assert!(broken(400, 30, 0) && !broken(400, 20, 0));
}

/// The judge's answer to a series without noise, sampled each second.
fn of(length_s: u32, budget_per_hour: f64, value: impl Fn(f64) -> f64) -> Answer {
    let t_s: Vec<f64> = (0..=length_s).map(f64::from).collect();
    // A little noise without memory, so that nothing is exactly level.
    let mut random = Random(7);
    let value: Vec<f64> = t_s.iter().map(|t| value(*t) + 100.0 * random.normal()).collect();
    let axis: Vec<f64> = t_s.iter().map(|t| t / 3600.0).collect();
    let series = Series { t_s: &t_s, value: &value, axis: &axis };
    judge(&Question {
        series,
        budget: budget_per_hour,
        planned_s: f64::from(length_s),
        sigma_least: 0.0,
        tau_least_s: 0.0,
        looks: 1,
    })
}

#[test]
fn shapes_are_told() {
    let level = of(3600, MIB, |_| 50.0 * MIB);
    assert_eq!((level.outcome, level.warm_up, level.shape), (Outcome::Pass, WarmUp::None, Shape::default()));
    let leak = of(3600, MIB, |t| 3.0 * MIB * t / 3600.0);
    assert_eq!((leak.outcome, leak.warm_up), (Outcome::Fail, WarmUp::None));
    assert!((leak.slope.unwrap().estimate / MIB - 3.0).abs() < 0.01);
    let step = of(3600, MIB, |t| if t < 2000.0 { 0.0 } else { 4.0 * MIB });
    assert_eq!(step.outcome, Outcome::Pass);
    let found = step.shape.step.unwrap();
    assert!((found.t_s - 2000.0).abs() < 5.0 && (found.by / MIB - 4.0).abs() < 0.01, "{found:?}");
    let staircase = of(3600, MIB, |t| (t / 60.0).floor() * MIB / 10.0);
    assert_eq!((staircase.outcome, staircase.shape.step), (Outcome::Fail, None), "{staircase:?}");
    let long_stairs = of(3600, MIB, |t| (t / 600.0).floor() * MIB);
    assert_ne!(long_stairs.outcome, Outcome::Pass, "{long_stairs:?}");
    let start = of(3600, MIB, |t| 8.0 * MIB * (t / 400.0).min(1.0));
    assert_eq!(start.outcome, Outcome::Pass);
    assert!(matches!(start.warm_up, WarmUp::Until { t_s } if (300.0..700.0).contains(&t_s)), "{start:?}");
    let late = of(3600, MIB, |t| (t - 2000.0).max(0.0) * 20.0 * MIB / 3600.0);
    assert_ne!(late.outcome, Outcome::Pass, "{late:?}");
    let faster = of(3600, MIB, |t| 6.0 * MIB * (t / 3600.0).powi(2));
    assert_eq!((faster.outcome, faster.warm_up), (Outcome::Fail, WarmUp::None), "{faster:?}");
    let slow_start = of(3600, MIB, |t| -40.0 * MIB * (-t / 1500.0).exp());
    assert_ne!(slow_start.outcome, Outcome::Pass, "{slow_start:?}");
    assert_ne!(slow_start.outcome, Outcome::Fail, "a start that is not over: {slow_start:?}");
}

/// A leak in a series that was never steady still fails, if its lower bound is many budgets and it does not slow down
/// noticeably.
#[test]
fn far_above_the_budget_fails_whatever_the_start() {
    // A start of minutes that is not over in the middle of the hour, with noise; without noise an hour would be too
    // short for so smooth a series.
    let started = |leak: f64| {
        let random = std::cell::RefCell::new(Random(9));
        of(3600, MIB, |t| {
            let start = 40.0 * MIB * (1.0 - (-t / 400.0).exp());
            start + leak * MIB * t / 3600.0 + 1e5 * random.borrow_mut().normal()
        })
    };
    let far = started(100.0);
    assert_eq!((far.outcome, far.warm_up), (Outcome::Fail, WarmUp::Never), "{far:?}");
    let near = started(9.0);
    assert_eq!(near.warm_up, WarmUp::Never, "{near:?}");
    assert!(matches!(near.outcome, Outcome::Inconclusive { .. }), "not far enough to know: {near:?}");
    let slows = started(20.0);
    assert_eq!(slows.warm_up, WarmUp::Never, "{slows:?}");
    assert!(matches!(slows.outcome, Outcome::Inconclusive { .. }), "a start that is not over: {slows:?}");
}

/// Four days with one sample a second, nearly level except for spikes and rare growth by single memory pages, are
/// judged with bounded work.
#[test]
fn a_hundred_hours_are_judged() {
    let mut random = Random(3);
    let t_s: Vec<f64> = (0..360_000).map(f64::from).collect();
    let spiky =
        |random: &mut Random| if random.uniform() < 0.1 { 4096.0 * (100.0 * random.uniform()).round() } else { 0.0 };
    let value: Vec<f64> = t_s.iter().map(|_| 60.0 * MIB + spiky(&mut random)).collect();
    let axis: Vec<f64> = t_s.iter().map(|t| t / 3600.0).collect();
    let series = Series { t_s: &t_s, value: &value, axis: &axis };
    let found = judge(&Question {
        series,
        budget: MIB / 16.0,
        planned_s: 360_000.0,
        sigma_least: 65_536.0,
        tau_least_s: length::TAU_S,
        looks: 1,
    });
    assert_eq!((found.outcome, found.shape.step), (Outcome::Pass, None), "{found:?}");
}

/// If the growth of a series cannot be judged, the answer has the reason, or the length of a run that would be enough.
#[test]
fn what_cannot_be_judged_says_why() {
    let t_s: Vec<f64> = (0..3600).map(f64::from).collect();
    let level = vec![1.0; t_s.len()];
    let ask = |t_s: &[f64], value: &[f64], axis: &[f64]| {
        judge(&Question {
            series: Series { t_s, value, axis },
            budget: 1.0,
            planned_s: 3600.0,
            sigma_least: 0.0,
            tau_least_s: 0.0,
            looks: 1,
        })
        .outcome
    };
    assert_eq!(ask(&t_s, &level, &t_s), Outcome::Pass);
    assert_eq!(ask(&t_s, &level, &level), Outcome::Invalid { why: Why::AxisStill });
    assert_eq!(ask(&t_s[..9], &level[..9], &t_s[..9]), Outcome::Inconclusive { needed_s: Some(3600.0) });
    assert_eq!(ask(&t_s[..2000], &level[..2000], &t_s[..2000]), Outcome::Inconclusive { needed_s: Some(3600.0) });
    let nan = vec![f64::NAN; t_s.len()];
    assert!(matches!(ask(&t_s, &nan, &t_s), Outcome::Invalid { why: Why::Unusable(_) }));
    let hole: Vec<f64> = t_s.iter().copied().filter(|t| !(1000.0..1200.0).contains(t)).collect();
    assert_eq!(ask(&hole, &level[..hole.len()], &hole), Outcome::Invalid { why: Why::Hole { gap_s: 201.0 } });
    let half: Vec<f64> = t_s.iter().copied().filter(|t| t % 600.0 < 500.0).collect();
    assert!(matches!(ask(&half, &level[..half.len()], &half), Outcome::Invalid { why: Why::Missing { .. } }));
    // Ten minutes of noise with a correlation time of nearly a minute have too few blocks, for any budget.
    let slow = of(600, MIB, |t| 20.0 * MIB * (t / 30.0).sin() * (t / 47.0).cos());
    assert!(matches!(slow.outcome, Outcome::Inconclusive { needed_s: Some(needed_s) } if needed_s > 600.0), "{slow:?}");
}

/// The answer about a series of a minute with one value a second: a count with noise that grows by `each_s` a second,
/// without the values in the gaps.
fn minute(seed: u64, each_s: f64, gaps: &[(f64, f64)], asked: fn(&Question<'_>) -> Answer) -> Outcome {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9) + 11);
    let all: Vec<(f64, f64)> =
        (0..=60).map(f64::from).map(|t| (t, (40.0 + each_s * t + 2.0 * random.normal()).round())).collect();
    let missing = |t: f64| gaps.iter().any(|(from, length)| (*from..from + length).contains(&t));
    let (t_s, value): (Vec<f64>, Vec<f64>) = all.into_iter().filter(|(t, _)| !missing(*t)).unzip();
    let axis: Vec<f64> = t_s.iter().map(|t| t / 3600.0).collect();
    let series = Series { t_s: &t_s, value: &value, axis: &axis };
    let question =
        Question { series, budget: 1000.0, planned_s: 60.0, sigma_least: 0.5, tau_least_s: length::TAU_S, looks: 1 };
    asked(&question).outcome
}

/// How many of 60 generated series fail, and how many pass.
fn of_sixty(each_s: f64, gaps: &[(f64, f64)], asked: fn(&Question<'_>) -> Answer) -> (usize, usize) {
    let outcomes: Vec<Outcome> = (0..60).map(|seed| minute(seed, each_s, gaps, asked)).collect();
    let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    (count(Outcome::Fail), count(Outcome::Pass))
}

/// A run of a minute is decided in spite of gaps of some seconds. With such gaps, at least half as many leaks are
/// detected as without gaps, and a count without growth hardly ever fails.
#[test]
fn short_gaps_take_no_verdict() {
    let whole = of_sixty(2.0, &[], judge);
    assert!(whole.0 >= 40 && whole.1 == 0, "{whole:?}");
    for gaps in [&[(20.0, 4.0)][..], &[(50.0, 9.0)], &[(10.0, 4.0), (40.0, 5.0)], &[(1.0, 8.0)]] {
        let (failed, passed) = of_sixty(2.0, gaps, judge);
        assert!(2 * failed >= whole.0 && passed == 0, "{gaps:?}: {failed} of 60 leaks fail, {passed} pass");
        let (failed, _) = of_sixty(0.0, gaps, judge);
        assert!(failed <= 3, "{gaps:?}: {failed} of 60 clean runs fail");
    }
}

/// With long gaps, leaks are detected, clean series do not fail, and no series passes.
#[test]
fn in_spite_of_holes_only_failures_are_found() {
    let asked: fn(&Question<'_>) -> Answer = |question| judge_holed(question, f64::NEG_INFINITY);
    let gaps = [(12.0, 12.0), (36.0, 12.0)];
    let (failed, passed) = of_sixty(3.0, &gaps, asked);
    assert!(failed >= 30 && passed == 0, "{failed} of 60 leaks fail, {passed} pass");
    let (failed, passed) = of_sixty(0.0, &gaps, asked);
    assert!(failed <= 3 && passed == 0, "{failed} of 60 clean runs fail, {passed} pass");
    let nothing = of_sixty(3.0, &[(5.0, 50.0)], asked);
    assert_eq!(nothing, (0, 0), "of ten seconds in a minute nothing is said");
}
