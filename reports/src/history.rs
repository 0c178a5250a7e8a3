//! A history of runs in a file for git with one JSON line for each run, and the changes of level of its figures.
//!
//! The functions of this module are pure: they make a line from a judged record, read lines, and compare figures of one
//! scenario over time. Like [`crate::diff`], a history gives no verdict, because the machine may have caused a change.
//! Only builds that run at the same time show which build is slower.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diff::{Unit, measured};
use crate::judge::{Judgement, Verdict};
use crate::record::Record;
use crate::statistics::change_point::{self, VALUES_MAX};
use crate::statistics::quantile::median;

/// The name and version of the schema of an [`Entry`].
pub const SCHEMA: &str = "longhaul.history/v1";
/// Maximum number of runs in one history file: one an hour for ten years.
pub const ENTRIES_MAX: usize = 100_000;
/// A level counts as new only if at least this many runs have it: a single run that stands out is no change.
const LEVEL_LEAST: usize = 3;
/// The penalty for a change of level: the usual difference between neighbouring runs, times this factor, times the
/// binary logarithm of the number of runs.
const PENALTY: f64 = 3.0;
/// Minimum size of a change of level that is reported, as a fraction of the level, however certain the change is.
const SHARE_LEAST: f64 = 0.02;

/// One run in the history.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The identifier of the run.
    pub run_id: String,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The scenario's name.
    pub name: String,
    /// The seed of the run.
    pub seed: u64,
    /// The verdict on the run.
    pub verdict: Verdict,
    /// The digest of the subject, if it is known.
    pub subject: Option<String>,
    /// The name of the build that the user gave, such as a tag or a commit.
    pub build: Option<String>,
    /// The machine: model name and number of its processors.
    pub machine: String,
    /// The measured figures, by name.
    pub figures: BTreeMap<String, Measured>,
}

/// A figure of a run: its value and unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Measured {
    /// The value in the figure's unit.
    pub value: f64,
    /// The unit of the value.
    pub unit: Unit,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("read line {line} of the history: {source}; remove the line, or restore it from git")]
    Line {
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    #[error("read line {line} of the history: it has the schema `{found}`, this build reads `{SCHEMA}`")]
    Schema {
        line: usize,
        /// The schema that the entry names.
        found: String,
    },
    #[error("read the history: it has more than {ENTRIES_MAX} lines; begin a new file")]
    TooMany,
}

/// A figure over the runs of one scenario, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// The name, such as `lag p99`.
    pub figure: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The runs that have this figure, oldest first.
    pub points: Vec<Point>,
    /// The changes of the figure's level.
    pub changes: Vec<Change>,
}

/// One run in the series of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// The identifier of the run.
    pub run_id: String,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The name of the build that the user gave.
    pub build: Option<String>,
    /// The verdict on the run.
    pub verdict: Verdict,
    /// The value of the figure.
    pub value: f64,
}

/// A change of the level of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The index, from 0, of the first run with the new level.
    pub at: usize,
    /// The median of the values before the change.
    pub before: f64,
    /// The median of the values after the change.
    pub after: f64,
}

pub fn entry(record: &Record, judgement: &Judgement, build: Option<String>) -> Entry {
    let machine = &record.manifest.machine;
    Entry {
        schema: SCHEMA.to_owned(),
        run_id: judgement.run_id.clone(),
        started_at: record.manifest.started_at.clone(),
        name: judgement.name.clone(),
        seed: judgement.seed,
        verdict: judgement.verdict,
        subject: record.manifest.subject.digest.clone(),
        build,
        machine: format!("{} × {}", machine.cores, machine.cpu),
        figures: measured(record)
            .into_iter()
            .filter(|(_, _, value)| value.is_finite())
            .map(|(name, unit, value)| (name, Measured { value, unit }))
            .collect(),
    }
}

