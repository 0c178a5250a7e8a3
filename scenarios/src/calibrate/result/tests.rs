//! Tests of the verdict of a calibration, and of the counts for each judge.

use reports::growth::calibration::{KINDS, Promise};

use super::*;
use crate::calibrate::plants::PLANTS;

fn play(verdict: &str, fired: &[&str], undecided: &[&str]) -> Play {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
    let judged = ["events.ghost", "events.missed", "memory.growth", "validity.pace"];
    Play {
        seed: 1,
        verdict: verdict.to_owned(),
        fired: owned(fired),
        undecided: owned(undecided),
        judged: owned(&judged),
        says: String::new(),
        seconds: 1.0,
        record: String::new(),
        gate: None,
    }
}

fn row(expected: Expectation, plays: Vec<Play>) -> Row {
    let canary = matches!(expected, Expectation::Caught { .. });
    Row { expected, canary, plays, ..Row::twin("stage") }
}

fn caught(judge: &str, also: &[&str]) -> Expectation {
    let also = also.iter().map(|&name| name.to_owned()).collect();
    Expectation::Caught { judge: judge.to_owned(), also }
}

/// A calibration without any failure.
fn right() -> Calibration {
    Calibration {
        schema: SCHEMA.to_owned(),
        date: "2026-11-23".to_owned(),
        longhaul: "0.1.0".to_owned(),
        processors: 2,
        synthetic_canary: true,
        synthetic: Vec::new(),
        rows: vec![
            row(
                caught("events.ghost", &["events.missed"]),
                vec![play("fail", &["events.ghost", "events.missed"], &[])],
            ),
            row(Expectation::Clean, vec![play("pass", &[], &[])]),
            row(Expectation::LooksAlike, vec![play("inconclusive", &[], &["memory.growth"])]),
            row(Expectation::Waits { judge: "a gate".to_owned() }, vec![play("pass", &[], &[])]),
        ],
    }
}

#[test]
fn all_as_it_must_be_passes() {
    let calibration = right();
    assert_eq!((calibration.canary(), calibration.exit_code(), calibration.verdict()), (Some(true), 0, "pass"));
    let states: Vec<State> = calibration.rows.iter().map(Row::state).collect();
    assert_eq!(states, [State::Right, State::Right, State::Right, State::Waiting]);
}

/// Each possible failure alone changes the verdict.
#[test]
fn whatever_is_wrong_is_told() {
    type Spoil = fn(&mut Calibration);
    let spoilt: [(Spoil, u8, &str); 8] = [
        (|c| c.rows[0].plays = vec![play("pass", &[], &[])], 3, "the canary was not caught"),
        (|c| c.synthetic_canary = false, 3, "the canary was not caught"),
        (
            |c| c.rows[0].plays = vec![play("invalid", &["events.ghost"], &[])],
            2,
            "not played to a valid end: clean in stage",
        ),
        (|c| c.rows[1].plays.push(play("fail", &["events.missed"], &[])), 1, "false alarm: clean"),
        (|c| c.rows[1].plays.push(play("inconclusive", &[], &["memory.growth"])), 2, "not decided: clean"),
        (|c| c.rows[2].plays.push(play("fail", &["memory.growth"], &[])), 1, "false alarm: clean"),
        (|c| c.rows[3].plays.push(play("fail", &["events.ghost"], &[])), 1, "false alarm: clean"),
        (
            |c| {
                let mut broken = KINDS[0].row(0.0, 1);
                (broken.passed, broken.promise) = (0, Promise { passed_least: Some(0.8), ..Promise::default() });
                c.synthetic.push(broken);
            },
            1,
            "a promise does not hold for series of level",
        ),
    ];
    for (spoil, exit_code, reason) in spoilt {
        let mut calibration = right();
        spoil(&mut calibration);
        assert_eq!(calibration.exit_code(), exit_code, "{}", calibration.reason());
        assert!(calibration.reason().starts_with(reason), "{} is not {reason}", calibration.reason());
    }
}

/// If a planted bug is not caught, the calibration fails. If the judge for the bug did not decide, the calibration does
/// not fail.
#[test]
fn a_plant_is_caught_missed_or_undecided() {
    let state = |play: Play| row(caught("events.missed", &["events.ghost"]), vec![play]).state();
    assert_eq!(state(play("fail", &["events.missed"], &[])), State::Right);
    assert_eq!(state(play("fail", &["events.ghost"], &[])), State::Missed);
    assert_eq!(state(play("inconclusive", &[], &["events.missed"])), State::Undecided);
    assert_eq!(state(play("fail", &["events.missed", "memory.growth"], &[])), State::FalseAlarm);
    assert_eq!(state(play("invalid", &["events.missed"], &[])), State::Unknown);
    let twice = [play("fail", &["events.missed"], &[]), play("pass", &[], &[])];
    assert_eq!(row(caught("events.missed", &[]), twice.to_vec()).state(), State::Missed);
}

/// The counts of a judge include the bugs that it must catch, and the rows in which it must report nothing. Rows in
/// which the judge may report the bug of another judge do not count, nor do invalid runs.
#[test]
fn judges_are_counted() {
    let mut calibration = right();
    calibration.rows[1].plays.push(play("fail", &["events.missed"], &[]));
    calibration.rows[1].plays.push(play("invalid", &["events.missed", "events.ghost"], &[]));
    let judges = calibration.judges();
    let names: Vec<&str> = judges.iter().map(|judge| judge.name.as_str()).collect();
    assert_eq!(names, ["events.ghost", "events.missed", "memory.growth"]);
    let shares = |index: usize| {
        let judge: &Judge = &judges[index];
        ((judge.caught.hits, judge.caught.of), (judge.false_alarms.hits, judge.false_alarms.of))
    };
    assert_eq!(shares(0), ((1, 1), (0, 4)));
    assert_eq!(shares(1), ((0, 0), (1, 4)));
    assert_eq!(shares(2), ((0, 0), (0, 5)));
    assert_eq!(Share { hits: 0, of: 0 }.interval(), None);
}

#[test]
fn a_row_takes_over_what_its_plant_expects() {
    for plant in PLANTS {
        let row = Row::of(plant, false);
        assert_eq!((row.name(), row.stage.as_str(), row.state()), (plant.name, plant.stage, State::Unknown));
        assert_eq!(row.outcome(), "not played");
    }
}

/// The checked-in schema of calibrations equals the schema that the type generates.
#[test]
fn the_checked_in_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/calibration.schema.json");
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Calibration)).unwrap() + "\n";
    if std::env::var_os("LONGHAUL_UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(checked_in == schema, "run this test with LONGHAUL_UPDATE_SCHEMAS=1");
}
