//! The witness: the channel that carries a subject's observations to the harness.
//!
//! Each kind of witness has one file with its keys, and one line in the list `witnesses!`. A witness turns its input
//! into [`facts::Observation`]s and sends them to the run through one bounded channel. Some reports contain no
//! resourceVersion, but an object's name, a generation, or only that an object exists. From a report without a
//! resourceVersion the witness makes a [`Claim`], which the run resolves with the commits so far. Unreadable reports
//! are counted and one example is kept, so that a broken witness does not look like a broken subject.

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
pub use claim::{Claim, Commits, Counts, Fact, Of, Proof, Reading, Resolved, Statement};
pub use log::Preset;
pub use none::Nothing;

/// One kind of witness. The type that implements this trait holds the keys of the witness.
trait Kind {
    /// The name of this kind of witness in a scenario file.
    const NAME: &'static str;
    /// A message for the user about the settings to check if the witness reports nothing.
    const REMEDY: &'static str;

    /// The kinds of facts that the witness can observe.
    fn sees(&self, about: &About) -> Sees;

    /// A mistake in the keys, as a message for the author of the scenario.
    fn check(&self, _: &About) -> Result<(), String> {
        Ok(())
    }

    /// The fields of each object that show which version the subject handled, if the witness reads such fields.
    fn looks(&self) -> Option<Looks> {
        None
    }

    /// The number of unreadable lines that are tolerated. If this is `None`, unreadable lines make the run invalid as
    /// soon as a version looks missed.
    fn tolerates(&self) -> Option<u64> {
        None
    }

    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open>;
}

/// Facts from other sections of a scenario that decide what a witness can observe.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The objects that the subject creates for the churned objects.
    pub family: Option<Family>,
    /// Whether the subject has a metrics page.
    pub has_metrics: bool,
    /// Whether objects are deleted and created again under the same name.
    pub reuses_names: bool,
    /// Judged resources other than the churned resource.
    pub others: Vec<String>,
}

/// The connections and facts for a witness that polls or watches by itself.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The API of the control plane, with the harness's own identity.
    pub api: Api,
    /// Facts from other sections of the scenario.
    pub about: About,
    /// The subject's metrics page.
    pub metrics_url: Option<String>,
    /// The address at which the subject can reach this machine.
    pub machine: std::net::Ipv4Addr,
}

