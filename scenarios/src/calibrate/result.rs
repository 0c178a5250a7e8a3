//! The result of a calibration: one type from which all reports are written.
//!
//! Computes the state of each row and of each judge from the runs. Does no I/O.

use std::collections::BTreeSet;

use reports::growth::calibration::Row as Synthetic;
use reports::statistics::proportion::{Interval, wilson};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plants::{Expected, Plant};

mod gates;

pub use gates::{Alarms, Found, Gated};

/// The schema name in `calibration.json`.
pub const SCHEMA: &str = "longhaul.calibration/v1";
/// The confidence of Wilson's intervals.
const CONFIDENCE: f64 = 0.95;
/// Prefix of the names of budgets that judge the run itself, not the subject.
const VALIDITY: &str = "validity.";
/// Prefix of the names of budgets of growth. For budgets of growth, a change that only looks like a bug may stay
/// undecided.
const MEMORY: &str = "memory.";

/// All results of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The day of the calibration, such as `2026-11-23`.
    pub date: String,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// Number of processors of the machine.
    pub processors: usize,
    /// Whether the judge of growth found growth in generated series that no judge may miss.
    pub synthetic_canary: bool,
    /// Results of the judge of growth on generated series.
    pub synthetic: Vec<Synthetic>,
    /// Runs of the service with and without planted bugs; empty with `--synthetic`.
    pub rows: Vec<Row>,
}

/// A row of the calibration: a planted bug, or a scenario without any planted bug.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Name of the planted bug for `--plant`; null without a bug.
    pub plant: Option<String>,
    /// The mistake, in a few words.
    pub about: String,
    /// Name of the scenario.
    pub stage: String,
    /// The result that all runs of the row must have.
    pub expected: Expectation,
    /// Whether this is the control run, whose bug must be caught before any other result counts.
    pub canary: bool,
    /// All runs of this planted bug or scenario.
    pub plays: Vec<Play>,
}

/// The result that the runs of a planted bug, or of a scenario without a bug, must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Expectation {
    /// Without a planted bug: every budget is met.
    Clean,
    /// The judge for this bug reports the bug, and no other judge reports anything.
    Caught {
        /// Name of the budget.
        judge: String,
        /// Other budgets that the same mistake may break.
        also: Vec<String>,
    },
    /// A change that only looks like a bug: no judge may report it.
    LooksAlike,
    /// A bug that no judge can find yet, so no judge may report anything.
    Waits {
        /// Name of the judge that does not exist yet.
        judge: String,
    },
}

/// One run of a planted bug, or of a scenario without a bug.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Play {
    /// Seed of the run.
    pub seed: u64,
    /// Verdict of the run; `invalid` runs do not count.
    pub verdict: String,
    /// Budgets that were broken.
    pub fired: Vec<String>,
    /// Budgets that stayed undecided.
    pub undecided: Vec<String>,
    /// Every budget that was judged.
    pub judged: Vec<String>,
    /// The measurement of the judge for this bug, or the finding that decided the run.
    pub says: String,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Folder of the run record; empty without a record.
    pub record: String,
    /// The result of the gate for the metric that must show the planted bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gated>,
}

/// The state of a row of the calibration, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// All runs gave the expected result.
    Right,
    /// No judge can find the bug yet, and no judge reported a bug.
    Waiting,
    /// Some runs of the row stayed undecided.
    Undecided,
    /// The row was not run, or no run was valid.
    Unknown,
    /// A judge reported a bug that it must not report.
    FalseAlarm,
    /// The judge for this bug did not report the bug.
    Missed,
}

/// A number of runs out of all runs, such as 19 of 20.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub hits: u64,
    pub of: u64,
}

/// How often a judge was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judge {
    pub name: String,
    pub caught: Share,
    /// How often the judge reported a bug that it must not report.
    pub false_alarms: Share,
    pub undecided: u64,
}

impl Row {
    /// The row of a planted bug, before any run.
    pub fn of(plant: &Plant, canary: bool) -> Self {
        let expected = match plant.expected {
            Expected::Caught { judge, also } => Expectation::Caught {
                judge: judge.to_owned(),
                also: also.iter().map(|&name| name.to_owned()).collect(),
            },
            Expected::LooksAlike => Expectation::LooksAlike,
            Expected::Waits { what_for } => Expectation::Waits { judge: what_for.to_owned() },
        };
        let (plant, about, stage) = (Some(plant.name.to_owned()), plant.about.to_owned(), plant.stage.to_owned());
        Self { plant, about, stage, expected, canary, plays: Vec::new() }
    }

