//! The contents of the HTML report about a test suite that ran against the mock control plane with faults.
//!
//! Owns only the types of the facts in the report. `longhaul envtest` fills these types with values; this module judges
//! nothing.

use std::fmt;

#[derive(Debug, Clone)]
pub struct Suite {
    pub outcome: Outcome,
    pub command: String,
    pub sentence: String,
    /// Sentences with further facts for the reader, the most important first.
    pub story: Vec<String>,
    /// The faults of the run, drawn from a seed or read from a file: `chaos, order`.
    pub faults: String,
    pub seed: u64,
    pub started: String,
    /// The length of the run, in milliseconds.
    pub length_ms: u64,
    /// The suite's tests; empty if the suite did not write its results.
    pub tests: Vec<Test>,
    /// Hits of faults, in order of time.
    pub hits: Vec<Hit>,
    /// Counts of requests and writes for each range of time.
    pub stretches: Vec<Stretch>,
    /// Tables of names with a count for each name.
    pub tables: Vec<Table>,
    /// The smallest RBAC roles that the suite needs, as YAML.
    pub roles: Vec<String>,
    /// The command that runs the suite again with the same seed.
    pub repeat: String,
    /// Facts about the run: name and text.
    pub facts: Vec<(&'static str, String)>,
    /// Files beside the report, with a description of each.
    pub files: Vec<(String, &'static str)>,
    pub longhaul: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// The suite passed, and no fault had an effect.
    Undisturbed,
}

/// A test of the suite, and counts of the events while it ran.
#[derive(Debug, Clone)]
pub struct Test {
    pub name: String,
    /// The start of the test, in milliseconds since the start of the suite.
    pub from_ms: u64,
    /// The end of the test, in milliseconds since the start of the suite.
    pub to_ms: u64,
    pub failed: bool,
    /// The failure message of the test; none if it did not fail.
    pub message: Option<String>,
    pub requests: usize,
    pub objects: usize,
    pub conflicts: usize,
    /// Hits of faults while the test ran, at most twenty.
    pub hits: Vec<String>,
    /// The number of hits while the test ran, for each fault: `event-delayed 14 times`.
    pub met: String,
}

#[derive(Debug, Clone)]
pub struct Hit {
    /// The time of the hit, in milliseconds since the start of the suite.
    pub at_ms: u64,
    pub fault: String,
    pub detail: String,
}

/// Counts of requests and writes within a time range.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stretch {
    /// The start of the time range, in milliseconds since the start of the suite.
    pub from_ms: u64,
    /// The end of the time range, in milliseconds since the start of the suite.
    pub until_ms: u64,
    pub requests: u64,
    /// Number of object versions that were written.
    pub commits: u64,
    /// Number of writes that failed with a conflict.
    pub conflicts: u64,
}

/// A table of names with a count for each.
#[derive(Debug, Clone)]
pub struct Table {
    pub title: &'static str,
    /// The head of the column with the names.
    pub what: &'static str,
    /// The head of the column with the counts.
    pub count: &'static str,
    pub rows: Vec<(String, String)>,
}

impl Outcome {
    /// The outcome of the suite in one word, as the report shows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undisturbed => "undisturbed",
        }
    }

    /// The CSS class that sets the colour of the suite's outcome.
    pub fn class(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "fail",
            Self::Undisturbed => "inconclusive",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
