//! `longhaul history`: a file with one line a run, and what became of its figures.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};
use reports::history::{self, Entry, Series};
use reports::judge::judge;
use reports::record::Record;

use crate::out::out;
use crate::scenario::nearest;

/// The file when none is named.
const FILE: &str = "longhaul-history.jsonl";
/// A larger file is none of ours: a line has about a kilobyte.
const BYTES_MAX: u64 = 256 << 20;

/// What can be done with a history.
#[derive(Subcommand)]
pub(super) enum Command {
    /// Judge run records again and add a line for each. A run that is in the file already is left as it is.
    Add(Add),
    /// Show every figure of a scenario over its runs, and where its level changed.
    Show(Show),
}

/// Arguments of `history add`.
#[derive(Args)]
pub(super) struct Add {
    /// Directories of runs.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The history; it is made when it does not exist.
    #[arg(long, default_value = FILE)]
    file: PathBuf,
    /// What the build is called, such as a tag or a commit.
    #[arg(long, value_name = "NAME")]
    build: Option<String>,
}

/// Arguments of `history show`.
#[derive(Args)]
pub(super) struct Show {
    /// The history.
    #[arg(long, default_value = FILE)]
    file: PathBuf,
    /// The scenario; needed where the file has runs of several.
    #[arg(long)]
    scenario: Option<String>,
    /// Only this figure, such as `lag p99`.
    #[arg(long)]
    figure: Option<String>,
    /// Draw the figure into this file.
    #[arg(long, value_name = "FILE", requires = "figure")]
    svg: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(super) fn history(command: &Command) -> ExitCode {
    let done = match command {
        Command::Add(arguments) => add(arguments),
        Command::Show(arguments) => show(arguments),
    };
    match done {
        Ok(()) => ExitCode::from(reports::exit::PASS),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

fn add(Add { runs, file, build }: &Add) -> anyhow::Result<()> {
    let mut known = if file.exists() { read(file)? } else { Vec::new() };
    // All are read before one is written: a wrong name adds nothing.
    let mut lines = Vec::new();
    for run in runs {
        let record = Record::open(run)?;
        let entry = history::entry(&record, &judge(&record), build.clone());
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

fn show(Show { file, scenario, figure, svg, json }: &Show) -> anyhow::Result<()> {
    let entries = read(file)?;
    let scenario = chosen(&entries, scenario.as_deref(), file)?;
    let mut all = history::series(&entries, &scenario);
    if let Some(figure) = figure {
        let names: Vec<String> = all.iter().map(|series| series.figure.clone()).collect();
        all.retain(|series| series.figure == *figure);
        ensure!(
            !all.is_empty(),
            "there is no figure `{figure}` in the runs of {scenario}; there are: {}",
            names.join(", ")
        );
    }
    if let (Some(path), [series]) = (svg, all.as_slice()) {
        std::fs::write(path, reports::render::history_svg(&scenario, series))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    out!("{}", told(&scenario, &all, *json)?.trim_end());
    Ok(())
}

fn told(scenario: &str, all: &[Series], is_json: bool) -> anyhow::Result<String> {
    Ok(if is_json { serde_json::to_string_pretty(all)? } else { reports::render::history(scenario, all) })
}

/// The scenario that was named, or the only one.
fn chosen(entries: &[Entry], named: Option<&str>, file: &Path) -> anyhow::Result<String> {
    let names: Vec<&str> = history::scenarios(entries).into_iter().collect();
    match (named, names.as_slice()) {
        (Some(name), all) if all.contains(&name) => Ok(name.to_owned()),
        (Some(name), all) => {
            let near = nearest(name, all).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            bail!("{} has no runs of `{name}`{near}", file.display())
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => bail!("{} has no runs; `longhaul history add RUN` adds one", file.display()),
        (None, several) => {
            bail!("{} has runs of several scenarios: name one with --scenario ({})", file.display(), several.join(", "))
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<Entry>> {
    let failed = || format!("failed to read {}", file.display());
    let about = std::fs::metadata(file).with_context(failed)?;
    ensure!(
        about.is_file() && about.len() <= BYTES_MAX,
        "{} is no history: at most {BYTES_MAX} bytes of lines",
        file.display()
    );
    let text = std::fs::read_to_string(file).with_context(failed)?;
    history::read(&text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong is said with the file and what to do.
    #[test]
    fn who_asks_for_what_is_not_there_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("h.jsonl");
        let ask = |scenario: Option<&str>| {
            let scenario = scenario.map(str::to_owned);
            show(&Show { file: file.clone(), scenario, figure: None, svg: None, json: false })
                .map_err(|error| format!("{error:#}"))
                .unwrap_err()
        };
        assert!(ask(None).starts_with("failed to read"));
        std::fs::write(&file, "").unwrap();
        assert!(ask(None).ends_with("has no runs; `longhaul history add RUN` adds one"));
        std::fs::write(&file, "{}\n").unwrap();
        assert!(ask(Some("smoke")).contains("read line 1 of the history"));
    }
}
