//! The table: rows are documented bugs, columns are clients. An interrupted run continues from its file.

use serde::{Deserialize, Serialize};

use crate::scenario::Need;

/// Rows, columns and the outcomes of their cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Table {
    pub format: u32,
    /// The day of the newest cell, such as `2026-11-21`.
    pub date: String,
    pub longhaul: String,
    /// Whether every client kept its own limits for silence and between lists.
    #[serde(default)]
    pub own_clocks: bool,
    /// How many times faster the clients' clocks ran; all times are of those clocks.
    #[serde(default = "one")]
    pub clock_rate: u32,
    pub columns: Vec<ColumnHead>,
    pub rows: Vec<RowHead>,
    /// Outcomes, in the order of the runs.
    pub cells: Vec<Cell>,
}

fn one() -> u32 {
    1
}

/// A client of one version, used in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ColumnHead {
    /// The name on the command line.
    pub id: String,
    /// The client's name in its package registry.
    pub client: String,
    pub version: String,
    /// The client's way to watch that is used.
    pub mode: String,
    /// The only HTTP version that it was offered; `None` for both.
    pub http: Option<u8>,
    /// The clocks that ran faster than by default.
    pub clocks: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RowHead {
    /// The name on the command line, which is that of the scenario.
    pub id: String,
    /// The row in the catalogue.
    pub row: String,
    /// The question that the scenario asks.
    pub question: String,
    /// Links to its documentation.
    pub reference: Vec<String>,
    /// Length of a run, from the start of the warm-up to the end of the drain.
    pub length_ms: u64,
    /// Longest silence of a watch in seconds, set for every client that has an option for it.
    #[serde(default)]
    pub silence_s: Option<u64>,
    /// Interval between lists beside the watch in seconds, set for every client that has an option for it.
    #[serde(default)]
    pub relist_s: Option<u64>,
    /// The HTTP versions in which the bug exists; empty for all.
    #[serde(default)]
    pub http: Vec<u8>,
}

/// One client in one scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cell {
    /// The `id` of the row.
    pub row: String,
    /// The `id` of the column.
    pub column: String,
    pub outcome: Outcome,
    /// Time from the first hit of the fault to the client's next request for the resource.
    pub noticed_ms: Option<u64>,
    /// Time from the first hit of the fault to the first observation of a version committed after it.
    pub observed_ms: Option<u64>,
    /// The reason, quoted from the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The command that repeats the run.
    pub command: String,
}

/// The outcome of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Outcome {
    /// The fault had hits and every budget was kept.
    Passed,
    /// The fault had hits and these promises were broken.
    Failed {
        /// Short names of the broken promises.
        words: Vec<String>,
    },
    /// The client never sent a request that these faults could hit.
    NotHit {
        /// Names of the faults.
        #[serde(default)]
        faults: Vec<String>,
    },
    /// The fault had hits and the client reported nothing at all, from beginning to end. The judges do not call that
    /// missed, because a broken witness looks the same; the adapter's own test shows that its witness works.
    SawNothing,
    /// The bug exists only in an HTTP version that the client does not speak.
    OtherHttp,
    /// The bug exists only in clients with more abilities.
    NotApplicable {
        /// Abilities that the client lacks.
        lacks: Vec<Need>,
    },
    /// The run could not decide.
    Inconclusive,
    /// The client could not be installed or started here.
    Skipped {
        /// The missing requirement.
        needs: String,
    },
}

impl Outcome {
    /// The text of the cell, without the time.
    pub fn text(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed { words } => words.join(", "),
            Self::NotHit { faults } => format!("not hit: {}", faults.join(", ")),
            Self::SawNothing => "saw nothing".to_owned(),
            Self::OtherHttp => "other HTTP version".to_owned(),
            Self::NotApplicable { .. } => "not applicable".to_owned(),
            Self::Inconclusive => "inconclusive".to_owned(),
            Self::Skipped { needs } => format!("skipped: needs {needs}"),
        }
    }

    /// Whether `--resume` keeps the cell. Undecided and skipped cells are run again.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Inconclusive | Self::Skipped { .. })
    }
}

impl Cell {
    /// How soon the client noticed: its first observation is the promise of the verdict, and its next request is the
    /// second-best fact.
    pub fn time(&self) -> Option<String> {
        let decided = matches!(self.outcome, Outcome::Passed | Outcome::Failed { .. });
        let request = self.noticed_ms.map(|ms| format!("asks after {}", reports::words::millis(ms)));
        let event = self.observed_ms.map(|ms| format!("sees after {}", reports::words::millis(ms)));
        let times: Vec<String> = [request, event].into_iter().flatten().collect();
        (decided && !times.is_empty()).then(|| times.join(", "))
    }
}

impl Table {
    /// The version of the file's format that this program writes and reads.
    pub const FORMAT: u32 = 1;

    /// The cell, if it was run.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// Adds a cell, or replaces the old one.
    pub fn enter(&mut self, cell: Cell) {
        self.cells.retain(|old| (&old.row, &old.column) != (&cell.row, &cell.column));
        self.cells.push(cell);
    }
}
