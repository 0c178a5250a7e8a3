//! What a calibration found: one type, from which every page is written.
//!
//! Owns how plays add up to what is known of each row and of each judge. Pure.

use std::collections::BTreeSet;

use reports::growth::calibration::Row as Synthetic;
use reports::statistics::proportion::{Interval, wilson};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plants::{Expected, Plant};

mod gates;

pub use gates::{Alarms, Found, Gated};

/// The schema of `calibration.json`.
pub const SCHEMA: &str = "longhaul.calibration/v1";
/// The confidence of Wilson's intervals.
const CONFIDENCE: f64 = 0.95;
/// What judges the run itself, not the subject.
const VALIDITY: &str = "validity.";
/// Where growth is judged: what only looks like it may stay undecided there.
const MEMORY: &str = "memory.";

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The day, such as `2026-11-23`.
    pub date: String,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// Processors of the machine.
    pub processors: usize,
    /// Whether the judge of growth found what no judge may miss, in generated series.
    pub synthetic_canary: bool,
    /// The judge of growth on generated series.
    pub synthetic: Vec<Synthetic>,
    /// Runs of the service, planted and clean; empty with `--synthetic`.
    pub rows: Vec<Row>,
}

/// A plant, or the clean twin of all plants of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// As `--plant` names it; none for the clean twin.
    pub plant: Option<String>,
    /// What it does.
    pub about: String,
    /// The scenario that it is played in.
    pub stage: String,
    /// What must become of it.
    pub expected: Expectation,
    /// Whether it fails before anything else is believed.
    pub canary: bool,
    /// Its runs.
    pub plays: Vec<Play>,
}

/// What must become of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Expectation {
    /// The clean twin: every budget is met.
    Clean,
    /// Its own judge fires, and no other.
    Caught {
        /// The budget.
        judge: String,
        /// Budgets that may fire with it, because they see the same mistake.
        also: Vec<String>,
    },
    /// It only looks like a bug: no judge fires.
    LooksAlike,
    /// Nothing sees it yet, so no judge fires.
    Waits {
        /// The judge that it waits for.
        judge: String,
    },
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Play {
    /// Its seed.
    pub seed: u64,
    /// Its verdict; `invalid` runs are not counted.
    pub verdict: String,
    /// Budgets that were broken.
    pub fired: Vec<String>,
    /// Budgets that were not decided.
    pub undecided: Vec<String>,
    /// Every budget that was judged.
    pub judged: Vec<String>,
    /// What its own judge measured, or what decided the run.
    pub says: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Its record; empty where there is none.
    pub record: String,
    /// What a gate said of the metric that the row is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gated>,
}

/// What is known of a row, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it must be.
    Right,
    /// Nothing sees it yet, and nothing fired.
    Waiting,
    /// Some of its runs did not decide.
    Undecided,
    /// It was not played, or no run was valid.
    Unknown,
    /// A judge fired that must not.
    FalseAlarm,
    /// Its own judge did not fire.
    Missed,
}

/// A share of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// So many.
    pub hits: u64,
    /// Of so many.
    pub of: u64,
}

/// What is known of a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judge {
    /// The budget.
    pub name: String,
    /// How often it fired at its own plants.
    pub caught: Share,
    /// How often it fired where it must not.
    pub false_alarms: Share,
    /// How often it left its own plants undecided.
    pub undecided: u64,
}

impl Row {
    /// The row of a plant, not played yet.
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

    /// The clean twin of all plants of a stage.
    pub fn twin(stage: &str) -> Self {
        let about = "the service as it is".to_owned();
        let stage = stage.to_owned();
        Self { plant: None, about, stage, expected: Expectation::Clean, canary: false, plays: Vec::new() }
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        self.plant.as_deref().unwrap_or("clean")
    }

    /// Whether this judge may fire here.
    pub fn may_fire(&self, budget: &str) -> bool {
        matches!(&self.expected, Expectation::Caught { judge, also } if budget == judge || also.iter().any(|one| one == budget))
    }

    /// The runs that count.
    pub fn valid(&self) -> impl Iterator<Item = &Play> {
        self.plays.iter().filter(|play| play.is_valid())
    }

    /// The judges that fired although they must not.
    pub fn false_alarms(&self) -> BTreeSet<&str> {
        let fired = self.valid().flat_map(|play| &play.fired).map(String::as_str);
        fired.filter(|budget| !self.may_fire(budget)).collect()
    }

    /// What is known of it.
    pub fn state(&self) -> State {
        if self.is_gated() && matches!(self.expected, Expectation::Clean | Expectation::Caught { .. }) {
            return self.state_of_gates();
        }
        let judged = self.valid().map(|play| self.state_of(play)).max();
        let alarm = (!self.false_alarms().is_empty()).then_some(State::FalseAlarm);
        judged.max(alarm).unwrap_or(State::Unknown)
    }

    /// What is known of a row that gates play. Each of them may be wrong now and then, as often as it says: what counts is how many are.
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

    /// What became of it, for people.
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
    /// Whether it counts.
    pub fn is_valid(&self) -> bool {
        self.verdict != reports::judge::Verdict::Invalid.word()
    }
}

impl Share {
    /// Wilson's interval; none where nothing was played.
    pub fn interval(self) -> Option<Interval> {
        wilson(self.hits, self.of, CONFIDENCE).ok()
    }
}

impl Calibration {
    /// Whether a judge fired where one surely must. None as long as nothing of that was played.
    pub fn canary(&self) -> Option<bool> {
        let rows = || self.rows.iter().filter(|row| row.canary);
        if rows().any(|row| row.valid().next().is_none()) {
            return None;
        }
        let caught = rows().all(|row| row.valid().all(|play| row.state_of(play) == State::Right));
        Some(self.synthetic_canary && caught)
    }

    /// Every judge that decided something, by name.
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

    /// The exit code: 0 only if every plant was caught by its own judge alone, every twin passed and every promise holds; 1 if one did
    /// not, 2 if something was not decided, 3 if the canary lived.
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

    /// The exit code in words.
    pub fn verdict(&self) -> &'static str {
        match self.exit_code() {
            reports::exit::PASS => "pass",
            reports::exit::FAIL => "fail",
            _ if self.canary() == Some(false) => "invalid",
            _ => "inconclusive",
        }
    }

    /// One sentence: why.
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
