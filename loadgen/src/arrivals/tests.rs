use super::*;
use crate::seed;
use proptest::prelude::*;

fn times(arrivals: Arrivals, per_second: f64, length: Duration, seed: u64) -> Times {
    Times::new(arrivals, Rate::per_second(per_second), length, seed::stream(seed, "arrivals"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// At any rate, arrivals are in order, within the run, exactly as many as planned, and the same for the same seed.
    #[test]
    fn ordered_inside_and_exact(per_second in 0.1f64..2000.0, seconds in 1u64..20, seed: u64, even: bool) {
        let arrivals = if even { Arrivals::Constant } else { Arrivals::Poisson };
        let length = Duration::from_secs(seconds);
        let all: Vec<Duration> = times(arrivals, per_second, length, seed).collect();
        prop_assert_eq!(all.len() as u64, count(Rate::per_second(per_second), length));
        prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(all.iter().all(|&at| at <= length));
        let again: Vec<Duration> = times(arrivals, per_second, length, seed).collect();
        prop_assert_eq!(all, again);
    }

    /// In a Poisson process, mean and variance of the arrivals in a second both equal the rate, during the whole run.
    #[test]
    fn poisson_mean_and_variance(seed: u64) {
        let (rate, seconds) = (50.0, 400u64);
        let mut counts = vec![0f64; 400];
        for at in times(Arrivals::Poisson, rate, Duration::from_secs(seconds), seed) {
            let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX).min(399);
            counts[second] += 1.0;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let variance = counts.iter().map(|c| (c - rate).powi(2)).sum::<f64>() / 400.0;
        // Six standard errors: sqrt(50/100) is 0.71 for a quarter's mean, 50*sqrt(2/400) is 3.5 for the variance.
        for quarter in counts.chunks(100) {
            prop_assert!((mean(quarter) - rate).abs() < 4.3, "mean {} in a quarter", mean(quarter));
        }
        prop_assert!((variance - rate).abs() < 21.5, "variance {variance}");
    }
}

#[test]
fn constant_is_evenly_spaced_without_drift() {
    let length = Duration::from_hours(100);
    let mut all = times(Arrivals::Constant, 3.0, length, 1);
    assert_eq!(all.next(), Some(Duration::ZERO));
    assert_eq!(all.next(), Some(Duration::from_nanos(333_333_333)));
    assert_eq!(all.nth(1_079_996), Some(Duration::from_nanos(359_999_333_333_333)), "two before the end");
}

const SHAPES: [&str; 6] = [
    r#"{"ramp": {"to": "400/s"}}"#,
    r#"{"ramp": {"to": "0/s", "over": "8s"}}"#,
    r#"{"steps": [{"rate": "300/s", "for": "3s"}, {"rate": "0/s", "for": "2s"}, {"rate": "50/s", "for": "1s"}]}"#,
    r#"{"stairs": {"by": "60/s", "every": "1500ms", "to": "350/s"}}"#,
    r#"{"sine": {"amplitude": "100/s", "period": "7s"}}"#,
    r#"{"sine": {"amplitude": "100/s", "period": "400ms"}}"#,
];

/// The expected rate of each shape at a time, for `rate` 100/s, written independently of the tested code.
fn rate_at(shape: usize, t_s: f64) -> f64 {
    match shape {
        0 => 100.0 + 300.0 * t_s / 10.0,
        1 => (100.0 - 100.0 * t_s / 8.0).max(0.0),
        2 if t_s < 3.0 => 300.0,
        2 if t_s < 5.0 => 0.0,
        2 => 50.0,
        3 => f64::min(350.0, 100.0 + 60.0 * (t_s / 1.5).floor()),
        4 => 100.0 + 100.0 * (std::f64::consts::TAU * t_s / 7.0).sin(),
        _ => 100.0 + 100.0 * (std::f64::consts::TAU * t_s / 0.4).sin(),
    }
}

fn shaped(shape: usize, arrivals: Arrivals, seed: u64) -> Times {
    let shape: Shape = serde_json::from_str(SHAPES[shape]).unwrap();
    let profile = shape.profile(Rate::per_second(100.0), Duration::from_secs(10)).unwrap();
    Times::along(arrivals, Arc::new(profile), seed::stream(seed, "arrivals"))
}

/// The integral of [`rate_at`] by the midpoint rule, at every tenth of a second.
fn integral(shape: usize) -> Vec<f64> {
    let mut sums = vec![0.0];
    for tenth in 0..100u32 {
        let inside: f64 = (0..1000).map(|i| rate_at(shape, f64::from(tenth) * 0.1 + (f64::from(i) + 0.5) * 1e-4)).sum();
        sums.push(sums[sums.len() - 1] + inside * 1e-4);
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// For any shape, arrivals are in order, within the run, exactly as many as the integral, and the same for the same
    /// seed.
    #[test]
    fn shapes_are_ordered_inside_and_exact(shape in 0..SHAPES.len(), seed: u64, even: bool) {
        let arrivals = if even { Arrivals::Constant } else { Arrivals::Poisson };
        let all: Vec<Duration> = shaped(shape, arrivals, seed).collect();
        let total = integral(shape)[100];
        prop_assert!((all.len() as f64 - total).abs() <= 0.51, "{} instead of {total}", all.len());
        prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(all.iter().all(|&at| at <= Duration::from_secs(10)));
        prop_assert_eq!(&all, &shaped(shape, arrivals, seed).collect::<Vec<_>>());
    }

    /// Evenly spaced arrivals follow the integral of the rate: at no time is one arrival too many or too few.
    #[test]
    fn even_arrivals_follow_the_integral(shape in 0..SHAPES.len()) {
        let all: Vec<Duration> = shaped(shape, Arrivals::Constant, 1).collect();
        for (tenth, expected) in integral(shape).into_iter().enumerate() {
            let until = Duration::from_millis(100 * tenth as u64);
            let came = all.iter().filter(|&&at| at < until).count() as f64;
            prop_assert!((came - expected).abs() <= 1.51, "{came} before {until:?}, {expected} expected");
        }
    }

    /// In each period, Poisson arrivals stay within six standard deviations of the integral, and a pause contains none.
    #[test]
    fn poisson_arrivals_follow_the_integral(shape in 0..SHAPES.len(), seed: u64) {
        let all: Vec<Duration> = shaped(shape, Arrivals::Poisson, seed).collect();
        let sums = integral(shape);
        for second in 0..10usize {
            let expected = sums[second * 10 + 10] - sums[second * 10];
            let (from, to) = (second as f64 + 1e-9, second as f64 + 1.0 + 1e-9);
            let inside = |at: &&Duration| (from..to).contains(&at.as_secs_f64().max(1e-9));
            let came = all.iter().filter(inside).count() as f64;
            prop_assert!((came - expected).abs() <= 6.0 * expected.sqrt() + 1.0, "{came} in second {second}, {expected} expected");
        }
    }
}

/// The times between Poisson arrivals are exponentially distributed, so their standard deviation equals their mean. The
/// times between evenly spaced arrivals do not vary.
#[test]
fn spacing_differs_within_a_shape() {
    let spread = |arrivals| {
        let all: Vec<f64> = shaped(2, arrivals, 5).map(|at| at.as_secs_f64()).take_while(|&at| at < 3.0).collect();
        let gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt() / mean
    };
    assert!(spread(Arrivals::Constant) < 0.01, "{}", spread(Arrivals::Constant));
    assert!((spread(Arrivals::Poisson) - 1.0).abs() < 0.15, "{}", spread(Arrivals::Poisson));
}

/// Arrivals of a ramp from zero begin at once. A pause between two steps stays empty: an arrival at the beginning of
/// the pause is moved to its end.
#[test]
fn nothing_is_planned_where_the_rate_is_zero() {
    let along = |shape: &str, rate: f64| {
        let shape: Shape = serde_json::from_str(shape).unwrap();
        let profile = shape.profile(Rate::per_second(rate), Duration::from_secs(10)).unwrap();
        Times::along(Arrivals::Constant, Arc::new(profile), seed::stream(1, "arrivals"))
    };
    let mut ramp = along(r#"{"ramp": {"to": "100/s"}}"#, 0.0);
    assert_eq!(ramp.next(), Some(Duration::ZERO));
    // Half of a triangle's area is reached after the root of a half of its length.
    let half = ramp.nth(249).unwrap().as_secs_f64();
    assert!((half - 50f64.sqrt()).abs() < 1e-3, "{half}");
    assert_eq!(along(SHAPES[2], 100.0).nth(899).map(|at| at < Duration::from_secs(3)), Some(true));
    assert_eq!(along(SHAPES[2], 100.0).nth(900), Some(Duration::from_secs(5)));
}

#[test]
fn nothing_is_expected_behind_the_end() {
    let length = Duration::from_secs(10);
    for shape in [None, Some(SHAPES[2]), Some(SHAPES[4])] {
        let shape: Option<Shape> = shape.map(|shape| serde_json::from_str(shape).unwrap());
        let schedule = Schedule::new(Arrivals::Poisson, Rate::per_second(100.0), shape.as_ref(), 1, length).unwrap();
        assert!((schedule.expected(length * 3) - schedule.expected(length)).abs() < 1e-9);
        assert!((schedule.expected(length) - schedule.total() as f64).abs() <= 0.5);
    }
}

/// A hundred hours of a sine are planned as exactly as its first second, one arrival after another.
#[test]
fn a_long_wave_keeps_its_precision() {
    let shape: Shape = serde_json::from_str(r#"{"sine": {"amplitude": "90/s", "period": "1h"}}"#).unwrap();
    let profile = Arc::new(shape.profile(Rate::per_second(100.0), Duration::from_hours(100)).unwrap());
    assert_eq!(profile.count(), 36_000_000);
    let mut cursor = 0;
    for arrival in [1_000.0, 17_999_999.0, 35_999_999.0] {
        let at = profile.when(arrival, &mut cursor);
        let back = profile.expected(at);
        assert!((back - arrival).abs() < 1e-5, "{back} instead of {arrival}");
    }
}