    /// The row of a scenario without planted bugs.
    pub fn twin(stage: &str) -> Self {
        let about = "the service as it is".to_owned();
        let stage = stage.to_owned();
        Self { plant: None, about, stage, expected: Expectation::Clean, canary: false, plays: Vec::new() }
    }

    pub fn name(&self) -> &str {
        self.plant.as_deref().unwrap_or("clean")
    }

    /// Whether this budget may be broken in this row.
    pub fn may_fire(&self, budget: &str) -> bool {
        matches!(&self.expected, Expectation::Caught { judge, also } if budget == judge || also.iter().any(|one| one == budget))
    }

    /// The runs of the row that are not invalid.
    pub fn valid(&self) -> impl Iterator<Item = &Play> {
        self.plays.iter().filter(|play| play.is_valid())
    }

    /// Budgets that were broken although they must be met.
    pub fn false_alarms(&self) -> BTreeSet<&str> {
        let fired = self.valid().flat_map(|play| &play.fired).map(String::as_str);
        fired.filter(|budget| !self.may_fire(budget)).collect()
    }

    pub fn state(&self) -> State {
        if self.is_gated() && matches!(self.expected, Expectation::Clean | Expectation::Caught { .. }) {
            return self.state_of_gates();
        }
        let judged = self.valid().map(|play| self.state_of(play)).max();
        let alarm = (!self.false_alarms().is_empty()).then_some(State::FalseAlarm);
        judged.max(alarm).unwrap_or(State::Unknown)
    }

    /// The state of a row whose runs are gates. Each gate may be wrong at a stated rate, so the number of wrong gates
    /// decides the state.
    fn state_of_gates(&self) -> State {
        let own = match (self.found(), self.alarms()) {
            (Some(found), _) if found.is_broken() => State::Missed,
            (Some(found), _) if found.promised.is_none() && found.found.hits == 0 => State::Undecided,
            (None, Some(alarms)) if alarms.undecided * 2 > alarms.alarms.of => State::Undecided,
            (None, None) => State::Unknown,
            _ => State::Right,
        };
        own.max(if self.cries() { State::FalseAlarm } else { State::Right })
    }

    fn state_of(&self, play: &Play) -> State {
        let is_open = |budget: &&String| !(self.expected == Expectation::LooksAlike && budget.starts_with(MEMORY));
        match &self.expected {
            Expectation::Caught { judge, .. } if play.fired.contains(judge) => State::Right,
            Expectation::Caught { judge, .. } if play.undecided.contains(judge) => State::Undecided,
            Expectation::Caught { .. } => State::Missed,
            Expectation::Waits { .. } => State::Waiting,
            _ if play.undecided.iter().any(|budget| is_open(&budget)) => State::Undecided,
            _ => State::Right,
        }
    }

    /// The result of the row as text for a table.
    pub fn outcome(&self) -> String {
        let alarms = self.false_alarms().into_iter().collect::<Vec<_>>().join(", ");
        let open = |judge: &str| {
            let of_it = |play: &&Play| play.undecided.iter().any(|budget| budget.starts_with(judge));
            self.valid().filter(of_it).count()
        };
        match (self.state(), &self.expected) {
            (State::FalseAlarm, _) => format!("false alarm of {alarms}"),
            (State::Missed, Expectation::Caught { judge, .. }) => format!("not caught by {judge}"),
            (State::Undecided, Expectation::Caught { judge, .. }) => format!("{judge} was undecided"),
            (State::Undecided, _) => "not decided".to_owned(),
            (State::Waiting, Expectation::Waits { judge }) => format!("waits for {judge}; nothing fired"),
            (State::Right, Expectation::Caught { judge, .. }) => format!("caught by {judge}"),
            (State::Right, Expectation::LooksAlike) => match open(MEMORY) {
                0 => "passed".to_owned(),
                open => format!("no alarm, {open} undecided"),
            },
            (State::Unknown, _) if self.plays.is_empty() => "not played".to_owned(),
            (State::Unknown, _) => "no valid run".to_owned(),
            _ => "passed".to_owned(),
        }
    }
}

impl Play {
    pub fn is_valid(&self) -> bool {
        self.verdict != reports::judge::Verdict::Invalid.word()
    }
}

