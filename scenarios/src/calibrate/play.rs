//! Runs all rows of the calibration. Each run is one `longhaul soak` or `longhaul gate` in its own process. Runs follow
//! one another, because simultaneous runs would slow each other down.
//!
//! Owns the order of runs (the control run with an obvious bug comes first), the repetition of invalid runs, and the
//! result files, which are written after each run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reports::judge::{Judgement, Verdict};
use tokio_util::sync::CancellationToken;

use super::gate;
use super::plants::{CANARY, GATE_CANARY, PLANTS, Plant, is_gate};
use super::result::{Calibration, Expectation, Play, Row};
use crate::out::err;
use crate::scenario::{Source, nearest};

/// Maximum number of times that an invalid run is repeated, because the machine may be less busy later.
const AGAIN_MAX: usize = 2;
/// Time of a run beyond its phases: certificates, the start of the subject, judging.
const ASIDE: Duration = Duration::from_secs(5);
/// Time, beyond the phases of a run, after which the run counts as hanging.
const PATIENCE: Duration = Duration::from_mins(5);
/// The start of the last line of `longhaul soak`, which contains the path of the record.
const REPORT: &str = "report: ";

#[derive(Debug, Clone)]
pub struct Choice {
    pub only: Vec<String>,
    /// Whether to run also rows of the calibration that take long.
    pub long: bool,
    /// Number of runs for each planted bug.
    pub repeats: u32,
    /// Number of runs for each program without planted bugs.
    pub clean: u32,
    /// Whether to run only rows that compare two builds. Rows that compare two builds have their own control run and
    /// their own builds without bugs.
    pub gates: bool,
    /// The service without planted bugs.
    pub service: PathBuf,
    pub planted: PathBuf,
    pub out: PathBuf,
}

/// The reason why nothing is run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no plant `{name}`{suggestion} `cargo xtask calibrate --list` names all")]
    Unknown {
        name: String,
        /// A similar name of a planted bug, with punctuation around it, for the error text.
        suggestion: String,
    },
    #[error("a stage cannot be read: {0}")]
    Stage(String),
    #[error("failed to write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("failed to render the table: {0}")]
    Render(#[from] askama::Error),
}

/// The rows to run: the control run, the planted bugs, and each scenario of a planted bug without the bug.
pub fn rows(choice: &Choice) -> Result<Vec<Row>, Error> {
    let names: Vec<&str> = PLANTS.iter().map(|plant| plant.name).collect();
    if let Some(name) = choice.only.iter().find(|name| !names.contains(&name.as_str())) {
        let suggestion =
            nearest(name, &names).map_or_else(|| ";".to_owned(), |near| format!(": did you mean `{near}`?"));
        return Err(Error::Unknown { name: name.clone(), suggestion });
    }
    // If a planted bug is named, it is played however long it takes.
    let canary = if choice.gates { GATE_CANARY } else { CANARY };
    let named = |plant: &Plant| choice.only.iter().any(|name| name == plant.name);
    let wanted = |plant: &&Plant| {
        if choice.gates {
            return is_gate(plant.stage) && (plant.name == canary || choice.only.is_empty() || named(plant));
        }
        plant.name == canary || named(plant) || (choice.only.is_empty() && (choice.long || !plant.long))
    };
    let plants: Vec<&Plant> = PLANTS.iter().filter(wanted).collect();
    let mut rows: Vec<Row> = Vec::new();
    for plant in plants {
        if !rows.iter().any(|row| row.stage == plant.stage) {
            rows.push(Row::twin(plant.stage));
        }
        rows.push(Row::of(plant, plant.name == canary));
    }
    // No result counts before the control run.
    rows.sort_by_key(|row| !row.canary);
    Ok(rows)
}

/// The expected time of all rows, without repetitions of invalid runs.
pub fn estimate(rows: &[Row], choice: &Choice) -> Result<Duration, Error> {
    let aside = |row: &Row| if row.is_gated() { Duration::ZERO } else { ASIDE };
    rows.iter().try_fold(Duration::ZERO, |sum, row| Ok(sum + (length(row)? + aside(row)) * choice.times(row)))
}

impl Choice {
    pub fn times(&self, row: &Row) -> u32 {
        if row.plant.is_some() { self.repeats } else { self.clean }
    }
}

