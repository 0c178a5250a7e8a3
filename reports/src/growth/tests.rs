//! Calibration on generated series: how often the verdict is right where the truth is known.

use super::*;

const MIB: f64 = 1024.0 * 1024.0;
/// A budget of 1 MiB/h.
const BUDGET: f64 = MIB;
/// Seconds between samples.
const EACH_S: f64 = 2.0;

/// Numbers that are random enough and the same everywhere (`SplitMix64`, Steele, Lea & Flood 2014).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// What is added to the noise, in MiB, at the given share of the run and second.
type Form = fn(share: f64, t_s: f64) -> f64;

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    form: Form,
    /// Share of samples that are missing at random, and in holes of 20 s.
    missing: (f64, f64),
    /// How many times longer than planned.
    longer: f64,
}

const PLAIN: Case = Case { name: "level", form: |_, _| 0.0, missing: (0.0, 0.0), longer: 1.0 };

fn generate(case: &Case, times_budget: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
    let planned_s = planned_s() * case.longer;
    let keep = (-EACH_S / length::TAU_S).exp();
    let mut noise = random.normal();
    let mut hole_until = 0.0;
    let (mut t_s, mut values) = (Vec::new(), Vec::new());
    let mut now = 0.0;
    while now <= planned_s {
        noise = keep * noise + (1.0 - keep * keep).sqrt() * random.normal();
        if random.uniform() < case.missing.1 * EACH_S / 20.0 {
            hole_until = now + 20.0;
        }
        if now >= hole_until && random.uniform() >= case.missing.0 {
            let grown = times_budget * BUDGET * now / 3600.0;
            t_s.push(now);
            values.push(60.0 * MIB + length::SIGMA_BYTES * noise + grown + MIB * (case.form)(now / planned_s, now));
        }
        now += EACH_S;
    }
    (t_s, values)
}

fn planned_s() -> f64 {
    length::needed_s(length::SIGMA_BYTES, length::TAU_S, BUDGET / 3600.0).unwrap()
}

fn answer(case: &Case, times_budget: f64, seed: u64) -> Answer {
    let (t_s, value) = generate(case, times_budget, seed);
    let axis: Vec<f64> = t_s.iter().map(|t| t / 3600.0).collect();
    let series = Series { t_s: &t_s, value: &value, axis: &axis };
    judge(&Question {
        series,
        budget: BUDGET,
        planned_s: planned_s() * case.longer,
        sigma_least: 0.0,
        tau_least_s: length::TAU_S,
    })
}

/// Shares of runs that passed, failed, and of those with each note.
#[derive(Debug, Default)]
struct Rates {
    pass: f64,
    fail: f64,
    invalid: f64,
    warm_up: f64,
    never: f64,
    step: f64,
    levelled: f64,
    late: f64,
    teeth: f64,
}

fn rates(case: &Case, times_budget: f64, runs: u64) -> Rates {
    let mut rates = Rates::default();
    for seed in 0..runs {
        let found = answer(case, times_budget, seed);
        let count = |rate: &mut f64, yes: bool| *rate += if yes { 1.0 / runs as f64 } else { 0.0 };
        count(&mut rates.pass, found.outcome == Outcome::Pass);
        count(&mut rates.fail, found.outcome == Outcome::Fail);
        count(&mut rates.invalid, matches!(found.outcome, Outcome::Invalid { .. }));
        count(&mut rates.warm_up, found.warm_up != WarmUp::None);
        count(&mut rates.never, found.warm_up == WarmUp::Never);
        count(&mut rates.step, found.shape.step.is_some());
        count(&mut rates.levelled, found.shape.levelled_off);
        count(&mut rates.late, found.shape.late);
        count(&mut rates.teeth, found.shape.saw_tooth.is_some());
    }
    rates
}

