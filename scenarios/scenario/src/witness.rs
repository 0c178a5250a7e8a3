//! How the subject proves what it saw: the channel that carries observations.
//!
//! Every kind of witness is one file, with the keys that it takes, and one line in the list below. It turns what it receives into
//! [`facts::Observation`]s and hands them to the run through one bounded channel. Whoever receives less than a version (an object's name, a
//! generation, that something is there) makes a [`Claim`], which the run resolves with what was committed by then. What cannot be read is
//! counted with an example: a broken witness must not look like a broken subject.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use facts::{Change, Looks};
use loadgen::churn::Api;
use parking_lot::Mutex;
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::shown;

mod children;
mod claim;
mod finalizer;
mod http;
mod known;
mod log;
mod metrics;
mod none;
mod sources;
mod status;

pub use children::{Family, Parent, is_grandchild};
pub use claim::{Claim, Commits, Counts, Of, Proof, Reading, Resolved, Statement, What};
pub use log::Preset;
pub use none::Nothing;

/// What one kind of witness is. The type that has it holds its keys.
trait Kind {
    /// As it is written in a scenario file.
    const NAME: &'static str;
    /// What to look at when it stays silent.
    const REMEDY: &'static str;

    /// What it can tell.
    fn sees(&self, about: &About) -> Sees;

    /// What is wrong with its keys, for the author of the file.
    fn check(&self, _: &About) -> Result<(), String> {
        Ok(())
    }

    /// Where in each object the subject tells how far it has come, where it proves something by that.
    fn looks(&self) -> Option<Looks> {
        None
    }

    /// How many unreadable lines are tolerated; where it says nothing, they matter as soon as something looks missed.
    fn tolerates(&self) -> Option<u64> {
        None
    }

    /// Begins to listen.
    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open>;
}

/// What else a scenario says that decides what a witness can tell.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The objects that the subject makes for those that are churned.
    pub family: Option<Family>,
    /// It has a page of metrics.
    pub has_metrics: bool,
    /// Objects are deleted and made again under the same name.
    pub reuses_names: bool,
    /// Resources that are judged besides the one that is churned.
    pub others: Vec<String>,
}

/// Where a witness that looks by itself finds what.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The control plane, for the harness.
    pub api: Api,
    /// What else the scenario says.
    pub about: About,
    /// The subject's page of metrics.
    pub metrics_url: Option<String>,
    /// Where the subject reaches this machine.
    pub machine: std::net::Ipv4Addr,
}

/// A witness that listens. Dropping it ends that.
#[derive(Default)]
pub struct Open {
    /// Variables of the environment that tell the subject where to speak.
    pub variables: Vec<(&'static str, String)>,
    /// What the subject's lines of output are shown to.
    pub lines: Option<Arc<dyn Lines>>,
    /// What every commit is shown to.
    pub commits: Option<Box<dyn Commits>>,
    /// Ends with it.
    _listens: Option<Box<dyn Any + Send>>,
}

/// Reads the subject's output.
pub trait Lines: Send + Sync {
    /// What a line proves, or why it cannot be read. A line that is no observation is none and no error.
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>>;
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
            pub fn remedy(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::REMEDY),* }
            }

            /// What it can tell.
            pub fn sees(&self, about: &About) -> Sees {
                match self { $(Self::$variant(settings) => settings.sees(about)),* }
            }

            /// What is wrong with its keys, for the author of the file.
            pub fn check(&self, about: &About) -> Result<(), String> {
                match self { $(Self::$variant(settings) => settings.check(about)),* }
            }

            /// Where in each object the subject tells how far it has come, where it proves something by that.
            pub fn looks(&self) -> Option<Looks> {
                match self { $(Self::$variant(settings) => settings.looks()),* }
            }

            /// How many unreadable lines are tolerated, if it says so.
            pub fn tolerates(&self) -> Option<u64> {
                match self { $(Self::$variant(settings) => settings.tolerates()),* }
            }

            /// Begins to listen.
            pub async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open> {
                match self { $(Self::$variant(settings) => settings.open(reporter, scene).await),* }
            }
        }
    };
}

