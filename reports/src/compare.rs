//! Compares several subjects under one scenario: their results, the figures in which one is significantly better, and
//! why a subject is behind.
//!
//! Owns the result ([`Comparison`]) and its pure computation from judged records. A comparison names no best subject.
//! Each figure ranks the subjects by itself, and only subjects whose intervals do not overlap (module `rank`). The
//! reader of the comparison decides which figures matter. A subject that died or never began has a table row with its
//! known facts and no rank, because its figures are from a shorter run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::judge::{Judgement, Verdict};
use crate::record::{EndReason, Manifest, Record};
use crate::statistics::quantile::median;

mod figures;
mod rank;
mod why;

use figures::Reading;
pub use figures::{FIGURES, Figure, Group, Unit};

pub const SCHEMA: &str = "longhaul.comparison/v1";
/// The allowed number of subjects in a comparison.
pub const SUBJECTS: std::ops::RangeInclusive<usize> = 2..=16;

/// A subject with its runs of the scenario.
#[derive(Debug)]
pub struct Entrant {
    /// The subject's name in the comparison.
    pub name: String,
    /// The command line of the subject, as a person would write it.
    pub command: String,
    /// The subject's judged runs, in their order; empty if no run left a record.
    pub runs: Vec<(Record, Judgement)>,
    /// The folder of each run's record, relative to the comparison's folder.
    pub folders: Vec<String>,
    /// Why a run left no record; none if each run left one.
    pub failure: Option<String>,
}

/// Facts of a comparison that are common to all subjects.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub scenario: String,
    /// The question of the scenario.
    pub question: String,
    pub seed: u64,
    /// Whether the subjects ran at the same time.
    pub side_by_side: bool,
    /// The command that repeats the comparison.
    pub repeat: String,
    /// Further notes of the harness about the comparison.
    pub notes: Vec<String>,
}

/// Several subjects under one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The scenario's name.
    pub scenario: String,
    /// The question of the scenario.
    pub question: String,
    /// The seed of load, churn and faults, the same for all subjects.
    pub seed: u64,
    /// Whether the subjects ran at the same time.
    pub side_by_side: bool,
    /// When the first run began, RFC 3339; empty if no run began.
    pub started_at: String,
    /// The machine that ran the comparison, as text.
    pub machine: String,
    /// The version of Longhaul.
    pub longhaul: String,
    /// The command that repeats the comparison.
    pub repeat: String,
    /// The figures that the table shows, in its order.
    pub figures: Vec<FigureHead>,
    /// One row for each subject, in the order of the command line.
    pub rows: Vec<Row>,
    /// Further notes of the harness about the comparison.
    pub notes: Vec<String>,
}

/// The column head of a figure in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FigureHead {
    /// The figure's key in [`Row::figures`].
    pub key: String,
    /// The figure's name for people.
    pub name: String,
    /// The group to which the figure belongs.
    pub group: Group,
    /// The unit of the figure's values.
    pub unit: Unit,
    /// Whether subjects are ranked by this figure; less is then better.
    pub ranked: bool,
    /// How the figure's interval is computed, for people.
    pub interval: String,
}

/// How far the runs of a subject came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// All runs of the subject reached their end.
    Ran,
    /// The subject ended by itself before a run ended.
    Died,
    /// A run of the subject was broken off for another reason.
    BrokenOff,
    /// The subject was never ready, or none of its runs left a record.
    NeverBegan,
}

impl Fate {
    pub fn words(self) -> &'static str {
        match self {
            Self::Ran => "ran to the end",
            Self::Died => "died",
            Self::BrokenOff => "broken off",
            Self::NeverBegan => "never began",
        }
    }
}

/// The result of one subject: a row of the comparison's table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The subject's name in the comparison.
    pub name: String,
    /// The command line of the subject.
    pub command: String,
    /// The worst verdict of the subject's runs; none if no run was judged.
    pub verdict: Option<Verdict>,
    /// How far the subject's runs came.
    pub fate: Fate,
    /// The reason for the worst verdict, in one sentence.
    pub reason: String,
    /// Why the subject is behind, in one sentence; none if nothing counts against it.
    pub why: Option<Why>,
    /// The length of all runs of the subject, in milliseconds.
    pub lasted_ms: u64,
    /// The subject's figures by key, without those that were not measured.
    pub figures: BTreeMap<String, Cell>,
    /// The folders of the subject's records, relative to the comparison's folder.
    pub records: Vec<String>,
}

/// Why a subject is behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The reason, in one sentence.
    pub sentence: String,
    /// The next step for the user, if the cause is known.
    pub remedy: Option<String>,
}

/// A figure of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The value in the run; the median of all runs if there were several.
    pub value: f64,
    /// The lower end of the figure's interval, if it has one; the lowest of all runs if there were several.
    pub lower: Option<f64>,
    /// The upper end of the figure's interval, if it has one; the highest of all runs if there were several.
    pub upper: Option<f64>,
    /// One more than the number of subjects that are significantly better in this figure. None if no two subjects
    /// differ significantly in this figure.
    pub rank: Option<usize>,
    /// The mean number of versions that are lost at once, of the run with the highest mean.
    #[serde(skip)]
    burst: f64,
}

