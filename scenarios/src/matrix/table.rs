//! The table: rows are documented bugs, columns are clients. It is also the file that an interrupted run goes on from.

use serde::{Deserialize, Serialize};

use crate::scenario::Need;

/// Rows, columns and what was seen where they cross.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Table {
    /// The version of this file's format.
    pub format: u32,
    /// The day of the newest cell, such as `2026-11-21`.
    pub date: String,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// Whether every client kept its own limits for silence and between lists.
    #[serde(default)]
    pub own_clocks: bool,
    /// How many times faster the clients' clocks ran; all times are of those clocks.
    #[serde(default = "one")]
    pub clock_rate: u32,
    /// The clients.
    pub columns: Vec<ColumnHead>,
    /// The bugs.
    pub rows: Vec<RowHead>,
    /// What was seen, in the order in which it was seen.
    pub cells: Vec<Cell>,
}

fn one() -> u32 {
    1
}

/// A client of one version, used in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ColumnHead {
    /// Its name on the command line.
    pub id: String,
    /// As its registry calls it.
    pub client: String,
    /// The exact version.
    pub version: String,
    /// Which of the client's ways to watch is used.
    pub mode: String,
    /// The only HTTP version that it was offered, if it was.
    pub http: Option<u8>,
    /// Which of its clocks ran faster than by default.
    pub clocks: String,
}

/// A documented bug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RowHead {
    /// Its name on the command line: the scenario.
    pub id: String,
    /// Its row in the catalogue.
    pub row: String,
    /// The question that the scenario asks.
    pub question: String,
    /// Where it is documented.
    pub reference: Vec<String>,
    /// How long a run takes, from the start of the warm-up to the end of the drain.
    pub length_ms: u64,
    /// How long a watch may be silent, in seconds: the row's wish to every client that has an option for it.
    #[serde(default)]
    pub silence_s: Option<u64>,
    /// How often a client lists beside its watch, in seconds: as above.
    #[serde(default)]
    pub relist_s: Option<u64>,
    /// The versions of HTTP in which it exists; all when it is empty.
    #[serde(default)]
    pub http: Vec<u8>,
}

/// One client in one scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cell {
    /// The scenario.
    pub row: String,
    /// The client.
    pub column: String,
    /// What the run says.
    pub outcome: Outcome,
    /// From the first hit of the fault to the client's next request for the resource.
    pub noticed_ms: Option<u64>,
    /// From the first hit of the fault to the first observation of a version that was committed after it.
    pub observed_ms: Option<u64>,
    /// Why, in the words of the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What repeats it.
    pub command: String,
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Outcome {
    /// The fault was hit and every budget was kept.
    Passed,
    /// The fault was hit and these promises were broken.
    Failed {
        /// The words of the verdict.
        words: Vec<String>,
    },
    /// The client never sent a request that these faults could hit.
    NotHit {
        /// Their names.
        #[serde(default)]
        faults: Vec<String>,
    },
    /// The fault was hit and the client reported nothing at all, from beginning to end. The judges do not call that missed,
    /// because a broken witness looks the same; the adapter's own test shows that its witness works.
    SawNothing,
    /// The bug is one of another version of HTTP than the client speaks.
    OtherHttp,
    /// The bug is one of clients that do more than this one.
    NotApplicable {
        /// What it does not do.
        lacks: Vec<Need>,
    },
    /// The run could not decide.
    Inconclusive,
    /// The client could not be installed or started here.
    Skipped {
        /// What is missing.
        needs: String,
    },
}

impl Outcome {
    /// What stands in the cell, without the time.
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

    /// Whether the cell need not be run again by `--resume`: what could not be decided, or was not there, is tried again.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Inconclusive | Self::Skipped { .. })
    }
}

impl Cell {
    /// How soon the client noticed: the verdict's own promise is what it observed, its request is the next best fact.
    pub fn time(&self) -> Option<String> {
        let decided = matches!(self.outcome, Outcome::Passed | Outcome::Failed { .. });
        let request = self.noticed_ms.map(|ms| format!("asks after {}", reports::words::millis(ms)));
        let event = self.observed_ms.map(|ms| format!("sees after {}", reports::words::millis(ms)));
        let times: Vec<String> = [request, event].into_iter().flatten().collect();
        (decided && !times.is_empty()).then(|| times.join(", "))
    }
}

impl Table {
    /// The format that this program writes and reads.
    pub const FORMAT: u32 = 1;

    /// What was seen there, if anything was.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// Enters a cell; an older one of the same place goes.
    pub fn enter(&mut self, cell: Cell) {
        self.cells.retain(|old| (&old.row, &old.column) != (&cell.row, &cell.column));
        self.cells.push(cell);
    }
}