/// Reads the lines of a history file. Empty lines are skipped.
pub fn read(text: &str) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (index, line) in lines {
        let entry: Entry = serde_json::from_str(line).map_err(|source| Error::Line { line: index + 1, source })?;
        if entry.schema != SCHEMA {
            return Err(Error::Schema { line: index + 1, found: entry.schema });
        }
        if entries.len() == ENTRIES_MAX {
            return Err(Error::TooMany);
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The names of the scenarios in a history, each once.
pub fn scenarios(entries: &[Entry]) -> BTreeSet<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

/// The figures of one scenario over time, by name, with their changes of level. Invalid runs are left out, because
/// their measurements are not comparable. If a scenario has more than [`VALUES_MAX`] runs, only the newest are used.
pub fn series(entries: &[Entry], scenario: &str) -> Vec<Series> {
    let mut runs: Vec<&Entry> =
        entries.iter().filter(|entry| entry.name == scenario && entry.verdict != Verdict::Invalid).collect();
    runs.sort_by(|a, b| (&a.started_at, &a.run_id).cmp(&(&b.started_at, &b.run_id)));
    let newest = runs.split_off(runs.len().saturating_sub(VALUES_MAX));
    let names: BTreeSet<&String> = newest.iter().flat_map(|entry| entry.figures.keys()).collect();
    names.into_iter().filter_map(|name| one(name, &newest)).collect()
}

fn one(name: &str, runs: &[&Entry]) -> Option<Series> {
    let unit = runs.iter().find_map(|entry| entry.figures.get(name))?.unit;
    let has = |entry: &&Entry| {
        let measured =
            entry.figures.get(name).filter(|measured| measured.unit == unit && measured.value.is_finite())?;
        Some(Point {
            run_id: entry.run_id.clone(),
            started_at: entry.started_at.clone(),
            build: entry.build.clone(),
            verdict: entry.verdict,
            value: measured.value,
        })
    };
    let points: Vec<Point> = runs.iter().filter_map(has).collect();
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    Some(Series { figure: name.to_owned(), unit, changes: changes(&values), points })
}

/// The changes of level that are larger than the scatter of the values.
fn changes(values: &[f64]) -> Vec<Change> {
    if values.len() < 2 * LEVEL_LEAST {
        return Vec::new();
    }
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let level = median(values).abs();
    // If most runs are equal to the last digit, the least reported share sets the usual distance.
    let usual = median(&steps).max(level * SHARE_LEAST / PENALTY);
    if usual <= 0.0 {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
    let doublings = (values.len() as f64).log2();
    let Ok(starts) = change_point::pelt(values, PENALTY * usual * doublings, LEVEL_LEAST) else { return Vec::new() };
    let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([values.len()]).collect();
    let levels = |three: &[usize]| {
        let (before, after) = (median(&values[three[0]..three[1]]), median(&values[three[1]..three[2]]));
        Change { at: three[1], before, after }
    };
    let all = bounds.windows(3).map(levels);
    all.filter(|change| (change.after - change.before).abs() > SHARE_LEAST * change.before.abs()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn run(n: usize, value: f64) -> Entry {
        Entry {
            schema: SCHEMA.to_owned(),
            run_id: format!("run-{n:03}"),
            started_at: format!("2026-01-{:02}T00:{:02}:00Z", 1 + n / 60, n % 60),
            name: "smoke".to_owned(),
            seed: 1,
            verdict: Verdict::Pass,
            subject: None,
            build: None,
            machine: "2 × Example".to_owned(),
            figures: [("lag p99".to_owned(), Measured { value, unit: Unit::Micros })].into(),
        }
    }

    /// Ten runs whose values scatter by ten around a level.
    fn level(from: usize, middle: f64) -> Vec<Entry> {
        [3.0, -7.0, 9.0, 0.0, -4.0, 8.0, -10.0, 2.0, 5.0, -6.0]
            .iter()
            .enumerate()
            .map(|(n, noise)| run(from + n, middle + noise))
            .collect()
    }

    #[test]
    fn a_run_makes_a_line_that_is_read_again() {
        let record = Example::clean().opened();
        let line = entry(&record, &crate::judge::judge(&record), Some("v1".to_owned()));
        assert!(line.figures.contains_key("resident max"), "{:?}", line.figures.keys());
        let text = serde_json::to_string(&line).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(read(&format!("{text}\n\n{text}\n")).unwrap(), [line.clone(), line]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let good = serde_json::to_string(&run(1, 1.0)).unwrap();
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error(&format!("{good}\n{{")).starts_with("read line 2 of the history: EOF"));
        assert!(error(&good.replace("history/v1", "history/v9")).contains("`longhaul.history/v9`"));
        assert!(error(&good.replace("\"seed\"", "\"sede\"")).contains("unknown field `sede`"));
    }

    /// A change of level is found at its first run. Noise, one outlier, and a change that is too small to be reported
    /// are not changes of level.
    #[test]
    fn a_new_level_is_found_and_noise_is_not() {
        let found = |entries: &[Entry]| series(entries, "smoke").remove(0).changes;
        let mut entries = level(0, 1000.0);
        assert_eq!(found(&entries), []);
        entries.extend(level(10, 1000.0));
        entries[4].figures.get_mut("lag p99").unwrap().value = 5000.0;
        assert_eq!(found(&entries), []);
        entries.extend(level(20, 1100.0));
        let changes = found(&entries);
        assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [20]);
        assert!((changes[0].after / changes[0].before - 1.1).abs() < 0.01);
        // Equal to the last digit: half a percent is not reported, and a tenth is.
        let still = |last: f64| (0..20).map(|n| run(n, if n < 12 { 1000.0 } else { last })).collect::<Vec<_>>();
        assert_eq!((found(&still(1005.0)).len(), found(&still(1100.0)).len()), (0, 1));
    }

    #[test]
    fn invalid_runs_other_scenarios_and_the_order_of_lines_do_not_matter() {
        let mut entries = level(0, 1000.0);
        entries[3].verdict = Verdict::Invalid;
        entries.push(Entry { name: "soak-1h".to_owned(), ..run(99, 1.0) });
        let told = series(&entries, "smoke");
        assert_eq!((told.len(), told[0].points.len()), (1, 9));
        entries.reverse();
        assert_eq!(series(&entries, "smoke"), told);
        assert_eq!(scenarios(&entries).into_iter().collect::<Vec<_>>(), ["smoke", "soak-1h"]);
        assert_eq!(series(&entries, "nothing"), []);
    }
}