witnesses! {
    /// The subject posts JSON lines to `$LONGHAUL_WITNESS_URL`.
    Http(http::Http),
    /// The subject's log lines are matched.
    Log(log::Log),
    /// The subject repeats the generation or version that it saw in the object itself: in the status, a condition or an annotation.
    Status(status::Status),
    /// The subject makes objects for those that are churned: what `subject: {children: …}` says of them proves what it saw.
    Children(children::Children),
    /// The subject holds each object by a finalizer of its own, and lets it go.
    Finalizer(finalizer::Finalizer),
    /// The subject's page of metrics has a series for each object.
    Metrics(metrics::Metrics),
    /// The subject watches nothing, and nothing is asked of it. What a subject of `role: webhook` has anyhow.
    None(Nothing),
}

impl Witness {
    /// The path of the generation that the subject repeats in each object, where it does.
    pub fn generation(&self) -> Option<String> {
        match self {
            Self::Status(status) if status.is_of_generations() => status.looks().map(|looks| looks.observed),
            _ => None,
        }
    }
}

impl Default for Witness {
    fn default() -> Self {
        Self::Http(http::Http::default())
    }
}

/// Observations that may wait for the run. A full queue holds the subject's POST back, it drops nothing.
const QUEUE_MAX: usize = 16_384;
/// Of a line that cannot be read: enough to know it by, on one line of a report.
const SHOWN_CHARS: usize = 200;

/// What a witness hands to the run.
pub struct Reported {
    /// What it reports, in the order in which that came.
    pub statements: mpsc::Receiver<Statement>,
    /// How much of it could be read.
    pub tally: Arc<Tally>,
}

/// The writing end, shared by whatever listens to the subject.
#[derive(Clone)]
pub struct Reporter {
    sender: mpsc::Sender<Statement>,
    tally: Arc<Tally>,
    clock: Clock,
}

/// What a witness received so far.
#[derive(Default)]
pub struct Tally {
    lines: AtomicU64,
    malformed: AtomicU64,
    example: Mutex<Option<String>>,
}

/// A witness and its reporter.
pub fn channel(clock: Clock) -> (Reporter, Reported) {
    let (sender, statements) = mpsc::channel(QUEUE_MAX);
    let tally = Arc::new(Tally::default());
    (Reporter { sender, tally: Arc::clone(&tally), clock }, Reported { statements, tally })
}

impl Reporter {
    /// The run's time now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The run's time at an instant, in milliseconds.
    pub fn at_ms(&self, at: std::time::Instant) -> u64 {
        self.clock.at_ms(at)
    }

    /// Passes a statement on, waiting for room.
    pub async fn report(&self, statement: Statement) {
        if !matches!(statement, Statement::Deaf(_)) {
            self.tally.lines.fetch_add(1, Ordering::Relaxed);
        }
        // A closed channel means that the run is over: nothing is judged any more.
        let _ = self.sender.send(statement).await;
    }

    /// Shows a line of the subject's output, the n-th of its pipe, to whoever reads it.
    pub async fn line(&self, lines: &dyn Lines, number: u64, line: &str) {
        match lines.read(line, self.now_ms()) {
            Some(Ok(statement)) => self.report(statement).await,
            Some(Err(why)) => self.malformed(line, &format!("line {number} of its output, {why}")),
            None => {}
        }
    }

    /// Counts what could not be read and keeps the first example.
    pub fn malformed(&self, line: &str, why: &str) {
        let mut example = self.tally.example.lock();
        if example.is_none() {
            let begins: String = line.chars().take(SHOWN_CHARS).collect();
            *example = Some(format!("{why}: {}", shown::text(&begins)));
        }
        // Who sees the count finds the example.
        self.tally.malformed.fetch_add(1, Ordering::Release);
    }
}

impl Tally {
    /// Lines that were observations.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Lines that were not.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Acquire)
    }

    /// The first line that was not, and why.
    pub fn example(&self) -> Option<String> {
        self.example.lock().clone()
    }
}

/// Reads a change as clients spell it: `ADDED`, `added`, `create`, `Deleted` …
pub fn change(word: &str) -> Option<Change> {
    match word.to_ascii_lowercase().as_str() {
        "add" | "added" | "create" | "created" | "apply" | "applied" => Some(Change::Added),
        "modify" | "modified" | "update" | "updated" | "change" | "changed" => Some(Change::Modified),
        "delete" | "deleted" | "remove" | "removed" => Some(Change::Deleted),
        _ => None,
    }
}

