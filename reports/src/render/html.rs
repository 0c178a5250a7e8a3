//! The HTML report of a run: one file that works offline and loads nothing.
//!
//! Owns the contents of the report and their order. `timeline` and `percentiles` turn facts of a record into curves,
//! and `scale` turns values into positions. Every text that comes from the record is escaped, by askama or, in the data
//! for the script, by [`data_json`]. The report's content security policy forbids every request.

use askama::Template;
use serde::Serialize;

use super::terminal::figures;
use super::{Error, Renderer};
use crate::causes;
use crate::judge::{Finding, Judgement, Verdict};
use crate::record::{Manifest, Record, file};
use crate::words::{bytes, count, counted, millis};
use anomalies::{AnomalyGroup, FirstCause};
use chart::Chart;
use requests::Requests;
use timeline::{Axis, Timeline};

mod anomalies;
#[cfg(test)]
mod browser;
mod chart;
mod compare;
mod gate;
mod hunt;
mod pair;
mod percentiles;
mod picture;
mod planned;
mod requests;
mod scale;
mod size;
mod suite;
mod timeline;

pub use compare::compare_html;
pub use gate::gate_html;
pub use hunt::hunt_html;
pub use pair::diff_html;
pub use size::size_html;
pub use suite::suite_html;

pub(super) const ROW: Renderer =
    Renderer { file: file::HTML, doc: "for people: one page that works offline", render: html };

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    manifest: &'a Manifest,
    judgement: &'a Judgement,
    length: String,
    headline: &'static str,
    crossed: Vec<&'a Finding>,
    budgets: Vec<&'a Finding>,
    validity: Vec<&'a Finding>,
    figures: Vec<(&'static str, String)>,
    axis: Axis,
    charts: Vec<Chart>,
    lead: Option<Chart>,
    distribution: Option<Chart>,
    planned: Vec<planned::Line>,
    outcomes: Vec<String>,
    first_causes: Vec<FirstCause>,
    anomalies: Vec<AnomalyGroup<'a>>,
    unnamed: Option<String>,
    requests: Requests,
    story: &'a [String],
    facts: Vec<(&'static str, String)>,
    files: Vec<(&'a str, &'static str)>,
    data: String,
    /// Whether the run is still under way. While the run is under way, the report in the browser loads newer facts.
    running: bool,
}

pub fn html(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    page(record, judgement, false)
}

/// The report of a run that is still under way, for `longhaul soak --serve`. This report says that the run is under
/// way, and the browser loads newer facts.
pub fn running_html(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    page(record, judgement, true)
}

fn page(record: &Record, judgement: &Judgement, running: bool) -> Result<String, Error> {
    let Timeline { axis, mut charts } = timeline::timeline(record);
    let distribution = percentiles::distribution(record);
    let readings = charts.iter().map(Chart::readings).collect();
    let data = data_json(&Data { length_ms: axis.length_ms, unit: None, charts: readings })?;
    let lead = lead(&charts, judgement).map(|place| charts.remove(place));
    let causes = causes::summary(record);
    let outcomes: std::collections::BTreeSet<String> =
        record.anomalies.iter().map(|row| row.outcome.to_string()).collect();
    let is_validity = |finding: &&Finding| finding.judge == "validity";
    let page = Page {
        manifest: &record.manifest,
        judgement,
        length: millis(record.length_ms()),
        headline: headline(judgement.verdict),
        crossed: judgement.crossed(),
        budgets: judgement.findings.iter().filter(|finding| !is_validity(finding)).collect(),
        validity: judgement.findings.iter().filter(is_validity).collect(),
        figures: figures(record),
        axis,
        charts,
        lead,
        distribution,
        planned: planned::lines(record),
        outcomes: outcomes.into_iter().collect(),
        first_causes: anomalies::first(&causes),
        anomalies: anomalies::groups(&causes),
        unnamed: (causes.unnamed > 0).then(|| count(causes.unnamed)),
        requests: requests::requests(record),
        story: &record.story,
        facts: facts(record),
        files: files(record, running),
        data,
        running,
    };
    Ok(page.render()?)
}

/// The index of the chart that shows the reason for the verdict: the chart of the first finding that decided, else the
/// chart of the first finding.
fn lead(charts: &[Chart], judgement: &Judgement) -> Option<usize> {
    let place = |id: &str| charts.iter().position(|chart| chart.id == id);
    let crossed = judgement.crossed();
    let Some(first) = crossed.first() else { return (!charts.is_empty()).then_some(0) };
    let (section, key) = first.budget.split_once('.').unwrap_or((&first.budget, ""));
    let id = match (section, key) {
        ("events", "lagP99" | "heal" | "late") => "lag",
        ("events" | "requests", _) | ("validity", "churnRate") => "events",
        ("admission", "p50" | "p99" | "p999") | ("validity", "lateness") => "admission",
        ("api", "staleness" | "wrong") => "staleness",
        ("validity", "callRate" | "callLateness") => "api",
        ("admission" | "alerts" | "registry", _) | ("validity", "admissionRate") => "reviews",
        ("memory", key) if key.starts_with("growth") => &*first.budget.replace('.', "-"),
        ("memory", _) | ("validity", "samples") => "memory",
        ("descriptors", _) => "descriptors",
        ("threads", _) => "threads",
        ("validity", "pace") => "pressure",
        _ => return None,
    };
    place(id).or_else(|| place(section))
}

/// The data of the charts for the script of the report. Values are texts, so that the script does not have to format
/// numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    length_ms: u64,
    /// The name of a thousand units of the axis, such as a measurement; none for an axis of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    charts: Vec<chart::Readings<'a>>,
}

