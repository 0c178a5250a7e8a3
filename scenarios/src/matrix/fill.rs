//! Fills the table of the matrix: selects the cells to fill, and runs each cell without a result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use units::Span;

use super::table::{Cell, ColumnHead, Outcome, RowHead, Table};
use crate::clients::{self, Column, Missing};
use crate::out::out;
use crate::scenario::Need;

/// Timeout of a cell: the time of the slowest scenario with start and end, without the time that `--drain` adds.
const CELL_TIMEOUT: Duration = Duration::from_mins(20);
/// The file with the table, from which `--resume` continues.
const FILE: &str = "matrix.json";

#[derive(Debug, Clone)]
pub struct Choice {
    /// Names of clients; empty for all.
    pub clients: Vec<String>,
    /// Names of bugs, or their rows in the catalogue; empty for all.
    pub rows: Vec<String>,
    /// The time for a client after the last write, if the bug's scenario gives less.
    pub drain: Option<Span>,
    pub own_clocks: bool,
    /// How many times faster the clients' clocks run.
    pub clock_rate: u32,
    pub jobs: usize,
    /// The folder for the table and the run records.
    pub out: PathBuf,
    /// Whether to keep cells that the table in this folder already has.
    pub resume: bool,
}

/// The reason why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no {what} `{name}`{suggestion}; `cargo xtask matrix --list` names all")]
    Unknown {
        /// The word `client` or `row`.
        what: &'static str,
        name: String,
        /// A similar name, as a suggestion in the error.
        suggestion: String,
    },
    #[error(transparent)]
    Folder(#[from] clients::FolderError),
    /// The table of an earlier call cannot be used.
    #[error("failed to resume from {path}: {why}; leave out --resume to start over")]
    Resume { path: PathBuf, why: String },
    #[error("failed to write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("failed to render the table: {0}")]
    Render(#[from] askama::Error),
}

/// The keys of the output of `longhaul soak bugs/NAME --json` that a cell needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    verdict: String,
    words: Vec<String>,
    #[serde(default)]
    not_hit: Vec<String>,
    noticed_ms: Option<u64>,
    observed_ms: Option<u64>,
    #[serde(default)]
    lacks: Vec<Need>,
    #[serde(default)]
    reason: String,
    record: PathBuf,
}

/// An empty table for the selected clients and bugs, or the table of an earlier call.
pub fn table_for(choice: &Choice, bugs: Vec<RowHead>) -> Result<(Table, Vec<Column>), Error> {
    let columns = chosen_columns(&choice.clients)?;
    let rows = chosen_rows(&choice.rows, bugs)?;
    let path = choice.out.join(FILE);
    let resume = |why: String| Error::Resume { path: path.clone(), why };
    let (before, cells) = match std::fs::read(&path) {
        Ok(bytes) if choice.resume => {
            let old: Table = serde_json::from_slice(&bytes).map_err(|error| resume(error.to_string()))?;
            if old.format != Table::FORMAT || old.longhaul != env!("CARGO_PKG_VERSION") {
                return Err(resume(format!("it is of format {} and longhaul {}", old.format, old.longhaul)));
            }
            (old.rows, old.cells)
        }
        _ => Default::default(),
    };
    let heads: Vec<ColumnHead> = columns.iter().map(column_head).collect();
    // A cell with another run length or other timeouts is another measurement.
    let same = |row: &&RowHead| before.contains(row);
    let known = |cell: &Cell| {
        heads.iter().any(|head| head.id == cell.column) && rows.iter().filter(same).any(|row| row.id == cell.row)
    };
    let cells = cells.into_iter().filter(|cell| cell.outcome.is_final() && known(cell)).collect();
    let longhaul = env!("CARGO_PKG_VERSION").to_owned();
    let own_clocks = choice.own_clocks;
    let clock_rate = choice.clock_rate;
    let format = Table::FORMAT;
    Ok((Table { format, date: today(), longhaul, own_clocks, clock_rate, columns: heads, rows, cells }, columns))
}