/// A scene in which nothing is to be found.
#[cfg(test)]
pub fn nowhere() -> Scene {
    let api = Api { url: String::new(), ca_pem: String::new(), token: String::new(), mark: None };
    Scene { api, about: About::default(), metrics_url: None, machine: std::net::Ipv4Addr::LOCALHOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(by: Parent, generation: Option<&str>) -> About {
        let family = Family {
            resource: "configmaps/v1".to_owned(),
            group: "longhaul.dev".to_owned(),
            by,
            generation: generation.map(str::to_owned),
            revision: None,
            may_be_none: false,
            are_deleted: false,
        };
        About { family: Some(family), has_metrics: true, ..About::default() }
    }

    fn log(pattern: &str) -> Witness {
        Witness::Log(log::Log { pattern: Some(pattern.to_owned()), ..log::Log::default() })
    }

    fn preset(preset: Preset) -> Witness {
        Witness::Log(log::Log { preset: Some(preset), ..log::Log::default() })
    }

    fn metrics() -> Witness {
        Witness::Metrics(metrics::Metrics {
            series: "a".into(),
            uid: Some("uid".into()),
            ..metrics::Metrics::default()
        })
    }

    fn metrics_of_versions() -> Witness {
        let value = Some(status::Holds::Generation);
        Witness::Metrics(metrics::Metrics { value, series: "a".into(), uid: Some("uid".into()), ..Default::default() })
    }

    fn finalizer() -> Witness {
        Witness::Finalizer(finalizer::Finalizer { name: "example.com/cleanup".to_owned() })
    }

    /// A kind is named in its own file as serde names it from the list.
    #[test]
    fn kinds_have_one_name() {
        let about = family(Parent::Owner, None);
        let all = [
            Witness::default(),
            log("(?P<uid>a)(?P<rv>b)"),
            Witness::Status(status::Status::default()),
            Witness::Children(children::Children::default()),
            finalizer(),
            metrics(),
        ];
        for witness in all {
            assert_eq!(serde_json::to_value(&witness).unwrap()["kind"], witness.name());
            assert_eq!(witness.check(&about), Ok(()));
            assert!(witness.remedy().ends_with(['?', '.']));
        }
    }

    /// The rows of docs/witnesses.md.
    #[test]
    fn what_each_kind_tells_is_what_the_page_says() {
        let page = include_str!("../../../docs/witnesses.md");
        let label = || Parent::Label("l".to_owned());
        let children = || Witness::Children(children::Children::default());
        let plain = About::default;
        let rows = [
            ("| `http`", Witness::default(), plain()),
            ("| `log` with the groups `uid`, `rv` and `change`", log("(?P<uid>a)(?P<rv>b)(?P<change>c)"), plain()),
            ("| `log` with `uid` and `rv`", log("(?P<uid>a)(?P<rv>b)"), plain()),
            ("| `log` with `name` and `rv`", log("(?P<name>a)(?P<rv>b)"), plain()),
            ("| `log` with `name` and `rv`", log("(?P<uid>a)(?P<generation>b)"), plain()),
            ("| `log` with `uid` or `name`", log("(?P<name>a)"), plain()),
            ("| `log` with `preset: pepr`", preset(Preset::Pepr), plain()),
            ("| `log` with another `preset`", preset(Preset::ControllerRuntime), plain()),
            ("| `log` with another `preset`", preset(Preset::Kopf), plain()),
            ("| `log` with another `preset`", preset(Preset::KubeRs), plain()),
            ("| `status`", Witness::Status(status::Status::default()), plain()),
            ("| `children` by label or name, without", children(), family(label(), None)),
            ("| `children` by label or name, with `gen", children(), family(label(), Some("/a"))),
            ("| `children` by owner, or with `churn` |", children(), family(Parent::Owner, None)),
            ("| `children` by owner, or with `churn`, with", children(), family(Parent::Owner, Some("/a"))),
            ("| `finalizer`", finalizer(), plain()),
            ("| `metrics`:", metrics(), plain()),
            ("| `metrics` with `value`", metrics_of_versions(), plain()),
            ("| `none`", Witness::None(Nothing {}), plain()),
        ];
        for (row, witness, about) in rows {
            let line = page.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
            let cells: Vec<bool> =
                line.trim_end_matches('|').split('|').skip(2).map(|cell| cell.trim().starts_with("yes")).collect();
            let able: Vec<bool> = record::Sight::EACH.map(|sight| witness.sees(&about).can(sight)).to_vec();
            assert_eq!(cells, able, "{row}");
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
