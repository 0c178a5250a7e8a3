//! The HTML report of a gate: the verdict, each metric, and every measurement of both builds in order.
//!
//! Owns the contents of the gate's report and their order. The figures of the report are those of the text and the
//! Markdown ([`crate::render::gate`]).

use askama::Template;

use super::chart::Chart;
use super::timeline::Axis;
use super::{Data, data_json};
use crate::gate::{Judgement, Outcome, Record, Word, pressure};
use crate::render::Error;
use crate::render::gate::{COLUMNS, HOW, Shown, certificate, played};

mod slices;

#[derive(Template)]
#[template(path = "gate.html")]
struct Page<'a> {
    judgement: &'a Judgement,
    outcome: &'static str,
    /// The CSS class that sets the colour of the gate's verdict.
    class: &'static str,
    certificate: String,
    notes: Vec<String>,
    rows: Vec<Shown<'a>>,
    axis: Axis,
    lead: Option<Chart>,
    charts: Vec<Chart>,
    facts: Vec<(&'static str, String)>,
    data: String,
}

/// The HTML report of a gate, as one file that loads nothing.
pub fn gate_html(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let dropped = pressure::dropped(&record.slices);
    let (axis, mut charts) = slices::charts(record, &dropped, judgement);
    let readings = charts.iter().map(Chart::readings).collect();
    let data = data_json(&Data { length_ms: axis.length_ms, unit: Some("slice"), charts: readings })?;
    let lead = lead(&charts, judgement).map(|place| charts.remove(place));
    let page = Page {
        judgement,
        outcome: judgement.outcome.text(),
        class: class(judgement.outcome),
        certificate: certificate(judgement),
        notes: [played(judgement), format!("{COLUMNS} {HOW}")].into_iter().chain(judgement.notes.clone()).collect(),
        rows: judgement.rows.iter().map(Shown::of).collect(),
        axis,
        lead,
        charts,
        facts: facts(judgement),
        data,
    };
    Ok(page.render()?)
}

/// The index of the chart for the verdict: the chart of the first metric that decided, else the first chart.
fn lead(charts: &[Chart], judgement: &Judgement) -> Option<usize> {
    let made = match judgement.outcome {
        Outcome::Worse => Some(Word::Worse),
        Outcome::Better => Some(Word::Better),
        Outcome::CannotSay => Some(Word::CannotSay),
        Outcome::Same | Outcome::Invalid => None,
    };
    let mut rows = judgement.rows.iter().filter(|row| Some(row.word) == made);
    rows.find_map(|row| charts.iter().position(|chart| chart.id == row.metric.key()))
        .or((!charts.is_empty()).then_some(0))
}

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better | Outcome::Same => "pass",
        Outcome::Worse => "fail",
        Outcome::CannotSay => "inconclusive",
        Outcome::Invalid => "invalid",
    }
}

fn facts(judgement: &Judgement) -> Vec<(&'static str, String)> {
    let header = &judgement.header;
    let digest = |name, digest: &Option<String>| Some((name, digest.clone()?));
    let facts = [
        Some(("A", header.a.command.clone())),
        Some(("B", header.b.command.clone())),
        digest("SHA-256 of A", &header.a.digest),
        digest("SHA-256 of B", &header.b.digest),
        Some(("Scenario", header.scenario.clone())),
        Some(("Started", header.started_at.clone())),
        Some(("Processors", header.processors.to_string())),
        Some(("Longhaul", header.longhaul.clone())),
    ];
    facts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::judge;
    use crate::gate::simulation::{BUSY, QUIET, record};

    fn page(record: &Record) -> (Judgement, String) {
        let judgement = judge(record);
        let page = gate_html(record, &judgement).unwrap();
        (judgement, page)
    }

    /// Each measurement of a gate is drawn once in the chart of each metric: as a dot of A, a dot of B, or a dropped
    /// measurement.
    #[test]
    fn every_slice_is_drawn() {
        let record = record(3, 10, BUSY, 1.3);
        let (judgement, page) = page(&record);
        let out = judgement.dropped.len();
        assert!(out > 0 && out < record.slices.len() / 2, "{out}");
        for id in ["cpuPerRequest", "p50", "p99"] {
            let plot = page.split(&format!("id=\"plot-{id}\"")).nth(1).unwrap().split("</figure>").next().unwrap();
            let dots: usize = plot
                .split("dots\" data-curve=")
                .skip(1)
                .map(|path| path.split("/>").next().unwrap().matches('M').count())
                .sum();
            assert_eq!(dots, record.slices.len(), "{id}");
        }
        let bands = page.split("id=\"bands\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(bands.matches('M').count() % 2, 0, "the partner of what is left out is not counted either");
        assert!(bands.matches('M').count() >= out);
    }

    /// The first chart is that of the metric that decided the verdict, and no chart appears twice.
    #[test]
    fn the_first_picture_is_that_of_the_verdict() {
        let record = record(5, 10, QUIET, 1.2);
        let (judgement, page) = page(&record);
        assert_eq!(judgement.outcome, Outcome::Worse, "{}", judgement.reason);
        let worse = judgement.rows.iter().find(|row| row.word == Word::Worse).unwrap();
        let ids: Vec<&str> = page.split("id=\"plot-").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(ids, ["cpuPerRequest", "p50", "p99", "machine"]);
        assert_eq!(worse.metric.key(), ids[0]);
        assert!(page.contains("session 2, to confirm") && page.contains("matters from +3 %"), "{page}");
    }

    /// A gate that ended before its first measurement still has a report.
    #[test]
    fn nothing_measured_is_said() {
        let mut record = record(5, 6, QUIET, 1.0);
        record.slices.clear();
        record.notes.push("SIGINT ended it early".to_owned());
        let (judgement, page) = page(&record);
        assert_eq!(judgement.outcome, Outcome::Invalid);
        assert!(page.contains("No slice was measured.") && page.contains("SIGINT ended it early"));
    }

    #[test]
    fn outside_text_stays_text() {
        let mut record = record(5, 6, QUIET, 1.0);
        let hostile = "<script>alert(1)</script>\"'&";
        for text in [&mut record.header.a.command, &mut record.header.scenario, &mut record.header.repeat] {
            *text = hostile.to_owned();
        }
        record.notes.push(hostile.to_owned());
        let (_, page) = page(&record);
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
