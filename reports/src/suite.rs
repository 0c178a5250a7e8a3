//! A test-suite that was run against the mock control plane with faults: what its page shows.
//!
//! Owns the facts of the page and nothing else. They are put together where the suite was run; nothing is judged here.

use std::fmt;

/// One run of a suite.
#[derive(Debug, Clone)]
pub struct Suite {
    /// What became of it.
    pub outcome: Outcome,
    /// The command.
    pub command: String,
    /// What happened, in one sentence.
    pub sentence: String,
    /// What somebody should know after that, the most important first.
    pub story: Vec<String>,
    /// What was drawn or written: `chaos, order`.
    pub faults: String,
    /// The seed.
    pub seed: u64,
    /// When it began, as text.
    pub started: String,
    /// How long it took.
    pub length_ms: u64,
    /// The tests, where the suite wrote what became of them.
    pub tests: Vec<Test>,
    /// What faults did, in the order of time.
    pub hits: Vec<Hit>,
    /// What was asked and written, by stretches of time.
    pub stretches: Vec<Stretch>,
    /// Lists with a count each.
    pub tables: Vec<Table>,
    /// The least roles, as YAML.
    pub roles: Vec<String>,
    /// The command that plays the seed again.
    pub repeat: String,
    /// Facts about the run.
    pub facts: Vec<(&'static str, String)>,
    /// Files beside the page, and what each is.
    pub files: Vec<(String, &'static str)>,
    /// The version that made the page.
    pub longhaul: String,
}

/// What became of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It passed, and no fault hit anything.
    Undisturbed,
}

/// A test, and what happened while it ran.
#[derive(Debug, Clone)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// When it began, since the suite did.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
    /// Whether it failed.
    pub failed: bool,
    /// What it said then.
    pub message: Option<String>,
    /// Requests meanwhile.
    pub requests: usize,
    /// Objects that were written meanwhile.
    pub objects: usize,
    /// Conflicts meanwhile.
    pub conflicts: usize,
    /// What faults did meanwhile, at most twenty.
    pub hits: Vec<String>,
    /// All that they did, by fault: `event-delayed 14 times`.
    pub met: String,
}

/// A fault had an effect.
#[derive(Debug, Clone)]
pub struct Hit {
    /// When, since the suite began.
    pub at_ms: u64,
    /// Its name.
    pub fault: String,
    /// What it did.
    pub detail: String,
}

/// What happened within a stretch of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stretch {
    /// Its begin, since the suite's.
    pub from_ms: u64,
    /// Its end.
    pub until_ms: u64,
    /// Requests that came.
    pub requests: u64,
    /// Object versions that were written.
    pub commits: u64,
    /// Writes that met a conflict.
    pub conflicts: u64,
}

/// A list with a count each.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it lists.
    pub title: &'static str,
    /// What one row is.
    pub what: &'static str,
    /// What the count is of.
    pub count: &'static str,
    /// The rows.
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

    /// The class that gives it its colour.
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
