//! `longhaul compare`: runs one scenario with several subjects (module `several`), shows existing records side by side,
//! or shows the figures of many runs over time. No comparison has a verdict.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use reports::compare::{About, Entrant, SUBJECTS, comparison};
use reports::exit;
use reports::history::{self, Entry};
use reports::judge::judge;
use reports::record::Record;

use crate::out::out;
use crate::scenario::nearest;

mod several;

/// Maximum size of a history file. One line of the file has about a kilobyte.
const BYTES_MAX: u64 = 256 << 20;

/// Arguments of `longhaul compare`.
#[derive(Clone, Args)]
pub(super) struct Arguments {
    /// With --subject: a scenario file, a name from the library, or `bugs/NAME`. Without --subject: the directories of two or more runs
    /// (with --into, of one or more), or one history file that --into wrote.
    #[arg(required_unless_present = "subjects")]
    what: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Several subjects under one scenario")]
    several: several::Several,
    /// Append a line for each run to this history file, and create the file if needed. A run that is already in the history stays
    /// unchanged.
    #[arg(long, value_name = "HISTORY")]
    into: Option<PathBuf>,
    /// With --into: the name of the build, such as a tag or a commit.
    #[arg(long, value_name = "NAME", requires = "into")]
    build: Option<String>,
    /// Show only runs of this scenario from a history.
    #[arg(long, conflicts_with = "into")]
    scenario: Option<String>,
    /// Show only this figure of a history, such as `lag p99`.
    #[arg(long, conflicts_with = "into")]
    figure: Option<String>,
    /// Also draw the comparison into this file. Two runs give an HTML page with both runs in each chart. A history with --figure gives an
    /// SVG of this figure.
    #[arg(long, value_name = "FILE", conflicts_with = "into")]
    draw: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long, conflicts_with = "into")]
    json: bool,
}

/// Prints the comparison and returns exit code 0, or 64 if a file cannot be read.
pub(super) fn compare(arguments: &Arguments) -> Result<u8> {
    if arguments.several.is_some() {
        return several::compare(&arguments.several, &arguments.what, arguments.json);
    }
    if let Some(flag) = arguments.several.first() {
        bail!("{flag} is for a scenario that is played: name its subjects with --subject or --subjects");
    }
    match (&arguments.into, arguments.what.as_slice()) {
        (Some(file), runs) => add(runs, file, arguments.build.as_deref())?,
        (None, [file]) if !file.is_dir() => out!("{}", over_time(arguments, file)?.trim_end()),
        (None, [a, b]) => {
            ensure!(
                arguments.scenario.is_none() && arguments.figure.is_none(),
                "--scenario and --figure choose from a history; two runs are compared in all"
            );
            out!("{}", side_by_side(arguments, a, b)?.trim_end());
        }
        (None, runs) if SUBJECTS.contains(&runs.len()) => {
            ensure!(
                arguments.scenario.is_none() && arguments.figure.is_none(),
                "--scenario and --figure choose from a history; runs are compared in all"
            );
            out!("{}", all(arguments, runs)?.trim_end());
        }
        (None, runs) => {
            let most = SUBJECTS.end();
            bail!(
                "{} runs cannot be compared: name 2 to {most}, a history, or a scenario with --subject; `--into HISTORY` adds runs to one",
                runs.len()
            )
        }
    }
    Ok(exit::PASS)
}

/// Judges two records again and shows their results side by side.
fn side_by_side(arguments: &Arguments, a: &Path, b: &Path) -> Result<String> {
    let (one, other) = (Record::open(a)?, Record::open(b)?);
    let diff = reports::diff::diff((&one, &judge(&one)), (&other, &judge(&other)));
    if let Some(path) = &arguments.draw {
        write(path, &reports::render::diff_html(&one, &other, &diff)?)?;
    }
    if arguments.json { super::json(&diff) } else { Ok(reports::render::diff(&diff)) }
}

/// Compares three or more records as if one command had run all their subjects.
fn all(arguments: &Arguments, runs: &[PathBuf]) -> Result<String> {
    let mut entrants = Vec::new();
    for run in runs {
        let record = Record::open(run)?;
        let judgement = judge(&record);
        let name = run.file_name().map_or_else(|| judgement.run_id.clone(), |name| name.to_string_lossy().into_owned());
        let command = record.manifest.subject.command.join(" ");
        let folders = vec![run.display().to_string()];
        entrants.push(Entrant { name, command, runs: vec![(record, judgement)], folders, failure: None });
    }
    let first = entrants.iter().flat_map(|entrant| &entrant.runs).map(|(record, _)| &record.manifest).next();
    let about = first.map(|manifest| About {
        scenario: manifest.name.clone(),
        question: manifest.question.clone(),
        seed: manifest.seed,
        side_by_side: false,
        repeat: format!("{} compare {}", crate::started_as(), paths(runs)),
        notes: Vec::new(),
    });
    let compared = comparison(about.unwrap_or_default(), &entrants);
    if let Some(path) = &arguments.draw {
        write(path, &reports::render::compare_html(&compared, &entrants)?)?;
    }
    if arguments.json { super::json(&compared) } else { Ok(reports::render::compare(&compared)) }
}