/// Time of the row's scenario from the start of the warm-up to the end of the drain.
fn length(row: &Row) -> Result<Duration, Error> {
    let phases = Source::read(&row.stage).map_err(|error| Error::Stage(error.to_string()))?.scenario.phases;
    Ok(if row.is_gated() { gate::length(row, &phases) } else { phases.total() })
}

/// Runs each row as often as wanted, and writes the result files after each run. Ends early if the control run's bug is
/// not caught. If `stop` is cancelled, ends the current run orderly and keeps earlier results.
pub async fn play(calibration: &mut Calibration, choice: &Choice, stop: &CancellationToken) -> Result<(), Error> {
    let total = calibration.rows.iter().map(|row| choice.times(row) as usize).sum();
    let mut done = 0;
    for round in 0..choice.repeats.max(choice.clean) {
        for index in 0..calibration.rows.len() {
            if round >= choice.times(&calibration.rows[index]) {
                continue;
            }
            for again in 0..=AGAIN_MAX {
                let Some(play) = one(&calibration.rows[index], round, again, choice, stop).await? else {
                    return Ok(());
                };
                let valid = play.is_valid();
                let row = &mut calibration.rows[index];
                row.plays.push(play);
                done += usize::from(again == 0);
                tell(row, (done, total));
                super::write(calibration, &choice.out)?;
                if valid || stop.is_cancelled() {
                    break;
                }
            }
            if calibration.rows[index].canary && calibration.canary() != Some(true) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn tell(row: &Row, (done, total): (usize, usize)) {
    let Some(play) = row.plays.last() else { return };
    let fired = if play.fired.is_empty() { String::new() } else { format!(", fired: {}", play.fired.join(", ")) };
    let seconds = play.seconds;
    err!("[{done}/{total}] {} × {}: {}{fired} ({seconds:.0} s) {}", row.name(), row.stage, play.verdict, play.says);
}

/// Runs one row once, with the command that a user would type. Returns `None` if the run was interrupted.
async fn one(
    row: &Row,
    round: u32,
    again: usize,
    choice: &Choice,
    stop: &CancellationToken,
) -> Result<Option<Play>, Error> {
    let source = Source::read(&row.stage).map_err(|error| Error::Stage(error.to_string()))?;
    // Rounds have different seeds; repetitions of an invalid run have the same seed.
    let seed = source.scenario.seed + u64::from(round) * 1000;
    let records = choice.out.join("runs").join(format!("{}-{}-{round}-{again}", row.stage, row.name()));
    // A gate needs an empty folder, even if the same table is played again into the same place.
    let records =
        if row.is_gated() { records.join(jiff::Timestamp::now().as_millisecond().to_string()) } else { records };
    let program = if row.plant.is_some() { &choice.planted } else { &choice.service };
    let arguments = if row.is_gated() { gate::arguments } else { soak }(row, seed, program, &records);
    let began = Instant::now();
    let Some(output) = crate::itself::play(&arguments, length(row)? + PATIENCE, stop).await else { return Ok(None) };
    let judged = output.and_then(|output| found(row, &output, &records));
    let seconds = began.elapsed().as_secs_f64();
    let blank = Play {
        seed,
        verdict: Verdict::Invalid.word().to_owned(),
        fired: Vec::new(),
        undecided: Vec::new(),
        judged: Vec::new(),
        says: String::new(),
        seconds,
        record: String::new(),
        gate: None,
    };
    Ok(Some(match judged {
        Err(says) => Play { says, ..blank },
        Ok((found, record)) => {
            let record = record.strip_prefix(&choice.out).unwrap_or(&record).display().to_string();
            match found {
                Found::Run(judgement) => read(row, &judgement, Play { record, ..blank }),
                Found::Gate(judgement) => gate::read(row, &judgement, Play { record, ..blank }),
            }
        }
    }))
}

/// The result of running a row once.
enum Found {
    Run(Box<Judgement>),
    Gate(Box<reports::gate::Judgement>),
}

fn found(row: &Row, output: &std::process::Output, records: &Path) -> Result<(Found, PathBuf), String> {
    let nothing = || format!("the run left no verdict {}", crate::itself::last_words(output));
    if row.is_gated() {
        let judgement = gate::judgement(records).ok_or_else(nothing)?;
        return Ok((Found::Gate(Box::new(judgement)), records.to_owned()));
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = said.lines().find_map(|line| line.strip_prefix(REPORT)).map(PathBuf::from);
    let record = report.as_deref().and_then(Path::parent).map(Path::to_owned).ok_or_else(nothing)?;
    Ok((Found::Run(Box::new(judgement(&record).ok_or_else(nothing)?)), record))
}

fn soak(row: &Row, seed: u64, program: &Path, records: &Path) -> Vec<String> {
    let mut arguments: Vec<String> = ["soak", &row.stage, "--quiet", "--seed"].map(str::to_owned).into();
    arguments.extend([seed.to_string(), "--runs".to_owned(), records.display().to_string()]);
    arguments.extend(["--service".to_owned(), program.display().to_string()]);
    arguments.extend(row.plant.iter().flat_map(|plant| ["--plant".to_owned(), plant.clone()]));
    arguments
}

fn judgement(record: &Path) -> Option<Judgement> {
    serde_json::from_slice(&std::fs::read(record.join("verdict.json")).ok()?).ok()
}

/// Converts a judgement into the result of one run of the row.
fn read(row: &Row, judgement: &Judgement, blank: Play) -> Play {
    let with = |wanted: Option<Verdict>| {
        let findings = judgement.findings.iter().filter(|one| wanted.is_none_or(|wanted| one.verdict == wanted));
        let mut names: Vec<String> = findings.map(|finding| finding.budget.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    let own = match &row.expected {
        Expectation::Caught { judge, .. } => judgement.findings.iter().find(|finding| finding.budget == *judge),
        // Without an expected judge, the measurement of growth is shown.
        _ => judgement.findings.iter().find(|finding| finding.budget.starts_with("memory.growth")),
    };
    let invalid = judgement.verdict == Verdict::Invalid;
    let says = match own {
        Some(own) if !invalid => format!("{}: {} (limit {})", own.budget, own.observed, own.limit),
        _ => judgement.reason.clone(),
    };
    Play {
        verdict: judgement.verdict.word().to_owned(),
        fired: with(Some(Verdict::Fail)),
        undecided: with(Some(Verdict::Inconclusive)),
        judged: with(None),
        says,
        ..blank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(only: &[&str], long: bool) -> Choice {
        Choice {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            long,
            repeats: 1,
            clean: 1,
            gates: false,
            service: PathBuf::new(),
            planted: PathBuf::new(),
            out: PathBuf::new(),
        }
    }

    /// For any selection of planted bugs, the control run comes first, and each scenario also runs without bugs.
    #[test]
    fn every_choice_has_canary_and_twins() {
        for choice in [choice(&[], false), choice(&[], true), choice(&["leak-64-per-object"], false)] {
            let rows = rows(&choice).unwrap();
            assert!(rows[0].canary && rows[0].name() == CANARY);
            for row in &rows {
                assert!(rows.iter().any(|twin| twin.plant.is_none() && twin.stage == row.stage), "{row:?}");
            }
        }
        let names = |choice: &Choice| rows(choice).unwrap().iter().map(|row| row.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&choice(&["step"], false)), [CANARY, "clean", "clean", "step"]);
        assert!(names(&choice(&[], true)).len() > names(&choice(&[], false)).len());
        let error = rows(&choice(&["leak-64-per-objekt"], false)).unwrap_err().to_string();
        assert!(error.contains("did you mean `leak-64-per-object`?"), "{error}");
    }

    /// Without `--long`, the calibration takes little more than an hour.
    #[test]
    fn the_estimate_counts_every_run() {
        let once = choice(&[], false);
        let all = rows(&once).unwrap();
        let one = estimate(&all, &once).unwrap();
        assert!(one < Duration::from_mins(70), "{one:?}");
        assert_eq!(estimate(&all, &Choice { repeats: 3, clean: 3, ..once }).unwrap(), one * 3);
    }

    /// Twenty gates of identical builds per scenario, and one gate per planted bug, take an hour and three quarters.
    /// The first gate, the control run, gets a change that no gate can miss.
    #[test]
    fn the_gates_alone_take_less_than_two_hours() {
        let gates = Choice { gates: true, clean: 20, ..choice(&[], false) };
        let all = rows(&gates).unwrap();
        assert!(all[0].canary && all[0].name() == GATE_CANARY && all.iter().all(Row::is_gated), "{all:?}");
        assert_eq!(all.iter().filter(|row| row.plant.is_none()).count(), 2);
        let takes = estimate(&all, &gates).unwrap();
        assert!(takes > Duration::from_mins(95) && takes < Duration::from_hours(2), "{takes:?}");
    }
}
