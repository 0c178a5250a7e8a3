//! How the subject proves what it saw: the channel that carries observations.
//!
//! Every kind of witness is one file, with the keys that it takes, and one line in the list below. It turns what it hears into
//! [`Observation`]s and hands them to the run through one bounded channel. What it cannot read is counted with an example: a
//! broken witness must not look like a broken subject.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use facts::{Change, Commit, Observation, Progress, Revision};
use parking_lot::Mutex;
use reports::record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::clock::Clock;

mod http;
mod log;
mod none;
mod status;

pub(crate) use none::Nothing;

/// What one kind of witness is. The type that has it holds its keys.
trait Kind {
    /// As it is written in a scenario file.
    const NAME: &'static str;
    /// What to look at when it stays silent.
    const REMEDY: &'static str;

    /// What it can tell.
    fn sees(&self) -> Sees;

    /// What is wrong with its keys, for the author of the file.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The JSON pointer of the generation that the subject repeats in an object, where it proves something by that.
    fn progress(&self) -> Option<&str> {
        None
    }

    /// Begins to listen.
    async fn open(&self, ear: &Ear) -> anyhow::Result<Open>;
}

/// A witness that listens. Dropping it ends that.
#[derive(Default)]
pub(crate) struct Open {
    /// Variables of the environment that tell the subject where to speak.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// What the subject's lines of output are shown to.
    pub(crate) lines: Option<Arc<dyn Lines>>,
    /// What every commit is shown to.
    pub(crate) commits: Option<Box<dyn Commits>>,
    /// Ends with it.
    _listens: Option<Box<dyn Any + Send>>,
}

/// Reads the subject's output.
pub(crate) trait Lines: Send + Sync {
    /// What a line proves, or why it cannot be read. A line that is no observation is none and no error.
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Observation, &'static str>>;
}

/// Reads what was committed. Such a witness cannot tell of deletions: nothing is written after one.
pub(crate) trait Commits: Send {
    /// What a commit proves. They are shown in their order.
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading;
}

/// What is made of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The ledger should account for this version.
    pub(crate) counts: bool,
    /// The revision of this object that the commit proves to have been seen.
    pub(crate) proves: Option<Revision>,
}

macro_rules! witnesses {
    ($($(#[$doc:meta])* $variant:ident($settings:ty)),* $(,)?) => {
        /// How the subject proves what it saw.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        pub enum Witness {
            $($(#[$doc])* $variant($settings)),*
        }

        impl Witness {
            /// As it is written in a scenario file.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::NAME),* }
            }

            /// What to look at when it stays silent.
            pub(crate) fn remedy(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::REMEDY),* }
            }

            /// What it can tell.
            pub(crate) fn sees(&self) -> Sees {
                match self { $(Self::$variant(settings) => settings.sees()),* }
            }

            /// What is wrong with its keys, for the author of the file.
            pub(crate) fn check(&self) -> Result<(), String> {
                match self { $(Self::$variant(settings) => settings.check()),* }
            }

            /// The JSON pointer of the generation that the subject repeats in an object, where it proves something by that.
            pub(crate) fn progress(&self) -> Option<&str> {
                match self { $(Self::$variant(settings) => settings.progress()),* }
            }

            /// Begins to listen.
            pub(crate) async fn open(&self, ear: &Ear) -> anyhow::Result<Open> {
                match self { $(Self::$variant(settings) => settings.open(ear).await),* }
            }
        }
    };
}

witnesses! {
    /// The subject posts JSON lines to `$LONGHAUL_WITNESS_URL`.
    Http(http::Http),
    /// The subject's log lines are matched.
    Log(log::Log),
    /// The subject writes the generation that it saw into the object's status.
    Status(status::Status),
    /// The subject watches nothing, and nothing is asked of it. What a subject of `role: webhook` has anyhow.
    None(Nothing),
}

impl Default for Witness {
    fn default() -> Self {
        Self::Http(http::Http {})
    }
}

/// Observations that may wait for the run. A full queue holds the subject's POST back, it drops nothing.
const QUEUE_MAX: usize = 16_384;

/// What a witness hands to the run.
pub(crate) struct Heard {
    pub(crate) observations: mpsc::Receiver<Observation>,
    pub(crate) tally: Arc<Tally>,
}

/// The writing end, shared by whatever hears the subject.
#[derive(Clone)]
pub(crate) struct Ear {
    sender: mpsc::Sender<Observation>,
    tally: Arc<Tally>,
    clock: Clock,
}

