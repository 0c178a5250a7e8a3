//! Compares two runs: their verdicts, figures and settings.
//!
//! These functions are pure: they compare two judged records and give no verdict. Two runs at different times differ by
//! more than their subjects: only two subjects that run at the same time on one machine show which build is slower.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judge::{Judgement, Verdict};
use crate::record::{Manifest, Phase, Process, Record, quantile_us, tag};
use crate::statistics::quantile::median;

pub const SCHEMA: &str = "longhaul.diff/v1";
/// Maximum number of differing settings that the comparison lists. Two scenarios with more differing settings have
/// little in common.
const DIFFERENCES_MAX: usize = 100;
/// Number of characters that are kept of a setting's value.
const VALUE_CHARS: usize = 120;

/// The result of comparing two runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The first run.
    pub a: Side,
    /// The second run.
    pub b: Side,
    /// Every budget and condition that was judged in at least one run.
    pub budgets: Vec<BudgetPair>,
    /// The figures that were measured in both runs.
    pub figures: Vec<Figure>,
    /// The differences in scenario, machine, versions and subject.
    pub differences: Vec<Difference>,
    /// Whether more settings differ than `differences` lists.
    pub more: bool,
}

/// One of the two compared runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The identifier of the run.
    pub run_id: String,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The verdict on the run.
    pub verdict: Verdict,
}

/// A budget in both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BudgetPair {
    /// The budget, such as `events.missed`.
    pub budget: String,
    /// The result in the first run; none if the budget was not judged there.
    pub a: Option<Cell>,
    /// The result in the second run; none if the budget was not judged there.
    pub b: Option<Cell>,
}

/// The result of one budget in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cell {
    /// Whether the budget was met.
    pub verdict: Verdict,
    /// The measured value, with its unit.
    pub observed: String,
    /// The limit, with its unit.
    pub limit: String,
}

/// A figure that was measured in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The name, such as `lag p99`.
    pub name: String,
    /// The unit of both values.
    pub unit: Unit,
    /// The value in the first run.
    pub a: Option<f64>,
    /// The value in the second run.
    pub b: Option<f64>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// A count.
    Count,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
}

impl Figure {
    /// The second value divided by the first; none if a value is missing or zero.
    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.a?, self.b?);
        (a > 0.0 && b > 0.0).then(|| b / a)
    }
}

/// A setting that differs between the two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The path in the manifest, such as `scenario.churn.rate`.
    pub path: String,
    /// The value in the first run; none if the first run does not have the setting.
    pub a: Option<String>,
    /// The value in the second run; none if the second run does not have the setting.
    pub b: Option<String>,
}

pub fn diff(a: (&Record, &Judgement), b: (&Record, &Judgement)) -> Diff {
    let mut differences = differences(&a.0.manifest, &b.0.manifest);
    let more = differences.len() > DIFFERENCES_MAX;
    differences.truncate(DIFFERENCES_MAX);
    Diff {
        schema: SCHEMA.to_owned(),
        a: side(a),
        b: side(b),
        budgets: budgets(a.1, b.1),
        figures: figures(a.0, b.0),
        differences,
        more,
    }
}

fn side((record, judgement): (&Record, &Judgement)) -> Side {
    Side {
        run_id: judgement.run_id.clone(),
        started_at: record.manifest.started_at.clone(),
        verdict: judgement.verdict,
    }
}

fn budgets(a: &Judgement, b: &Judgement) -> Vec<BudgetPair> {
    let cell = |judgement: &Judgement, budget: &str| {
        let finding = judgement.findings.iter().find(|finding| finding.budget == budget)?;
        Some(Cell { verdict: finding.verdict, observed: finding.observed.clone(), limit: finding.limit.clone() })
    };
    let mut names: Vec<&String> = Vec::new();
    for finding in a.findings.iter().chain(&b.findings) {
        if !names.contains(&&finding.budget) {
            names.push(&finding.budget);
        }
    }
    names.into_iter().map(|name| BudgetPair { budget: name.clone(), a: cell(a, name), b: cell(b, name) }).collect()
}

