//! The table of the matrix: rows are documented bugs, columns are clients. A later call can continue the table from its
//! file.

use serde::{Deserialize, Serialize};

use crate::scenario::Need;

/// Rows, columns and the outcome of each cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Table {
    pub format: u32,
    /// The day of the newest cell, such as `2026-11-21`.
    pub date: String,
    pub longhaul: String,
    /// Whether each client kept its own timeouts for silent watches and its own interval between lists.
    #[serde(default)]
    pub own_clocks: bool,
    /// How many times faster the clients' clocks ran. All times in the table are times on the clients' clocks.
    #[serde(default = "one")]
    pub clock_rate: u32,
    pub columns: Vec<ColumnHead>,
    pub rows: Vec<RowHead>,
    /// Cells with a result, in the order of their runs.
    pub cells: Vec<Cell>,
}

fn one() -> u32 {
    1
}

/// A column of the matrix: one version and one mode of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ColumnHead {
    /// The client's name on the command line.
    pub id: String,
    /// The client's name in its package registry.
    pub client: String,
    pub version: String,
    /// The client's function that watches, such as an informer.
    pub mode: String,
    /// The only HTTP version that the client was offered; `None` for HTTP/1.1 and HTTP/2.
    pub http: Option<u8>,
    /// Timeouts and intervals that are shorter than the client's defaults.
    pub clocks: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RowHead {
    /// The bug's name on the command line, which is the name of its scenario.
    pub id: String,
    /// The bug's row in the catalogue of bugs.
    pub row: String,
    pub question: String,
    /// Links to documentation of the bug.
    pub reference: Vec<String>,
    /// Length of a run, from the start of the warm-up to the end of the drain.
    pub length_ms: u64,
    /// The longest allowed silence of a watch in seconds, set for each client with such an option.
    #[serde(default)]
    pub silence_s: Option<u64>,
    /// The interval between lists during a watch in seconds, set for each client with such an option.
    #[serde(default)]
    pub relist_s: Option<u64>,
    /// The HTTP versions in which the bug can occur; empty for all.
    #[serde(default)]
    pub http: Vec<u8>,
}

/// The result of one client in one scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cell {
    /// The `id` of the bug.
    pub row: String,
    /// The `id` of the client.
    pub column: String,
    pub outcome: Outcome,
    /// Time from the first hit of the fault until the client's next request for the resource.
    pub noticed_ms: Option<u64>,
    /// Time from the first hit of the fault until the first observation of a version committed after this hit.
    pub observed_ms: Option<u64>,
    /// The reason for the outcome, as the run reported it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Outcome {
    /// The fault had hits, and every budget was met.
    Passed,
    /// The fault had hits, and these promises were broken.
    Failed {
        /// Short names of the broken promises.
        words: Vec<String>,
    },
    /// The client sent no request that the faults of the scenario could hit.
    NotHit {
        #[serde(default)]
        faults: Vec<String>,
    },
    /// The fault had hits, and the client reported no observation in the whole run. The judges call no version missed,
    /// because the record of a broken witness would be the same. A test of the adapter shows that its witness works.
    SawNothing,
    /// The bug can occur only in an HTTP version that the client does not use.
    OtherHttp,
    /// The bug can occur only in clients with features that this client lacks.
    NotApplicable {
        /// Features that the client lacks.
        lacks: Vec<Need>,
    },
    /// The run ended without a decision.
    Inconclusive,
    /// The client could not be installed or started on this machine.
    Skipped {
        /// The program or package that is missing.
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
    /// How soon the client reacted: the time of its first observation, on which the verdict depends, or else of its
    /// next request.
    pub fn time(&self) -> Option<String> {
        let decided = matches!(self.outcome, Outcome::Passed | Outcome::Failed { .. });
        let request = self.noticed_ms.map(|ms| format!("asks after {}", reports::words::millis(ms)));
        let event = self.observed_ms.map(|ms| format!("sees after {}", reports::words::millis(ms)));
        let times: Vec<String> = [request, event].into_iter().flatten().collect();
        (decided && !times.is_empty()).then(|| times.join(", "))
    }
}

impl Table {
    pub const FORMAT: u32 = 1;

    /// The cell of a bug and a client; `None` if the cell was not run.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// Adds a cell to the table, or replaces an earlier result.
    pub fn enter(&mut self, cell: Cell) {
        self.cells.retain(|old| (&old.row, &old.column) != (&cell.row, &cell.column));
        self.cells.push(cell);
    }
}
