//! Tests of the conclusions from rows.

use super::*;

pub(crate) fn row(objects: u64, highest_mib: u64, cpu_ms: u64, after_mib: &[u64]) -> Row {
    let relists = after_mib.iter().map(|mib| Relist { took_ms: Some(9), after_bytes: mib << 20, ..Relist::default() });
    let figures = Figures {
        ready_ms: Some(500 + objects / 10),
        highest_bytes: highest_mib << 20,
        after_start_bytes: Some(highest_mib << 20),
        steady_bytes: Some(highest_mib << 20),
        start_cpu_ms: Some(cpu_ms),
        relists: relists.collect(),
        ..Figures::default()
    };
    Row { objects, object_bytes: 10 << 10, fate: Fate::Lived, figures: Some(figures) }
}

pub(crate) fn sizes(steps: Vec<Row>) -> Sizes {
    let mut sizes = Sizes {
        schema: SCHEMA.to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        longhaul: "0.1.0".to_owned(),
        machine: Machine { cores: 2, memory_bytes: 8 << 30, kernel: "6.1".to_owned(), cpu: "example".to_owned() },
        scenario: "example".to_owned(),
        command: vec!["manager".to_owned()],
        digest: None,
        seed: 1,
        repeat: "longhaul size -- manager".to_owned(),
        limit: Some(Limit { bytes: 512 << 20, enforced_by: Some("v2".to_owned()), why_not: None }),
        base: row(0, 30, 100, &[]),
        steps,
        kinds: vec![
            KindCost { resource: "pods".to_owned(), rows: vec![row(10_000, 40, 900, &[])], ..KindCost::default() },
            KindCost { resource: "secrets".to_owned(), rows: vec![row(10_000, 230, 900, &[])], ..KindCost::default() },
        ],
        curves: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
    };
    conclude(&mut sizes);
    sizes
}

fn whats(sizes: &Sizes) -> Vec<&str> {
    sizes.findings.iter().map(|finding| finding.what.as_str()).collect()
}

/// The title names the scenario, because a command with all its flags is too long for one.
#[test]
fn a_title_is_the_scenario_or_the_command() {
    let named = sizes(Vec::new());
    assert_eq!(named.title(), "example");
    assert_eq!(Sizes { scenario: WITHOUT_FILE.to_owned(), ..named }.title(), "manager");
}

/// The line gives the memory per object, the number of objects at the limit, and marks forecasts beyond the points.
#[test]
fn a_linear_program_gets_a_forecast() {
    let sizes = sizes(vec![row(1_000, 50, 200, &[]), row(3_000, 90, 400, &[]), row(10_000, 230, 1_100, &[])]);
    let curve = &sizes.curves[0];
    assert_eq!((curve.memory, curve.start), (Shape::Linear, Shape::Linear));
    assert!((curve.bytes_per_object - 20.0 * 1048.576).abs() < 1.0, "{curve:?}");
    assert_eq!(curve.limit_at, Some(24_100), "(512 - 30) MiB by 20 KiB");
    let far = curve.forecasts.iter().find(|forecast| forecast.objects == 100_000).unwrap();
    assert_eq!(far.beyond_times, Some(10.0));
    assert_eq!(curve.forecasts[0].beyond_times, None);
    assert_eq!(whats(&sizes), ["kind-unrestricted"], "{:?}", sizes.findings);
    let secrets = &sizes.kinds[0];
    assert_eq!(secrets.resource, "secrets");
    assert!((secrets.share.unwrap() - 200.0 / 210.0).abs() < 0.01);
}

/// Each planted mistake has its finding, and no other.
#[test]
fn mistakes_are_found() {
    let mut leaking = sizes(vec![row(1_000, 130, 200, &[140, 240, 340, 440])]);
    leaking.kinds.clear();
    conclude(&mut leaking);
    assert_eq!(whats(&leaking), ["relist-leaks"]);
    // A heap that doubles once, and then stays.
    let mut doubles = sizes(vec![row(1_000, 130, 200, &[230, 232, 231, 233])]);
    doubles.kinds.clear();
    conclude(&mut doubles);
    assert!(whats(&doubles).is_empty(), "{:?}", doubles.findings);
    let mut quadratic = sizes(vec![row(1_000, 50, 150, &[]), row(3_000, 90, 650, &[]), row(10_000, 230, 6_000, &[])]);
    quadratic.kinds.clear();
    conclude(&mut quadratic);
    assert_eq!(whats(&quadratic), ["start-worse-than-linear"]);
    let mut killed = sizes(vec![Row { fate: Fate::LimitKilled, ..row(1_000, 512, 100, &[]) }]);
    killed.kinds.clear();
    conclude(&mut killed);
    assert_eq!(whats(&killed), ["limit-met"]);
    assert!(killed.curves.is_empty(), "a row that was killed is no point");
}

/// A version that needs twice the memory is found, and two equal ones are not different.
#[test]
fn two_results_are_compared() {
    let one = sizes(vec![row(1_000, 50, 200, &[]), row(10_000, 230, 1_100, &[])]);
    let other = sizes(vec![row(1_000, 70, 200, &[]), row(10_000, 430, 1_100, &[])]);
    let both = beside(&one, &other);
    assert!((both.worst.unwrap() - 430.0 / 230.0).abs() < 1e-9);
    assert!(both.differences.iter().any(|one| one.is_clear && one.figure == "highest memory"));
    assert!(!beside(&one, &one).differences.iter().any(|one| one.is_clear));
}
