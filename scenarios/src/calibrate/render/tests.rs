//! Tests that the Markdown and the terminal report of a calibration show every row, with any result.

use reports::growth::calibration::KINDS;

use super::*;
use crate::calibrate::plants::PLANTS;
use crate::calibrate::result::{Play, SCHEMA};

fn example() -> Calibration {
    let mut rows = vec![Row::of(&PLANTS[0], true), Row::twin("calibrate-quick")];
    rows.extend(
        PLANTS
            .iter()
            .filter(|plant| ["step", "slower-by-5-percent"].contains(&plant.name))
            .map(|plant| Row::of(plant, false)),
    );
    let play = |verdict: &str, fired: &[&str]| Play {
        seed: 21,
        verdict: verdict.to_owned(),
        fired: fired.iter().map(|&name| name.to_owned()).collect(),
        undecided: Vec::new(),
        judged: ["admission.p50", "events.ghost"].map(str::to_owned).to_vec(),
        says: "a | b <b>".to_owned(),
        seconds: 39.0,
        record: "runs/x".to_owned(),
        gate: None,
    };
    rows[0].plays = vec![play("invalid", &[]), play("fail", &["events.ghost"])];
    rows[1].plays = vec![play("pass", &[]), play("fail", &["admission.p50"])];
    rows[2].plays = vec![play("pass", &[])];
    // A bug without a judge is shown too, although there is none at the moment.
    rows[2].expected = Expectation::Waits { judge: "a gate between two builds".to_owned() };
    let [level, ..] = KINDS;
    let mut clean = level.row(0.0, 0);
    (clean.runs, clean.passed, clean.failed, clean.undecided) = (200, 190, 4, 6);
    let mut twice = level.row(2.0, 0);
    (twice.runs, twice.passed, twice.failed, twice.undecided) = (200, 2, 150, 48);
    Calibration {
        schema: SCHEMA.to_owned(),
        date: "2026-11-23".to_owned(),
        longhaul: "0.1.0".to_owned(),
        processors: 2,
        synthetic_canary: true,
        synthetic: vec![clean, twice],
        rows,
    }
}

#[test]
fn markdown_shows_every_row() {
    insta::assert_snapshot!(markdown(&example()));
}

#[test]
fn the_terminal_shows_every_row() {
    insta::assert_snapshot!(plain(&example()).join("\n"));
}

#[test]
fn the_page_shows_every_row_and_fetches_nothing() {
    let html = html(&example()).unwrap();
    for row in &example().rows {
        assert!(html.contains(&format!("<code>{}</code>", row.name())), "{}", row.name());
    }
    assert!(html.contains("a | b &#60;b&#62;") && html.contains("false alarm of admission.p50"), "{html}");
    assert!(
        !html.contains("http://") && !html.contains("https://") && !html.contains("<script"),
        "it fetches something"
    );
}