/// A witness that receives reports. Dropping the value ends the witness.
#[derive(Default)]
pub struct Open {
    /// Environment variables that tell the subject where to send its reports.
    pub variables: Vec<(&'static str, String)>,
    /// The reader for the lines of the subject's output, if the witness reads them.
    pub lines: Option<Arc<dyn Lines>>,
    /// The reader of all commits, if the witness makes claims.
    pub commits: Option<Box<dyn Commits>>,
    /// A listener or task that ends when this value is dropped.
    _listens: Option<Box<dyn Any + Send>>,
}

pub trait Lines: Send + Sync {
    /// The observation in a line of output, or the reason why the line cannot be read. `None` for a line without an
    /// observation, which is no error.
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>>;
}

macro_rules! witnesses {
    ($($(#[$doc:meta])* $variant:ident($settings:ty)),* $(,)?) => {
        /// How the subject proves what it has observed.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        pub enum Witness {
            $($(#[$doc])* $variant($settings)),*
        }

        impl Witness {
            /// The name of this kind of witness in a scenario file.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::NAME),* }
            }

            /// A message for the user about the settings to check if the witness reports nothing.
            pub fn remedy(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$settings>::REMEDY),* }
            }

            /// The kinds of facts that the witness can observe.
            pub fn sees(&self, about: &About) -> Sees {
                match self { $(Self::$variant(settings) => settings.sees(about)),* }
            }

            /// A mistake in the keys, as a message for the author of the scenario.
            pub fn check(&self, about: &About) -> Result<(), String> {
                match self { $(Self::$variant(settings) => settings.check(about)),* }
            }

            /// The fields of each object that show which version the subject handled, if the witness reads such fields.
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
    /// A regular expression or a known library format is matched against the subject's log lines.
    Log(log::Log),
    /// The subject writes the generation or version that it saw into the object itself: into the status, a condition or
    /// an annotation.
    Status(status::Status),
    /// The subject creates child objects for the churned objects. The objects that `subject: {children: …}` defines
    /// prove the subject's observations.
    Children(children::Children),
    /// The subject adds its own finalizer to each object, and removes the finalizer again.
    Finalizer(finalizer::Finalizer),
    /// The subject's metrics page has a series for each object.
    Metrics(metrics::Metrics),
    /// The subject watches nothing and need not observe anything. Every subject with `role: webhook` has this witness.
    None(Nothing),
}

impl Witness {
    /// The path of the field in which the subject repeats an object's generation, if the witness reads such a field.
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

/// Maximum number of observations that wait until the run reads them. If this queue is full, the subject's POST waits;
/// no observation is dropped.
const QUEUE_MAX: usize = 16_384;
/// Maximum number of characters that are shown of an unreadable line: enough to recognize the line, and short enough
/// for one line of a report.
const SHOWN_CHARS: usize = 200;

/// The receiving end of a witness's channel.
pub struct Reported {
    /// The reports of the witness, in the order of their arrival.
    pub statements: mpsc::Receiver<Statement>,
    /// Counts of readable and unreadable input.
    pub tally: Arc<Tally>,
}

/// The sending end of a witness's channel, shared by all listeners of the witness.
#[derive(Clone)]
pub struct Reporter {
    sender: mpsc::Sender<Statement>,
    tally: Arc<Tally>,
    clock: Clock,
}

/// Numbers of readable and unreadable lines that a witness has read so far.
#[derive(Default)]
pub struct Tally {
    lines: AtomicU64,
    malformed: AtomicU64,
    example: Mutex<Option<String>>,
}

/// Creates both ends of a witness's channel.
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

    /// Sends a statement to the run. Waits while the witness's queue is full.
    pub async fn report(&self, statement: Statement) {
        if !matches!(statement, Statement::Deaf(_)) {
            self.tally.lines.fetch_add(1, Ordering::Relaxed);
        }
        // A closed channel means that the run is over: nothing is judged any more.
        let _ = self.sender.send(statement).await;
    }

    /// Passes a line of the subject's output to its reader. `number` is the number of the line in the subject's stdout
    /// or stderr.
    pub async fn line(&self, lines: &dyn Lines, number: u64, line: &str) {
        match lines.read(line, self.now_ms()) {
            Some(Ok(statement)) => self.report(statement).await,
            Some(Err(why)) => self.malformed(line, &format!("line {number} of its output, {why}")),
            None => {}
        }
    }

    /// Counts an unreadable line. The first unreadable line is kept as an example.
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
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Acquire)
    }

    /// The first unreadable line, with the reason.
    pub fn example(&self) -> Option<String> {
        self.example.lock().clone()
    }
}

/// Parses the kind of a change as clients write it: `ADDED`, `added`, `create`, `Deleted` …
pub fn change(word: &str) -> Option<Change> {
    match word.to_ascii_lowercase().as_str() {
        "add" | "added" | "create" | "created" | "apply" | "applied" => Some(Change::Added),
        "modify" | "modified" | "update" | "updated" | "change" | "changed" => Some(Change::Modified),
        "delete" | "deleted" | "remove" | "removed" => Some(Change::Deleted),
        _ => None,
    }
}

/// A [`Scene`] for tests, without a control plane and without a metrics page.
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

    /// The constant `NAME` of each kind of witness is equal to the name that serde uses.
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

    /// The facts that each kind of witness can observe are those in the table of docs/witnesses.md.
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

    /// A key that belongs to another kind of witness is refused.
    #[test]
    fn a_key_belongs_to_a_kind() {
        let read = |text: &str| serde_json::from_str::<Witness>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"kind": "http"}"#), Ok(Witness::default()));
        assert!(read(r#"{"kind": "http", "pattern": "a"}"#).unwrap_err().contains("unknown field `pattern`"));
        assert!(read(r#"{"kind": "log", "pointer": "/a"}"#).unwrap_err().contains("unknown field `pointer`"));
    }
}
