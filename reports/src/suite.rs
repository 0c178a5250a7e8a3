//! The contents of the page about a test-suite that ran against the mock control plane with faults.
//!
//! Owns the facts of the page and nothing else. The runner of the suite fills them in; nothing is judged here.

use std::fmt;

#[derive(Debug, Clone)]
pub struct Suite {
    pub outcome: Outcome,
    pub command: String,
    /// The outcome, in one sentence.
    pub sentence: String,
    /// Further facts for the reader, the most important first.
    pub story: Vec<String>,
    /// The drawn or written faults: `chaos, order`.
    pub faults: String,
    pub seed: u64,
    /// The start of the run, as text.
    pub started: String,
    /// The length of the run, in milliseconds.
    pub length_ms: u64,
    /// The tests, if the suite wrote its results.
    pub tests: Vec<Test>,
    /// Hits of faults, in the order of time.
    pub hits: Vec<Hit>,
    /// Requests and writes, by stretches of time.
    pub stretches: Vec<Stretch>,
    /// Lists with a count each.
    pub tables: Vec<Table>,
    /// The least roles that the suite needs, as YAML.
    pub roles: Vec<String>,
    /// The command that repeats the seed.
    pub repeat: String,
    /// Facts about the run.
    pub facts: Vec<(&'static str, String)>,
    /// Files beside the page, and a description of each.
    pub files: Vec<(String, &'static str)>,
    pub longhaul: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// The suite passed, and no fault hit anything.
    Undisturbed,
}

/// A test, and the events while it ran.
#[derive(Debug, Clone)]
pub struct Test {
    pub name: String,
    /// Its start, in milliseconds since the start of the suite.
    pub from_ms: u64,
    /// Its end, in milliseconds since the start of the suite.
    pub to_ms: u64,
    pub failed: bool,
    /// Its message if it failed.
    pub message: Option<String>,
    /// Requests meanwhile.
    pub requests: usize,
    /// Objects that were written meanwhile.
    pub objects: usize,
    /// Conflicts meanwhile.
    pub conflicts: usize,
    /// Hits of faults meanwhile, at most twenty.
    pub hits: Vec<String>,
    /// All hits of faults, by fault: `event-delayed 14 times`.
    pub met: String,
}

/// A fault had an effect.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The time of the hit, in milliseconds since the start of the suite.
    pub at_ms: u64,
    pub fault: String,
    pub detail: String,
}

/// Counts within a stretch of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stretch {
    /// Its start, in milliseconds since the start of the suite.
    pub from_ms: u64,
    /// Its end, in milliseconds since the start of the suite.
    pub until_ms: u64,
    /// Requests that came.
    pub requests: u64,
    /// Object versions that were written.
    pub commits: u64,
    /// Writes that failed with a conflict.
    pub conflicts: u64,
}

/// A list with a count each.
#[derive(Debug, Clone)]
pub struct Table {
    pub title: &'static str,
    /// The heading of the names.
    pub what: &'static str,
    /// The heading of the counts.
    pub count: &'static str,
    pub rows: Vec<(String, String)>,
}

impl Outcome {
    /// The word on the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undisturbed => "undisturbed",
        }
    }

    /// The CSS class with its colour.
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