fn paths(runs: &[PathBuf]) -> String {
    let words: Vec<String> = runs.iter().map(|run| crate::quoted(&run.to_string_lossy())).collect();
    words.join(" ")
}

fn add(runs: &[PathBuf], file: &Path, build: Option<&str>) -> Result<()> {
    let mut known = if file.exists() { read(file)? } else { Vec::new() };
    // All records are read before a line is written, so a wrong name adds nothing.
    let mut lines = Vec::new();
    for run in runs {
        let record = Record::open(run)?;
        let entry = history::entry(&record, &judge(&record), build.map(str::to_owned));
        if known.iter().any(|other| other.run_id == entry.run_id) {
            out!("there     {}", entry.run_id);
            continue;
        }
        lines.push(serde_json::to_string(&entry)? + "\n");
        out!("added     {} ({}, {})", entry.run_id, entry.name, entry.verdict.word());
        known.push(entry);
    }
    let failed = || format!("failed to add to {}", file.display());
    let mut out = OpenOptions::new().create(true).append(true).open(file).with_context(failed)?;
    out.write_all(lines.concat().as_bytes()).with_context(failed)
}

/// The text for a history: every figure of a scenario over its runs, and the runs at which the figure shifted.
fn over_time(arguments: &Arguments, file: &Path) -> Result<String> {
    let entries = read(file)?;
    let scenario = chosen(&entries, arguments.scenario.as_deref(), file)?;
    let mut all = history::series(&entries, &scenario);
    if let Some(figure) = &arguments.figure {
        let names: Vec<String> = all.iter().map(|series| series.figure.clone()).collect();
        all.retain(|series| series.figure == *figure);
        let names = names.join(", ");
        ensure!(!all.is_empty(), "there is no figure `{figure}` in the runs of {scenario}; there are: {names}");
    }
    match (&arguments.draw, all.as_slice()) {
        (Some(path), [series]) => write(path, &reports::render::history_svg(&scenario, series))?,
        (Some(_), _) => bail!("--draw draws one figure of a history: name it with --figure"),
        (None, _) => {}
    }
    if arguments.json { super::json(&all) } else { Ok(reports::render::history(&scenario, &all)) }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// The name of the scenario to show: `named`, or the only scenario of the history.
fn chosen(entries: &[Entry], named: Option<&str>, file: &Path) -> Result<String> {
    let names: Vec<&str> = history::scenarios(entries).into_iter().collect();
    let file = file.display();
    match (named, names.as_slice()) {
        (Some(name), all) if all.contains(&name) => Ok(name.to_owned()),
        (Some(name), all) => {
            let near = nearest(name, all).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            bail!("{file} has no runs of `{name}`{near}")
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => bail!("{file} has no runs; `longhaul compare RUN --into {file}` adds one"),
        (None, several) => {
            bail!("{file} has runs of several scenarios: name one with --scenario ({})", several.join(", "))
        }
    }
}

fn read(file: &Path) -> Result<Vec<Entry>> {
    let failed = || format!("failed to read {}", file.display());
    let about = std::fs::metadata(file).with_context(failed)?;
    let is_history = about.is_file() && about.len() <= BYTES_MAX;
    ensure!(is_history, "{} is no history: at most {BYTES_MAX} bytes of lines", file.display());
    let text = std::fs::read_to_string(file).with_context(failed)?;
    history::read(&text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the history lacks the wanted scenario or figure, the error names the file and the remedy.
    #[test]
    fn who_asks_for_what_is_not_there_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("h.jsonl");
        let (into, build, scenario, figure) = (None, None, None, None);
        let several = several::Several::default();
        let arguments =
            Arguments { what: vec![file.clone()], several, into, build, scenario, figure, draw: None, json: false };
        let played = several::Several::played_at_once();
        let ignored = Arguments { several: played, ..arguments.clone() };
        let said = format!("{:#}", compare(&ignored).unwrap_err());
        assert!(said.starts_with("--rounds is for a scenario that is played"), "{said}");
        let ask = || compare(&arguments).map_err(|error| format!("{error:#}")).unwrap_err();
        assert!(ask().starts_with("failed to read"));
        std::fs::write(&file, "").unwrap();
        let said = ask();
        assert!(said.contains("has no runs; `longhaul compare RUN --into "), "{said}");
        std::fs::write(&file, "{}\n").unwrap();
        assert!(ask().contains("read line 1 of the history"));
    }
}