/// JSON that is safe in a `<script>` element. This JSON has no `<` that could end the element, and no `&` that could
/// begin an entity. The characters U+2028 and U+2029, which JSON allows and old scripts do not, are escaped.
fn data_json(data: &Data<'_>) -> Result<String, Error> {
    let json = serde_json::to_string(data)?;
    Ok(json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let manifest = &record.manifest;
    let machine = &manifest.machine;
    let subject = match (&manifest.subject.kind, manifest.subject.command.join(" ")) {
        (kind, command) if command.is_empty() => kind.clone(),
        (kind, command) => format!("{kind}: {command}"),
    };
    let rate = |rate: Option<f64>| rate.map(|rate| format!("{} a second", crate::words::three_digits(rate)));
    let phases = manifest.phases;
    let facts = [
        ("Run", Some(manifest.run_id.clone())),
        ("Started", Some(manifest.started_at.clone())),
        (
            "Phases",
            Some(format!(
                "warm-up {}, steady {}, drain {}",
                millis(phases.warm_up_ms),
                millis(phases.steady_ms),
                millis(phases.drain_ms)
            )),
        ),
        ("Subject", Some(subject)),
        ("Subject digest", manifest.subject.digest.clone()),
        ("Planted bug", manifest.subject.planted_bug.clone()),
        ("Control plane", Some(manifest.control_plane.clone())),
        ("Witness", Some(manifest.witness.clone())),
        ("Admission load", rate(manifest.admission_rate_per_second)),
        ("Object churn", rate(manifest.churn_rate_per_second)),
        ("Payloads", manifest.payload_fingerprint.clone()),
        (
            "Machine",
            Some(format!(
                "{}, {}, {}, {}",
                machine.cpu,
                counted(u64::from(machine.cores), "processor"),
                bytes(machine.memory_bytes),
                machine.kernel
            )),
        ),
        (
            "Longhaul",
            Some(match &manifest.versions.git_revision {
                Some(revision) => format!("{} ({revision})", manifest.versions.longhaul),
                None => manifest.versions.longhaul.clone(),
            }),
        ),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).filter(|(_, value)| !value.is_empty()).collect()
}

/// The files in the directory of the report. Reports that are written together with the HTML report are listed even if
/// they do not exist yet. While the run is under way, no files are listed.
fn files(record: &Record, running: bool) -> Vec<(&str, &'static str)> {
    let mut files: Vec<(&str, &'static str)> = Vec::new();
    for one in &record.files {
        files.push((one.name.as_str(), one.what));
    }
    for (name, what) in super::reports().filter(|(name, _)| !running && *name != file::HTML) {
        files.push((name, what));
    }
    files
}

fn headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "Every limit was met.",
        Verdict::Fail => "A limit was broken.",
        Verdict::Inconclusive => "There is too little data to decide.",
        Verdict::Invalid => "The run itself is not valid.",
    }
}