pub fn comparison(about: About, entrants: &[Entrant]) -> Comparison {
    let mut rows: Vec<Row> = entrants.iter().map(row).collect();
    rank::rank(&mut rows);
    for (entrant, at) in entrants.iter().zip(0..) {
        let why = why::why(entrant, &rows, at);
        rows[at].why = why;
    }
    let first = entrants.iter().flat_map(|entrant| &entrant.runs).map(|(record, _)| &record.manifest).next();
    let machine = first.map(|manifest| {
        let machine = &manifest.machine;
        let (cores, memory) = (u64::from(machine.cores), crate::words::bytes(machine.memory_bytes));
        format!("{}, {}, {memory}, {}", machine.cpu, crate::words::counted(cores, "processor"), machine.kernel)
    });
    let began = entrants.iter().flat_map(|entrant| &entrant.runs).map(|(record, _)| &record.manifest.started_at).min();
    let mut notes = about.notes;
    notes.extend(unlike(entrants));
    Comparison {
        schema: SCHEMA.to_owned(),
        scenario: about.scenario,
        question: about.question,
        seed: about.seed,
        side_by_side: about.side_by_side,
        started_at: began.cloned().unwrap_or_default(),
        machine: machine.unwrap_or_default(),
        longhaul: first.map(|manifest| manifest.versions.longhaul.clone()).unwrap_or_default(),
        repeat: about.repeat,
        figures: FIGURES.iter().map(Figure::head).collect(),
        rows,
        notes,
    }
}

fn row(entrant: &Entrant) -> Row {
    let worst = entrant.runs.iter().max_by_key(|(_, judgement)| judgement.verdict);
    let reason = match (worst, &entrant.failure) {
        (_, Some(failure)) => failure.clone(),
        (Some((_, judgement)), None) => judgement.reason.clone(),
        (None, None) => "no run of it left a record".to_owned(),
    };
    let read = |figure: &Figure| {
        let readings: Vec<Reading> = entrant.runs.iter().filter_map(|(record, _)| figure.of(record)).collect();
        Some((figure.key.to_owned(), cell(&readings)?))
    };
    Row {
        name: entrant.name.clone(),
        command: entrant.command.clone(),
        verdict: worst.map(|(_, judgement)| judgement.verdict),
        fate: fate(entrant),
        reason,
        why: None,
        lasted_ms: entrant.runs.iter().map(|(record, _)| record.length_ms()).sum(),
        figures: FIGURES.iter().filter_map(read).collect(),
        records: entrant.folders.clone(),
    }
}

/// Combines the values of a figure from several runs: the median of the values, and the range of their intervals.
fn cell(readings: &[Reading]) -> Option<Cell> {
    let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
    if values.is_empty() {
        return None;
    }
    let value = median(&values);
    let bounds: Option<Vec<(f64, f64)>> = readings.iter().map(|reading| reading.interval).collect();
    let (lower, upper) = bounds.map_or((None, None), |bounds| {
        let reach = bounds
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        (Some(reach.0), Some(reach.1))
    });
    let burst = readings.iter().map(|reading| reading.burst).fold(1.0, f64::max);
    Some(Cell { value, lower, upper, rank: None, burst })
}

fn fate(entrant: &Entrant) -> Fate {
    if entrant.runs.is_empty() {
        return Fate::NeverBegan;
    }
    let of_run = |record: &Record| match record.end.as_ref().map(|end| &end.reason) {
        Some(EndReason::Completed) => Fate::Ran,
        Some(EndReason::SubjectExited { .. }) => Fate::Died,
        Some(EndReason::SubjectNotReady { .. } | EndReason::NeverAsked { .. }) => Fate::NeverBegan,
        // A subject whose witness is silent still ran.
        Some(
            EndReason::WitnessSilent { .. }
            | EndReason::Interrupted { .. }
            | EndReason::LoadLost { .. }
            | EndReason::HarnessError { .. },
        )
        | None => Fate::BrokenOff,
    };
    let worst = entrant.runs.iter().map(|(record, _)| of_run(record)).max().unwrap_or(Fate::NeverBegan);
    // Completed rounds still count, whatever happened in a later one.
    if entrant.failure.is_some() { worst.max(Fate::BrokenOff) } else { worst }
}

/// A fact of a run as text, by which runs are checked for equal conditions.
type Fact = fn(&Manifest) -> String;

/// The conditions in which runs differ although they should be equal: such runs are not comparable.
fn unlike(entrants: &[Entrant]) -> Vec<String> {
    let manifests = || entrants.iter().flat_map(|entrant| &entrant.runs).map(|(record, _)| &record.manifest);
    let Some(first) = manifests().next() else { return Vec::new() };
    let same = |read: Fact| manifests().all(|one| read(one) == read(first));
    let checks: [(&str, Fact); 6] = [
        ("seeds", |one| one.seed.to_string()),
        ("scenarios", |one| one.name.clone()),
        ("phases", |one| format!("{:?}", one.phases)),
        ("rates of churn", |one| format!("{:?}", one.churn_rate_per_second)),
        ("planned faults", |one| format!("{:?}", one.faults)),
        ("machines", |one| format!("{:?}", one.machine)),
    ];
    let differ: Vec<&str> = checks.iter().filter(|(_, read)| !same(*read)).map(|(what, _)| *what).collect();
    if differ.is_empty() {
        return Vec::new();
    }
    vec![format!("the runs have different {}: what differs between the subjects may come from that", differ.join(", "))]
}

#[cfg(test)]
mod tests;