/// A figure that is the median of a sampled value of the process: name, unit, and how to read the value.
type Column = (&'static str, Unit, fn(&Process) -> u64);

/// The figures of both runs, in the order of the table.
fn figures(a: &Record, b: &Record) -> Vec<Figure> {
    let (one, other) = (measured(a), measured(b));
    let find = |figures: &[(String, Unit, f64)], name: &str| {
        figures.iter().find(|(known, _, _)| known == name).map(|(_, _, value)| *value)
    };
    let mut pairs: Vec<Figure> = Vec::new();
    for (name, unit, _) in one.iter().chain(&other) {
        if pairs.iter().all(|pair| pair.name != *name) {
            pairs.push(Figure { name: name.clone(), unit: *unit, a: find(&one, name), b: find(&other, name) });
        }
    }
    pairs
}

/// The figures of a run, each with name, unit and value.
#[expect(clippy::cast_precision_loss, reason = "figures for people, not sums")]
pub(crate) fn measured(record: &Record) -> Vec<(String, Unit, f64)> {
    let mut figures = Vec::new();
    let counts = record.totals();
    let reviews: u64 = record.intervals.iter().filter_map(|row| Some(row.admission.as_ref()?.sent)).sum();
    for (name, number) in [
        ("commits", counts.commits),
        ("observed", counts.observed),
        ("missed", counts.missed),
        ("ghost", counts.ghost),
        ("reviews", reviews),
    ] {
        if number > 0 {
            figures.push((name.to_owned(), Unit::Count, number as f64));
        }
    }
    figures.extend(latencies(record));
    let steady: Vec<&Process> = record
        .samples
        .iter()
        .filter(|sample| !sample.peak && record.phase_at(sample.t_ms) == Phase::Steady)
        .filter_map(|sample| sample.subject.as_ref())
        .collect();
    let all = record.samples.iter().filter_map(|sample| sample.subject.as_ref());
    if let Some(most) = all.map(|process| process.rss_bytes).max() {
        figures.push(("resident max".to_owned(), Unit::Bytes, most as f64));
    }
    let series: [Column; 4] = [
        ("resident median", Unit::Bytes, |process| process.rss_bytes),
        ("anonymous median", Unit::Bytes, |process| process.anon_bytes),
        ("descriptors median", Unit::Count, |process| process.fds.total()),
        ("threads median", Unit::Count, |process| process.threads),
    ];
    for (name, unit, read) in series {
        let values: Vec<f64> = steady.iter().map(|process| read(process) as f64).collect();
        if !values.is_empty() {
            figures.push((name.to_owned(), unit, median(&values)));
        }
    }
    if let (Some(first), Some(last)) = (steady.first(), steady.last())
        && last.starts == first.starts
        && last.cpu_ms > first.cpu_ms
    {
        let cpu_us = (last.cpu_ms - first.cpu_ms) as f64 * 1000.0;
        let rows = || record.intervals.iter().filter(|row| row.phase == Phase::Steady);
        let events: u64 = rows().map(|row| row.events.commits).sum();
        let reviews: u64 = rows().filter_map(|row| Some(row.admission.as_ref()?.sent)).sum();
        for (name, number) in [("processor time per commit", events), ("processor time per review", reviews)] {
            if number > 0 {
                figures.push((name.to_owned(), Unit::Micros, cpu_us / number as f64));
            }
        }
    }
    figures
}

/// Quantiles of each kind of latency that the run measured, with their names and units.
#[expect(clippy::cast_precision_loss, reason = "figures for people, not sums")]
fn latencies(record: &Record) -> Vec<(String, Unit, f64)> {
    let mut figures = Vec::new();
    let lag = record.latency.whole(tag::LAG);
    let steady = |tag| record.latency.in_phase(tag, Phase::Steady).cloned();
    // From the planned start, from the real one, and the difference between both, which is the generator's lateness.
    let (response, service, lateness) = (steady(tag::RESPONSE), steady(tag::SERVICE), steady(tag::LATENESS));
    for (name, histogram) in [("lag", lag), ("response", response), ("service", service), ("lateness", lateness)] {
        let Some(histogram) = histogram else { continue };
        for (word, parts) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
            // None if there are too few samples.
            if let Some(us) = quantile_us(&histogram, parts) {
                figures.push((format!("{name} {word}"), Unit::Micros, us as f64));
            }
        }
        figures.push((format!("{name} max"), Unit::Micros, histogram.max() as f64));
    }
    figures
}

/// Fields of a manifest that always differ between runs, or that the comparison shows elsewhere.
const OWN: &[&str] = &["runId", "startedAt", "repeat", "notes", "budgets", "faults", "phases", "question", "schema"];

fn differences(a: &Manifest, b: &Manifest) -> Vec<Difference> {
    let leaves = |manifest: &Manifest| {
        let mut leaves = BTreeMap::new();
        if let Ok(Value::Object(parts)) = serde_json::to_value(manifest) {
            for (key, value) in parts.iter().filter(|(key, _)| !OWN.contains(&key.as_str())) {
                flatten(key.clone(), value, &mut leaves);
            }
        }
        leaves
    };
    let (one, other) = (leaves(a), leaves(b));
    let mut paths: Vec<&String> = one.keys().chain(other.keys()).collect();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .map(|path| Difference { path: path.clone(), a: one.get(path).cloned(), b: other.get(path).cloned() })
        .collect()
}

/// Collects the scalar values of a JSON value by path. An empty object or array counts as a scalar; null is left out.
fn flatten(path: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(parts) if !parts.is_empty() => {
            for (key, value) in parts {
                flatten(format!("{path}.{key}"), value, leaves);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, value) in items.iter().enumerate() {
                flatten(format!("{path}[{index}]"), value, leaves);
            }
        }
        Value::String(text) => drop(leaves.insert(path, shortened(text))),
        other => drop(leaves.insert(path, shortened(&other.to_string()))),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let record = crate::example::Example::clean().open(dir.path());
        let judgement = crate::judge::judge(&record);
        let same = diff((&record, &judgement), (&record, &judgement));
        assert_eq!(same.differences, []);
        assert!(same.figures.iter().all(|figure| figure.a == figure.b));
        assert_eq!(same.budgets.len(), judgement.findings.len());

        let mut other = Record::open(dir.path()).unwrap();
        other.manifest.machine.cores += 1;
        other.manifest.subject.digest = None;
        other.manifest.run_id = "another".to_owned();
        let told = diff((&record, &judgement), (&other, &judgement));
        let paths: Vec<_> = told.differences.iter().map(|difference| difference.path.as_str()).collect();
        assert!(paths.contains(&"machine.cores"), "{paths:?}");
        assert!(!paths.contains(&"runId"));
    }

    #[test]
    fn values_are_flattened_and_cut() {
        let mut leaves = BTreeMap::new();
        let value = serde_json::json!({"a": {"b": [1, 2]}, "c": [{"d": null, "e": "x".repeat(500)}], "f": {}});
        flatten("s".to_owned(), &value, &mut leaves);
        let told: Vec<_> = leaves.iter().map(|(path, value)| (path.as_str(), value.chars().count())).collect();
        assert_eq!(told, [("s.a.b", 5), ("s.c[0].e", VALUE_CHARS + 1), ("s.f", 2)]);
    }
}