impl Share {
    /// Wilson's interval; `None` without runs.
    pub fn interval(self) -> Option<Interval> {
        wilson(self.hits, self.of, CONFIDENCE).ok()
    }
}

impl Calibration {
    /// Whether the bugs of the control runs were caught; `None` before the first control run.
    pub fn canary(&self) -> Option<bool> {
        let rows = || self.rows.iter().filter(|row| row.canary);
        if rows().any(|row| row.valid().next().is_none()) {
            return None;
        }
        let caught = rows().all(|row| row.valid().all(|play| row.state_of(play) == State::Right));
        Some(self.synthetic_canary && caught)
    }

    /// All judges that decided something, by name.
    pub fn judges(&self) -> Vec<Judge> {
        let plays = || self.rows.iter().flat_map(|row| row.valid().map(move |play| (row, play)));
        let judged = plays().flat_map(|(_, play)| &play.judged).filter(|budget| !budget.starts_with(VALIDITY));
        let names: BTreeSet<&String> = judged.collect();
        let share = |hits: &dyn Fn(&Play) -> bool, among: &dyn Fn(&Row, &Play) -> bool| {
            let among: Vec<&Play> = plays().filter(|(row, play)| among(row, play)).map(|(_, play)| play).collect();
            Share { hits: among.iter().filter(|play| hits(play)).count() as u64, of: among.len() as u64 }
        };
        let judge = |name: &String| {
            let own = |row: &Row, _: &Play| matches!(&row.expected, Expectation::Caught { judge, .. } if judge == name);
            let other = |row: &Row, play: &Play| !row.may_fire(name) && play.judged.contains(name);
            let fired = |play: &Play| play.fired.contains(name);
            let open = |play: &Play| play.undecided.contains(name);
            Judge {
                name: name.clone(),
                caught: share(&fired, &own),
                false_alarms: share(&fired, &other),
                undecided: share(&open, &own).hits,
            }
        };
        names.into_iter().map(judge).collect()
    }

    /// The exit code. 0: every planted bug was caught by its own judge alone, every run without bugs passed, and every
    /// gate kept its promise. 1: a row or a promise failed. 2: a row was not decided. 3: the control run's bug was not
    /// caught.
    pub fn exit_code(&self) -> u8 {
        let worst = self.rows.iter().map(Row::state).max().unwrap_or(State::Right);
        let broken = self.synthetic.iter().any(Synthetic::broken);
        match worst {
            _ if self.canary() == Some(false) => reports::exit::INVALID,
            State::FalseAlarm | State::Missed => reports::exit::FAIL,
            _ if broken => reports::exit::FAIL,
            State::Undecided | State::Unknown => reports::exit::INCONCLUSIVE,
            State::Right | State::Waiting => reports::exit::PASS,
        }
    }

    /// The meaning of the exit code.
    pub fn verdict(&self) -> &'static str {
        match self.exit_code() {
            reports::exit::PASS => "pass",
            reports::exit::FAIL => "fail",
            _ if self.canary() == Some(false) => "invalid",
            _ => "inconclusive",
        }
    }

    /// The reason for the verdict, in one sentence.
    pub fn reason(&self) -> String {
        if self.canary() == Some(false) {
            return "the canary was not caught: it is a bug that no judge can miss, so no figure here is valid."
                .to_owned();
        }
        let name = |row: &Row| match row.plant {
            Some(_) => row.name().to_owned(),
            None => format!("{} in {}", row.name(), row.stage),
        };
        let of = |state: State| self.rows.iter().filter(|row| row.state() == state).map(name).collect::<Vec<_>>();
        let named = |state: State, what: &str| {
            let names = of(state);
            (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        let kinds: Vec<String> = self.synthetic.iter().filter(|row| row.broken()).map(|row| row.kind.clone()).collect();
        let broken = (!kinds.is_empty()).then(|| format!("a promise does not hold for series of {}", kinds.join(", ")));
        let wrong = [
            named(State::Missed, "not caught"),
            named(State::FalseAlarm, "false alarm"),
            broken,
            named(State::Undecided, "not decided"),
            named(State::Unknown, "not played to a valid end"),
        ];
        let wrong: Vec<String> = wrong.into_iter().flatten().collect();
        match (wrong.is_empty(), self.rows.is_empty()) {
            (false, _) => wrong.join("; ") + ".",
            (true, true) => "every promise on generated series holds.".to_owned(),
            (true, false) => {
                "every plant was caught by its own judge and by no other, and every clean twin passed.".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
