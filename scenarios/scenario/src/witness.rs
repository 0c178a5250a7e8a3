//! The witness: the channel that carries a subject's observations.
//!
//! Every kind of witness is one file, with its keys, and one line in the list below. It turns its input into
//! [`facts::Observation`]s and passes them to the run through one bounded channel. If the input names no version (but
//! an object's name, a generation, or an existence), the witness makes a [`Claim`], which the run resolves with the
//! commits up to then. Unreadable input is counted with an example: a broken witness must not look like a broken
//! subject.

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

/// One kind of witness. The implementing type holds its keys.
trait Kind {
    /// The name in a scenario file.
    const NAME: &'static str;
    /// The places to check if it stays silent.
    const REMEDY: &'static str;

    /// The facts that it can observe.
    fn sees(&self, about: &About) -> Sees;

    /// A mistake in its keys, for the author of the file.
    fn check(&self, _: &About) -> Result<(), String> {
        Ok(())
    }

    /// The place in each object where the subject shows its progress, if the witness uses that.
    fn looks(&self) -> Option<Looks> {
        None
    }

    /// The number of unreadable lines that are tolerated; `None`: they matter as soon as a version looks missed.
    fn tolerates(&self) -> Option<u64> {
        None
    }

    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open>;
}

/// Other parts of a scenario that define the abilities of a witness.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The objects that the subject creates for the churned ones.
    pub family: Option<Family>,
    /// Whether the subject has a metrics page.
    pub has_metrics: bool,
    /// Whether objects are deleted and created again under the same name.
    pub reuses_names: bool,
    /// Judged resources other than the churned one.
    pub others: Vec<String>,
}

/// The inputs of a witness that polls or watches by itself.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The control plane, with the harness's identity.
    pub api: Api,
    /// Other parts of the scenario.
    pub about: About,
    /// The subject's metrics page.
    pub metrics_url: Option<String>,
    /// This machine's address for the subject.
    pub machine: std::net::Ipv4Addr,
}

/// An open witness. Dropping it closes it.
#[derive(Default)]
pub struct Open {
    /// Environment variables with the address for the subject's reports.
    pub variables: Vec<(&'static str, String)>,
    /// The reader of the subject's output lines.
    pub lines: Option<Arc<dyn Lines>>,
    /// The reader of every commit.
    pub commits: Option<Box<dyn Commits>>,
    /// Dropped together with this.
    _listens: Option<Box<dyn Any + Send>>,
}

pub trait Lines: Send + Sync {
    /// The observation in a line, or the reason why it cannot be read. A line without an observation is `None` and no
    /// error.
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>>;
}

macro_rules! witnesses {
    ($($(#[$doc:meta])* $variant:ident($settings:ty)),* $(,)?) => {
        /// How the subject proves its observations.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        pub enum Witness {
            $($(#[$doc])* $variant($settings)),*
        }

        impl Witness {
            /// The name in a scenario file.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::NAME),* }
            }

            /// The places to check if it stays silent.
            pub fn remedy(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::REMEDY),* }
            }

            /// The facts that it can observe.
            pub fn sees(&self, about: &About) -> Sees {
                match self { $(Self::$variant(settings) => settings.sees(about)),* }
            }

            /// A mistake in its keys, for the author of the file.
            pub fn check(&self, about: &About) -> Result<(), String> {
                match self { $(Self::$variant(settings) => settings.check(about)),* }
            }

            /// The place in each object where the subject shows its progress, if the witness uses that.
            pub fn looks(&self) -> Option<Looks> {
                match self { $(Self::$variant(settings) => settings.looks()),* }
            }

            /// The number of unreadable lines that are tolerated, if the file sets it.
            pub fn tolerates(&self) -> Option<u64> {
                match self { $(Self::$variant(settings) => settings.tolerates()),* }
            }

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
    /// The subject repeats the generation or version that it saw in the object itself: in the status, a condition or an
    /// annotation.
    Status(status::Status),
    /// The subject creates objects for the churned ones: those in `subject: {children: …}` prove its observations.
    Children(children::Children),
    /// The subject adds its own finalizer to each object, and removes it again.
    Finalizer(finalizer::Finalizer),
    /// The subject's metrics page has a series for each object.
    Metrics(metrics::Metrics),
    /// The subject watches nothing and need not observe anything. This is the witness of every subject of
    /// `role: webhook`.
    None(Nothing),
}

impl Witness {
    /// The path of the generation that the subject repeats in each object, if it does.
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

/// The most observations that wait for the run. A full queue delays the subject's POST and drops nothing.
const QUEUE_MAX: usize = 16_384;
/// The most characters shown of an unreadable line: enough to recognize it, on one line of a report.
const SHOWN_CHARS: usize = 200;

/// The outputs of a witness.
pub struct Reported {
    /// Its reports, in the order in which they came.
    pub statements: mpsc::Receiver<Statement>,
    /// Counts of readable and unreadable input.
    pub tally: Arc<Tally>,
}

/// The sending side, shared by all listeners of a witness.
#[derive(Clone)]
pub struct Reporter {
    sender: mpsc::Sender<Statement>,
    tally: Arc<Tally>,
    clock: Clock,
}

/// Counts of a witness's input so far.
#[derive(Default)]
pub struct Tally {
    lines: AtomicU64,
    malformed: AtomicU64,
    example: Mutex<Option<String>>,
}

/// Makes the two sides of a witness's channel.
pub fn channel(clock: Clock) -> (Reporter, Reported) {
    let (sender, statements) = mpsc::channel(QUEUE_MAX);
    let tally = Arc::new(Tally::default());
    (Reporter { sender, tally: Arc::clone(&tally), clock }, Reported { statements, tally })
}

impl Reporter {
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

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

    /// Passes a line of the subject's output, the n-th of its pipe, to its reader.
    pub async fn line(&self, lines: &dyn Lines, number: u64, line: &str) {
        match lines.read(line, self.now_ms()) {
            Some(Ok(statement)) => self.report(statement).await,
            Some(Err(why)) => self.malformed(line, &format!("line {number} of its output, {why}")),
            None => {}
        }
    }

    /// Counts an unreadable line and keeps the first example.
    pub fn malformed(&self, line: &str, why: &str) {
        let mut example = self.tally.example.lock();
        if example.is_none() {
            let begins: String = line.chars().take(SHOWN_CHARS).collect();
            *example = Some(format!("{why}: {}", shown::text(&begins)));
        }
        // A reader that sees the count must find the example.
        self.tally.malformed.fetch_add(1, Ordering::Release);
    }
}

impl Tally {
    /// Number of lines with observations.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Number of unreadable lines.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Acquire)
    }

    /// The first unreadable line, with the reason.
    pub fn example(&self) -> Option<String> {
        self.example.lock().clone()
    }
}

/// Parses a change in the spelling of clients: `ADDED`, `added`, `create`, `Deleted` …
pub fn change(word: &str) -> Option<Change> {
    match word.to_ascii_lowercase().as_str() {
        "add" | "added" | "create" | "created" | "apply" | "applied" => Some(Change::Added),
        "modify" | "modified" | "update" | "updated" | "change" | "changed" => Some(Change::Modified),
        "delete" | "deleted" | "remove" | "removed" => Some(Change::Deleted),
        _ => None,
    }
}

/// A scene without a control plane and without pages.
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

    /// The name of a kind in its own file is equal to serde's name in the list.
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

    /// The abilities of each kind are those in the table of docs/witnesses.md.
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
