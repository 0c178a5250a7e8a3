//! The report for people: one HTML file that works offline and fetches nothing.
//!
//! Owns what is shown and in which order; `timeline` and `percentiles` turn facts into curves, `scale` into positions. Every
//! outside text goes through askama's escaping or, inside the data for the script, through [`data_json`]. The page
//! forbids itself every request by its content security policy.

use askama::Template;
use serde::Serialize;

use super::terminal::figures;
use super::{Error, Renderer};
use crate::judge::{Finding, Judgement, Verdict};
use crate::ledger::Outcome;
use crate::record::{AnomalyRow, Manifest, Record, file};
use crate::words::{bytes, count, counted, millis};
use chart::Chart;
use requests::Requests;
use timeline::{Axis, Timeline};

mod chart;
mod percentiles;
mod requests;
mod scale;
mod timeline;

/// `report.html`.
pub(super) const ROW: Renderer =
    Renderer { file: file::HTML, doc: "for people: one page that works offline", render: html };

/// Anomalies shown of each outcome; the rest is in `anomalies.jsonl`.
const ANOMALIES_SHOWN: usize = 25;
/// Bytes of stream lines shown with the anomalies of one outcome. Escaped they are about twice as many, of ten outcomes; a page stays below
/// 2 MB.
const WIRE_BYTES_SHOWN: usize = 48 << 10;
/// The order in which anomalies are shown: what breaks a promise first.
const ANOMALY_ORDER: [Outcome; 10] = [
    Outcome::Missed,
    Outcome::Ghost,
    Outcome::IdentitySwap,
    Outcome::Resurrected,
    Outcome::Regressed,
    Outcome::Phantom,
    Outcome::LateGhost,
    Outcome::Late,
    Outcome::Unobservable,
    Outcome::Duplicate,
];

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    css: &'static str,
    js: &'static str,
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
    distribution: Option<Chart>,
    anomalies: Vec<AnomalyGroup<'a>>,
    requests: Requests,
    facts: Vec<(&'static str, String)>,
    data: String,
}

/// The anomalies of one outcome.
struct AnomalyGroup<'a> {
    outcome: Outcome,
    total: String,
    rows: Vec<Anomaly<'a>>,
    /// How many are not shown, if any.
    hidden: Option<String>,
}

/// One anomaly, as the template wants it.
struct Anomaly<'a> {
    row: &'a AnomalyRow,
    at: String,
    object: String,
    /// Its stream lines are left out, because those of others before it took the room.
    bare: bool,
}

impl<'a> Anomaly<'a> {
    /// `room` is what stream lines may still take.
    fn new(row: &'a AnomalyRow, room: &mut usize) -> Self {
        let wire: usize = row.wire.iter().map(String::len).sum();
        let bare = wire > *room;
        if !bare {
            *room -= wire;
        }
        let object = match (row.namespace.as_str(), row.name.as_str()) {
            ("", "") => format!("uid {}", row.uid),
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        Self { row, at: timeline::clock(row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms)), object, bare }
    }
}

/// `report.html`.
pub fn html(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let Timeline { axis, charts } = timeline::timeline(record);
    let distribution = percentiles::distribution(record);
    let data = data_json(&Data { length_ms: axis.length_ms, charts: charts.iter().map(Chart::readings).collect() })?;
    let is_validity = |finding: &&Finding| finding.judge == "validity";
    let page = Page {
        css: include_str!("../../templates/report.css"),
        js: include_str!("../../templates/report.js"),
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
        distribution,
        anomalies: anomalies(record),
        requests: requests::requests(record),
        facts: facts(record),
        data,
    };
    Ok(page.render()?)
}

/// What the script needs: readings in words, so that it does not format numbers a second time.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    length_ms: u64,
    charts: Vec<chart::Readings<'a>>,
}

/// JSON that is safe inside a `<script>` element: no `<` can end it, no `&` starts anything, and the two separators that
/// JSON allows and old scripts do not are escaped.
fn data_json(data: &Data<'_>) -> Result<String, Error> {
    let json = serde_json::to_string(data)?;
    Ok(json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

fn anomalies(record: &Record) -> Vec<AnomalyGroup<'_>> {
    let counts = record.totals();
    ANOMALY_ORDER
        .into_iter()
        .filter_map(|outcome| {
            let rows = record.anomalies.iter().filter(|row| row.outcome == outcome);
            // After a kill the rows can be ahead of the counts.
            let total = outcome.of(&counts).max(rows.clone().count() as u64);
            let mut room = WIRE_BYTES_SHOWN;
            let rows: Vec<_> = rows.take(ANOMALIES_SHOWN).map(|row| Anomaly::new(row, &mut room)).collect();
            let hidden = total - rows.len() as u64;
            let hidden = (hidden > 0).then(|| count(hidden));
            (total > 0).then(|| AnomalyGroup { outcome, total: count(total), rows, hidden })
        })
        .collect()
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

/// The sentence that goes with a verdict.
fn headline(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "Every limit was met.",
        Verdict::Fail => "A limit was broken.",
        Verdict::Inconclusive => "There is not enough data to decide.",
        Verdict::Invalid => "The run itself cannot be trusted.",
    }
}