/// What a witness heard so far.
#[derive(Default)]
pub(crate) struct Tally {
    lines: AtomicU64,
    malformed: AtomicU64,
    example: Mutex<Option<String>>,
}

/// A witness and its ear.
pub(crate) fn channel(clock: Clock) -> (Ear, Heard) {
    let (sender, observations) = mpsc::channel(QUEUE_MAX);
    let tally = Arc::new(Tally::default());
    (Ear { sender, tally: Arc::clone(&tally), clock }, Heard { observations, tally })
}

impl Ear {
    /// The run's time now, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Passes an observation on, waiting for room.
    pub(crate) async fn heard(&self, observation: Observation) {
        self.tally.lines.fetch_add(1, Ordering::Relaxed);
        // A closed channel means that the run is over: nothing is judged any more.
        let _ = self.sender.send(observation).await;
    }

    /// Shows a line of the subject's output to whoever reads it.
    pub(crate) async fn line(&self, lines: &dyn Lines, line: &str) {
        match lines.read(line, self.now_ms()) {
            Some(Ok(observation)) => self.heard(observation).await,
            Some(Err(why)) => self.malformed(line, why),
            None => {}
        }
    }

    /// Counts what could not be read and keeps the first example.
    pub(crate) fn malformed(&self, line: &str, why: &str) {
        self.tally.malformed.fetch_add(1, Ordering::Relaxed);
        let mut example = self.tally.example.lock();
        if example.is_none() {
            let shown: String = line.chars().take(200).collect();
            *example = Some(format!("{why}: {shown}"));
        }
    }
}

impl Tally {
    /// Lines that were observations.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Lines that were not.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// The first line that was not, and why.
    pub(crate) fn example(&self) -> Option<String> {
        self.example.lock().clone()
    }
}

/// Reads a change as clients spell it: `ADDED`, `added`, `create`, `Deleted` …
pub(crate) fn change(word: &str) -> Option<Change> {
    match word.to_ascii_lowercase().as_str() {
        "add" | "added" | "create" | "created" | "apply" | "applied" => Some(Change::Added),
        "modify" | "modified" | "update" | "updated" | "change" | "changed" => Some(Change::Modified),
        "delete" | "deleted" | "remove" | "removed" => Some(Change::Deleted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind is named in its own file as serde names it from the list.
    #[test]
    fn kinds_have_one_name() {
        let pattern = Some("(?P<uid>a)(?P<rv>b)".to_owned());
        let all = [Witness::default(), Witness::Log(log::Log { pattern }), Witness::Status(status::Status::default())];
        for witness in all {
            assert_eq!(serde_json::to_value(&witness).unwrap()["kind"], witness.name());
            assert_eq!(witness.check(), Ok(()));
            assert!(witness.remedy().ends_with(['?', '.']));
        }
    }

    /// The rows of docs/witnesses.md.
    #[test]
    fn what_each_kind_tells_is_what_the_page_says() {
        let page = include_str!("../../docs/witnesses.md");
        let log = |pattern: &str| Witness::Log(log::Log { pattern: Some(pattern.to_owned()) });
        let rows = [
            ("| `http`", Witness::default()),
            ("| `log` with the groups", log("(?P<uid>a)(?P<rv>b)(?P<change>c)")),
            ("| `log` with `uid`", log("(?P<uid>a)(?P<rv>b)")),
            ("| `status`", Witness::Status(status::Status::default())),
            ("| `none`", Witness::None(Nothing {})),
        ];
        for (row, witness) in rows {
            let line = page.lines().find(|line| line.starts_with(row)).unwrap();
            let cells: Vec<bool> =
                line.trim_end_matches('|').split('|').skip(2).map(|cell| cell.trim().starts_with("yes")).collect();
            let told: Vec<bool> = reports::record::Sight::EACH.map(|sight| witness.sees().can(sight)).to_vec();
            assert_eq!(cells, told, "{row}");
        }
    }

    /// Keys of another kind are refused.
    #[test]
    fn a_key_belongs_to_a_kind() {
        let read = |text: &str| serde_json::from_str::<Witness>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"kind": "http"}"#), Ok(Witness::default()));
        assert!(read(r#"{"kind": "http", "pattern": "a"}"#).unwrap_err().contains("unknown field `pattern`"));
        assert!(read(r#"{"kind": "log", "pointer": "/a"}"#).unwrap_err().contains("unknown field `pointer`"));
    }
}