/// Runs each cell without a result, and writes the table after each. If `stop` is cancelled, the current runs end
/// orderly and their cells stay empty.
pub async fn fill(
    table: &mut Table,
    columns: Vec<Column>,
    choice: &Choice,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let mut wanted = Vec::new();
    for column in columns {
        let rows: Vec<RowHead> =
            table.rows.iter().filter(|row| table.cell(&row.id, column.id()).is_none()).cloned().collect();
        if rows.is_empty() {
            continue;
        }
        // Installed one after the other, before any time limit runs: two installations at once would not be faster.
        let Some(command) = stop.run_until_cancelled(column.command()).await else { return Ok(()) };
        if let Err(needs) = &command {
            out!("{}: skipped: needs {}", column.id(), needs.to_string().lines().next().unwrap_or_default());
        }
        let column = Arc::new((column, command));
        wanted.extend(rows.into_iter().map(|row| (row, Arc::clone(&column))));
    }
    // Row by row, so that an interrupted table has whole rows.
    wanted.sort_by_key(|(row, _)| table.rows.iter().position(|head| head.id == row.id));
    let total = wanted.len();
    let (mut wanted, mut running, mut done) = (wanted.into_iter(), JoinSet::new(), 0);
    loop {
        while running.len() < choice.jobs.max(1)
            && !stop.is_cancelled()
            && let Some((row, column)) = wanted.next()
        {
            let (choice, stop) = (choice.clone(), stop.clone());
            running.spawn(async move { cell(&row, &column.0, &column.1, &choice, &stop).await });
        }
        let Some(ended) = running.join_next().await else { return Ok(()) };
        // A cell's task does not panic. If one did, --resume would run it again like an interrupted one.
        let Ok(Some(cell)) = ended else { continue };
        done += 1;
        let time = cell.time().map(|time| format!(" ({time})")).unwrap_or_default();
        out!("[{done}/{total}] {} × {}: {}{time}", cell.row, cell.column, cell.outcome.text());
        table.enter(cell);
        table.date = today();
        write(table, &choice.out)?;
    }
}

/// Writes the table in all formats. The JSON file is written atomically, because a later call may continue from it.
pub(super) fn write(table: &Table, folder: &Path) -> Result<(), Error> {
    let file = |name: &str| folder.join(name);
    let problem = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(problem(folder))?;
    let json = serde_json::to_string_pretty(table).expect("a table has only texts and numbers") + "\n";
    let fresh = tempfile::NamedTempFile::new_in(folder).map_err(problem(folder))?;
    std::fs::write(fresh.path(), json).map_err(problem(fresh.path()))?;
    let path = file(FILE);
    fresh.persist(&path).map_err(|error| problem(&path)(error.error))?;
    for (name, text) in [("matrix.md", super::markdown(table)), ("matrix.html", super::html(table)?)] {
        std::fs::write(file(name), text).map_err(problem(&file(name)))?;
    }
    Ok(())
}

/// Runs one client in one scenario, with the command that a user would type. `None` if the run was interrupted.
async fn cell(
    row: &RowHead,
    column: &Column,
    command: &Result<Vec<String>, Missing>,
    choice: &Choice,
    stop: &CancellationToken,
) -> Option<Cell> {
    let records = choice.out.join("runs").join(column.id());
    let mut arguments = vec!["soak".to_owned(), format!("bugs/{}", row.id)];
    if let Some(version) = column.http() {
        arguments.extend(["--http".to_owned(), version.to_string()]);
    }
    let mut repeat = format!("cargo xtask matrix --clients {} --rows {}", column.id(), row.id);
    if let Some(drain) = choice.drain {
        arguments.extend(["--drain".to_owned(), drain.to_string()]);
        let _ = write!(repeat, " --drain {drain}");
    }
    if choice.own_clocks {
        arguments.push("--own-clocks".to_owned());
        repeat += " --own-clocks";
    }
    if choice.clock_rate > 1 {
        arguments.extend(["--clock-rate".to_owned(), choice.clock_rate.to_string()]);
    }
    if choice.clock_rate > 1 || choice.own_clocks {
        let _ = write!(repeat, " --clock-rate {}", choice.clock_rate);
    }
    let of_client = |real_ms: u64| real_ms * u64::from(choice.clock_rate);
    let blank = Cell {
        row: row.id.clone(),
        column: column.id().to_owned(),
        outcome: Outcome::OtherHttp,
        noticed_ms: None,
        observed_ms: None,
        reason: String::new(),
        command: repeat,
    };
    if column.http().is_some_and(|version| !row.http.is_empty() && !row.http.contains(&version)) {
        return Some(blank);
    }
    let command = match command {
        Ok(command) => command,
        Err(needs) => return Some(Cell { outcome: Outcome::Skipped { needs: needs.to_string() }, ..blank }),
    };
    arguments.extend(["--json".to_owned(), "--runs".to_owned(), records.display().to_string()]);
    if !column.cannot().is_empty() {
        arguments.extend(["--cannot".to_owned(), column.cannot().join(",")]);
    }
    if !command.is_empty() {
        let clocks = [("LONGHAUL_SILENCE_S", row.silence_s), ("LONGHAUL_RELIST_S", row.relist_s)];
        let clocks = clocks.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        // The clients' own commands begin with `env` as well; two in a row are fine.
        arguments.extend(["--".to_owned(), "env".to_owned()].into_iter().chain(clocks));
        arguments.extend(command.iter().cloned());
    }
    let patience = CELL_TIMEOUT + choice.drain.unwrap_or_default().0;
    let output = crate::itself::play(&arguments, patience, stop).await?;
    Some(match output.and_then(|output| answer(&output)) {
        Ok(answer) => Cell {
            noticed_ms: answer.noticed_ms.map(of_client),
            observed_ms: answer.observed_ms.map(of_client),
            outcome: outcome(&answer),
            reason: answer.reason,
            ..blank
        },
        Err(reason) => Cell { outcome: Outcome::Inconclusive, reason, ..blank },
    })
}