const MISSING: Case = Case { name: "missing", missing: (0.02, 0.03), ..PLAIN };
/// A minimum scatters more than a median, so that a saw-tooth takes 30 % longer than a plan that does not know of it.
const TEETH: Case = Case { name: "teeth", form: |_, t| 20.0 * (t / 120.0).fract(), longer: 1.3, ..PLAIN };
const STEP_UP: Case = Case { name: "step up", form: |share, _| if share < 0.55 { 0.0 } else { 8.0 }, ..PLAIN };
const STEP_DOWN: Case = Case { name: "step down", form: |share, _| if share < 0.5 { 0.0 } else { -8.0 }, ..PLAIN };
const LEVELS_OFF: Case = Case { name: "levels off", form: |share, _| -12.0 * (-12.0 * share).exp(), ..PLAIN };

/// At most so many clean runs fail.
const FALSE_ALARMS_MOST: f64 = 0.05;

fn holds(case: &Case, times_budget: f64, runs: u64, right: impl Fn(&Rates) -> bool) {
    let rates = rates(case, times_budget, runs);
    assert!(right(&rates), "{} at {times_budget} times the budget: {rates:?}", case.name);
}

/// Of clean runs at most one in twenty fails, and a planned length lets four in five pass.
#[test]
fn calibration_of_false_alarms() {
    for case in [PLAIN, MISSING, TEETH] {
        holds(&case, 0.0, 60, |rates| rates.fail <= FALSE_ALARMS_MOST && rates.pass >= 0.8);
    }
    for case in [STEP_UP, STEP_DOWN, LEVELS_OFF] {
        holds(&case, 0.0, 60, |rates| rates.fail <= FALSE_ALARMS_MOST);
    }
}

/// Twice the budget is found in at least four of five runs of the planned length.
#[test]
fn calibration_at_twice_the_budget() {
    for case in [PLAIN, MISSING, TEETH] {
        holds(&case, 2.0, 80, |rates| rates.fail >= 0.8 && rates.pass <= 0.05);
    }
}

/// Four times the budget is found in at least 95 of 100 runs.
#[test]
fn calibration_at_four_times_the_budget() {
    for case in [PLAIN, MISSING, TEETH] {
        holds(&case, 4.0, 80, |rates| rates.fail >= 0.95);
    }
}

/// The twin: whatever else happens, a run that grows at four times the budget never passes.
#[test]
fn four_times_the_budget_never_passes() {
    for case in [PLAIN, MISSING, TEETH, STEP_UP, STEP_DOWN, LEVELS_OFF] {
        holds(&case, 4.0, 40, |rates| rates.pass <= 0.0);
    }
}

/// Prints the table: `cargo test -p reports --lib growth::tests::table -- --ignored --nocapture`.
#[test]
#[ignore = "prints the table of rates, takes minutes"]
fn table() {
    for case in [STEP_DOWN, STEP_UP, LEVELS_OFF, TEETH, MISSING, PLAIN] {
        for times in [0.0, 1.0, 2.0, 4.0] {
            println!("{} at {times} times the budget: {:.3?}", case.name, rates(&case, times, 400));
        }
    }
}

/// Runs that are much too short for their noise cry wolf no more than long ones and vouch for nothing; what grows a hundred times as fast
/// as the noise is found within ten minutes all the same.
#[test]
fn calibration_of_short_runs() {
    for (longer, fast) in [(0.04, 400.0), (0.07, 400.0), (0.12, 100.0), (0.2, 40.0), (0.35, 20.0)] {
        let case = Case { name: "short", longer, ..PLAIN };
        holds(&case, 0.0, 100, |rates| rates.fail <= FALSE_ALARMS_MOST);
        holds(&case, 4.0, 100, |rates| rates.pass <= 0.0);
        holds(&case, fast, 50, |rates| rates.fail >= 0.8);
    }
}

/// The answer to a form without noise, sampled each second.
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
}

/// Four days of a sample each second, nearly level but for rare pages and spikes, are judged with bounded work.
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
    });
    assert_eq!((found.outcome, found.shape.step), (Outcome::Pass, None), "{found:?}");
}

/// What cannot be judged says why, or how long would do.
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
    // Ten minutes of noise that remembers for nearly a minute have too few blocks, whatever the budget.
    let slow = of(600, MIB, |t| 20.0 * MIB * (t / 30.0).sin() * (t / 47.0).cos());
    assert!(matches!(slow.outcome, Outcome::Inconclusive { needed_s: Some(needed_s) } if needed_s > 600.0), "{slow:?}");
}
