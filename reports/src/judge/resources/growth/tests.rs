use crate::example::{Example, Judged as _};
use crate::judge::Finding;
use crate::judge::Verdict;

const MIB: u64 = 1 << 20;

/// The finding of a budget with this limit, for the clean example record after the change `spoil`.
fn found(limit: &str, budget: &str, spoil: impl Fn(&mut Example)) -> Finding {
    let mut example = Example::clean();
    resident(&mut example, |_| 0);
    example.manifest.budgets.memory = Some(serde_json::from_str(limit).unwrap());
    spoil(&mut example);
    let judgement = example.judged();
    judgement.findings.into_iter().find(|finding| finding.budget == budget).unwrap()
}

/// Sets the resident set in each second of the example.
fn resident(example: &mut Example, bytes: impl Fn(u64) -> u64) {
    for sample in &mut example.samples {
        let wobble = sample.t_ms * 7919 % 13;
        sample.subject.as_mut().unwrap().rss_bytes = 40 * MIB + bytes(sample.t_ms / 1000) + wobble * 4096;
    }
}

const BUDGETS: [(&str, &str, &str); 3] = [
    (r#"{"growth": "100MiB/h"}"#, "memory.growth", r#"{"growth": "1KiB/h"}"#),
    (r#"{"growthPerObject": "4KiB"}"#, "memory.growthPerObject", r#"{"growthPerObject": "1B"}"#),
    (r#"{"growthPerRequest": "256B"}"#, "memory.growthPerRequest", r#"{"growthPerRequest": "0B"}"#),
];

/// A budget on growth passes, fails or is undecided. The steady phase of the example is two minutes, with 9 new objects
/// and 200 reviews per second.
#[test]
fn each_budget_passes_fails_and_is_undecided() {
    for (limit, budget, tight) in BUDGETS {
        let clean = found(limit, budget, |_| {});
        assert_eq!(clean.verdict, Verdict::Pass, "{clean:?}");
        let leak = found(limit, budget, |e| resident(e, |second| second * MIB / 5));
        assert_eq!(leak.verdict, Verdict::Fail, "{leak:?}");
        let tight = found(tight, budget, |_| {});
        assert_eq!(tight.verdict, Verdict::Inconclusive, "{tight:?}");
        let restarted =
            found(limit, budget, |e| e.samples[80..].iter_mut().for_each(|s| s.subject.as_mut().unwrap().starts = 2));
        assert_eq!(restarted.verdict, Verdict::Inconclusive, "{restarted:?}");
        assert!(restarted.text.contains("restarted at 1 min 20 s"), "{}", restarted.text);
        let missing = found(limit, budget, |e| e.samples[60..80].iter_mut().for_each(|s| s.subject = None));
        assert_eq!(missing.verdict, Verdict::Inconclusive, "{missing:?}");
    }
}

/// By a clock of the subject that runs sixty times faster, the same growth per hour is a sixtieth. The budget by the
/// real clock and the budget by the subject's clock are both judged.
#[test]
fn growth_is_judged_by_the_subjects_own_clock_beside_the_real_one() {
    let limit = r#"{"growth": "100MiB/h", "growthPerOwnHour": "100MiB"}"#;
    let of = |budget: &str, rate: u32, leak: u64| {
        found(limit, budget, |e| {
            e.manifest.clock_rate = rate;
            resident(e, |second| second * leak);
        })
    };
    let leak = MIB / 4;
    assert_eq!(of("memory.growth", 60, leak).verdict, Verdict::Fail);
    let own = of("memory.growthPerOwnHour", 60, leak);
    assert_eq!(own.verdict, Verdict::Pass, "{own:?}");
    assert!(own.observed.starts_with("15 MiB/own hour (between "), "{}", own.observed);
    // A clock of usual speed has hours of usual length, and a larger leak fails by both.
    assert_eq!(of("memory.growthPerOwnHour", 1, leak).verdict, Verdict::Fail);
    assert_eq!(of("memory.growthPerOwnHour", 60, 8 * leak).verdict, Verdict::Fail);
}

/// If the axis (objects or requests) does not move, growth over the axis is not judged.
#[test]
fn nothing_grows_with_what_does_not_happen() {
    let still = |e: &mut Example| {
        for row in &mut e.intervals {
            (row.churn, row.admission) = (None, None);
        }
    };
    for (limit, budget, _) in &BUDGETS[1..] {
        let finding = found(limit, budget, still);
        assert_eq!(finding.verdict, Verdict::Inconclusive, "{finding:?}");
        assert!(finding.text.contains("did not happen"), "{}", finding.text);
    }
}

#[test]
fn texts_tell_the_size_and_the_shape() {
    let leak = found(BUDGETS[0].0, BUDGETS[0].1, |e| resident(e, |second| second * MIB / 4));
    assert!(leak.observed.starts_with("900 MiB/h (between "), "{}", leak.observed);
    assert!(leak.text.ends_with("blocks of the steady phase, more than 100MiB/h."), "{}", leak.text);
    let step = found(BUDGETS[0].0, BUDGETS[0].1, |e| resident(e, |second| if second < 70 { 0 } else { 8 * MIB }));
    assert_eq!(step.verdict, Verdict::Pass, "{step:?}");
    assert!(step.text.contains("It rose at once by 8 MiB at 1 min 10 s, during "), "{}", step.text);
    let short = found(r#"{"growth": "1MiB/h"}"#, BUDGETS[0].1, |_| {});
    assert!(short.text.starts_with("too short: the steady phase was sampled for 1 min 5"), "{}", short.text);
    let zero = found(r#"{"growth": "0B/h"}"#, BUDGETS[0].1, |_| {});
    assert!(zero.text.starts_with("no length of run decides a budget of 0B/h here."), "{}", zero.text);
}

/// A heap with the small variation of a garbage collector.
fn heap(second: u64) -> u64 {
    20 * MIB + second * 11 % 13 * 4096
}

/// If the subject reports its heap, the heap decides. Memory that only an allocator retains is reported and breaks no
/// budget.
#[test]
fn the_heap_in_use_decides_before_the_resident_set() {
    let leak = |second: u64| second * MIB / 5;
    let keeps = |second: u64| second * MIB / 10;
    for (limit, budget, _) in BUDGETS {
        let retained = found(limit, budget, |e| {
            resident(e, keeps);
            e.tell_metrics(heap, |_| 0.0);
        });
        assert_eq!(retained.verdict, Verdict::Pass, "{retained:?}");
        assert!(retained.text.starts_with("the heap in use (Go) grew by "), "{}", retained.text);
        if retained.text.contains("can explain") {
            assert!(retained.text.contains("an allocator that keeps free memory can explain"), "{}", retained.text);
        }
        let leaking = found(limit, budget, |e| e.tell_metrics(|second| heap(second) + leak(second), |_| 0.0));
        assert_eq!(leaking.verdict, Verdict::Fail, "{leaking:?}");
        assert!(leaking.text.contains("The resident set grew by only"), "{}", leaking.text);
        let clean = found(limit, budget, |e| e.tell_metrics(heap, |_| 0.0));
        assert_eq!(clean.verdict, Verdict::Pass, "{clean:?}");
        assert!(!clean.text.contains("an allocator that keeps free memory"), "{}", clean.text);
    }
}

/// Memory leaks outside of the heap too: sockets, TLS sessions, buffers of a native library. A flat heap does not
/// excuse growth of the resident set by more than the heap ever had, or together with descriptors.
#[test]
fn what_leaks_outside_of_the_heap_fails() {
    let (limit, budget, _) = BUDGETS[0];
    let much = found(limit, budget, |e| {
        resident(e, |second| second * MIB);
        e.tell_metrics(heap, |_| 0.0);
    });
    assert_eq!(much.verdict, Verdict::Fail, "{much:?}");
    assert!(much.text.contains("It is not in the heap in use (Go)"), "{}", much.text);
    assert!(much.text.contains("and the heap never held more than 20"), "{}", much.text);
    let sockets = found(limit, budget, |e| {
        resident(e, |second| second * MIB / 10);
        e.tell_metrics(heap, |_| 0.0);
        for sample in &mut e.samples {
            sample.subject.as_mut().unwrap().fds.socket = 14 + sample.t_ms / 1000;
        }
    });
    assert_eq!(sockets.verdict, Verdict::Fail, "{sockets:?}");
    assert!(sockets.text.contains("grew together with these: sockets went from "), "{}", sockets.text);
}

/// The heap does not decide if the metrics page was read only 25 times in some minutes.
#[test]
fn a_heap_that_is_seldom_read_is_no_signal() {
    let (limit, budget, _) = BUDGETS[0];
    let seldom = found(limit, budget, |e| {
        resident(e, |second| second * MIB / 5);
        e.tell_metrics(heap, |_| 0.0);
        e.metrics.retain(|row| row.t_ms / 1000 % 6 == 0);
    });
    assert_eq!(seldom.verdict, Verdict::Fail, "{seldom:?}");
    assert!(seldom.text.contains("readings are too few"), "{}", seldom.text);
}

/// A subject that grew and then crashed has failed, and so has a subject that grew before a gap in its samples.
#[test]
fn a_leak_before_a_break_is_a_leak() {
    let (limit, budget, _) = BUDGETS[1];
    let leak = |second: u64| if second < 110 { second * 3 * MIB } else { 0 };
    let crashed = found(limit, budget, |e| {
        resident(e, leak);
        e.crash(&[110_000]);
        e.samples[110..].iter_mut().for_each(|s| s.subject.as_mut().unwrap().starts = 2);
    });
    assert_eq!(crashed.verdict, Verdict::Fail, "{crashed:?}");
    assert!(crashed.text.starts_with("from 20 s to 1 min 4"), "{}", crashed.text);
    assert!(crashed.text.contains("The subject was restarted at 1 min 50 s."), "{}", crashed.text);
    let hole = found(limit, budget, |e| {
        resident(e, |second| second * 3 * MIB);
        e.samples[60..66].iter_mut().for_each(|s| s.subject = None);
    });
    assert_eq!(hole.verdict, Verdict::Fail, "{hole:?}");
    let clean = found(limit, budget, |e| {
        e.crash(&[110_000]);
        e.samples[110..].iter_mut().for_each(|s| s.subject.as_mut().unwrap().starts = 2);
    });
    assert_eq!(clean.verdict, Verdict::Inconclusive, "{clean:?}");
}

/// If the metrics page stops answering, the resident set decides.
#[test]
fn a_heap_that_is_told_for_a_while_only_does_not_decide() {
    let (limit, budget, _) = BUDGETS[0];
    let spoilt = |growth: fn(u64) -> u64| {
        found(limit, budget, |e| {
            resident(e, growth);
            e.tell_metrics(heap, |_| 0.0);
            e.metrics.retain(|row| !(60_000..90_000).contains(&row.t_ms));
        })
    };
    let clean = spoilt(|_| 0);
    assert_eq!(clean.verdict, Verdict::Pass, "{clean:?}");
    assert!(clean.text.contains("It was not judged by the heap in use (Go), because growth is"), "{}", clean.text);
    assert_eq!(spoilt(|second| second * MIB / 5).verdict, Verdict::Fail);
}

/// The lines of the chart are those of the verdict: they cross in the middle of the judged points, and have the slope
/// that decided.
#[test]
fn the_picture_shows_the_slope_that_decided() {
    let mut example = Example::clean();
    resident(&mut example, |second| second * MIB / 4);
    example.manifest.budgets.memory = Some(serde_json::from_str(r#"{"growth": "100MiB/h"}"#).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let fits = super::fits(&example.open(dir.path()));
    let [fit] = fits.as_slice() else { panic!("{fits:?}") };
    assert_eq!((fit.budget, fit.limit.as_str()), ("memory.growth", "100MiB/h"));
    let hours = (fit.span_ms.1 - fit.span_ms.0) as f64 / 3_600_000.0;
    let rise = |line: (f64, f64)| (line.1 - line.0) / hours / MIB as f64;
    assert!((890.0..910.0).contains(&rise(fit.estimate)), "{}", rise(fit.estimate));
    assert!(
        (rise(fit.most) - 100.0).abs() < 1e-6
            && rise(fit.lower) <= rise(fit.estimate)
            && rise(fit.upper) >= rise(fit.estimate)
    );
    let middle = |line: (f64, f64)| f64::midpoint(line.0, line.1);
    assert!((middle(fit.estimate) - middle(fit.most)).abs() < MIB as f64, "both go through the middle of the values");
}