fn answer(output: &std::process::Output) -> Result<Answer, String> {
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the run gave no answer {}", crate::itself::last_words(output)))
}

fn outcome(answer: &Answer) -> Outcome {
    match answer.verdict.as_str() {
        "pass" => Outcome::Passed,
        // A broken budget without a short name still counts.
        "fail" if answer.words.is_empty() => Outcome::Failed { words: vec!["failed".to_owned()] },
        "fail" => Outcome::Failed { words: answer.words.clone() },
        _ if !answer.lacks.is_empty() => Outcome::NotApplicable { lacks: answer.lacks.clone() },
        _ if broke_off(&answer.record) => Outcome::Inconclusive,
        _ if !answer.not_hit.is_empty() => Outcome::NotHit { faults: answer.not_hit.clone() },
        _ if only_silence(&answer.record) => Outcome::SawNothing,
        _ => Outcome::Inconclusive,
    }
}

/// The findings of a run; empty if they cannot be read.
fn findings(record: &Path) -> Vec<serde_json::Value> {
    let bytes = std::fs::read(record.join("verdict.json")).unwrap_or_default();
    let mut verdict: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    match verdict["findings"].take() {
        serde_json::Value::Array(findings) => findings,
        _ => Vec::new(),
    }
}

/// Whether a run ended early for a reason other than a silent client. If a run broke off, a fault without hits shows
/// nothing about the client.
fn broke_off(record: &Path) -> bool {
    findings(record).iter().any(|finding| {
        finding["budget"] == "validity.completed"
            && finding["verdict"] != "pass"
            && finding["observed"] != "witness silent"
    })
}

/// Whether the only broken condition of the run is that the witness received nothing.
fn only_silence(record: &Path) -> bool {
    let findings = findings(record);
    let unmet = |finding: &&serde_json::Value| {
        finding["budget"].as_str().is_some_and(|budget| budget.starts_with("validity.")) && finding["verdict"] != "pass"
    };
    let mut invalid = findings.iter().filter(unmet).peekable();
    let of_witness = |finding: &serde_json::Value| {
        finding["budget"] == "validity.witness"
            || (finding["budget"] == "validity.completed" && finding["observed"] == "witness silent")
    };
    invalid.peek().is_some() && invalid.all(of_witness)
}

fn column_head(column: &Column) -> ColumnHead {
    ColumnHead {
        id: column.id().to_owned(),
        client: column.client().to_owned(),
        version: column.version().to_owned(),
        mode: column.mode().to_owned(),
        http: column.http(),
        clocks: column.clocks().to_owned(),
    }
}

fn chosen_columns(names: &[String]) -> Result<Vec<Column>, Error> {
    let all = clients::columns();
    if names.is_empty() {
        return Ok(all);
    }
    let ids: Vec<&str> = all.iter().map(Column::id).collect();
    let mut chosen: Vec<Column> = Vec::new();
    for name in names {
        match clients::named(name)? {
            Some(columns) => chosen.extend(columns),
            None => return Err(unknown("client", name, &ids)),
        }
    }
    // Clients of this repository come first, in the order of their list; clients in folders follow.
    chosen.sort_by_key(|column| ids.iter().position(|id| *id == column.id()).unwrap_or(usize::MAX));
    chosen.dedup_by(|a, b| a.id() == b.id());
    Ok(chosen)
}

fn chosen_rows(names: &[String], all: Vec<RowHead>) -> Result<Vec<RowHead>, Error> {
    let is = |row: &RowHead, name: &str| row.id == name || row.row == name;
    if let Some(name) = names.iter().find(|name| !all.iter().any(|row| is(row, name))) {
        let ids: Vec<&str> = all.iter().map(|row| row.id.as_str()).collect();
        return Err(unknown("row", name, &ids));
    }
    Ok(all.into_iter().filter(|row| names.is_empty() || names.iter().any(|name| is(row, name))).collect())
}

fn unknown(what: &'static str, name: &str, known: &[&str]) -> Error {
    let near = crate::scenario::nearest(name, known);
    let suggestion = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
    Error::Unknown { what, name: name.to_owned(), suggestion }
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests;
