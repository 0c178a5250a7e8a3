//! The harness's own view of a control plane that has no inside view: a list, then a watch, of one resource.
//!
//! Owns the feed of commits in the order in which the control plane made them, and the proof that the feed is complete:
//! [`Audit::finish`] compares it with a last list, and [`Agreement`] with what churn's writes were answered. When they
//! disagree the run is invalid: the harness does not blame the subject for its own gaps. It knows no ledger and judges
//! nothing.
//!
//! A stream that ends is resumed at the last version. When the server has forgotten that version (410), the audit lists
//! again, and the report names the [`Hole`]: which versions were written in it nobody knows.

mod agree;
mod event;
mod feed;
mod history;
mod lines;
mod link;
mod queue;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::churn::{Api, SPELLINGS};
use facts::{Commit, Looks, Progress};
use feed::{Feed, Shared, State};
use link::{Failed, Link};
use queue::Queue;

pub use agree::{Agreement, GRACE, Outcome, agree};
pub use history::{Disagreement, Problem};

/// More than the largest population, so that the first list fits; at most about 80 MiB.
const QUEUE_COMMITS: usize = 1 << 18;
/// kube-apiserver sends a bookmark about once a minute.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);
/// client-go asks for 5 to 10 minutes.
const STREAM_S: u64 = 300;
/// A control plane that is away for longer than that is not being tested any more.
const OUTAGE_LIMIT: Duration = Duration::from_mins(2);
/// A control plane that just started may answer 429 or 503 for a moment, or not know a new resource yet.
const START_LIMIT: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(200);
/// A watch is hardly ever a second behind; what has not come after this will not come.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(15);
const CATCH_UP_LOOK: Duration = Duration::from_millis(50);

/// What is audited, and how patiently.
#[derive(Debug, Clone)]
pub struct Config {
    /// The control plane, as for churn. Its user must be allowed to list and watch the resource in all namespaces.
    pub api: Api,
    /// The resource, written as for churn: `packages.longhaul.dev/v1alpha1`, `v1/configmaps`. Any resource will do.
    pub resource: String,
    /// Where in each object its controller tells how far it has come.
    pub looks: Option<Looks>,
    /// JSON pointer of the pod spec whose images are told with each commit, such as `/spec/template/spec`.
    pub pod_spec: Option<String>,
    /// Paths, as for [`facts::seek`], of what is told of each object besides; the empty one is all of it.
    pub fields: Vec<String>,
    /// Nothing of what is there already: the feed begins with the next change. Then there is nothing to confirm, and no
    /// [`Audit::finish`].
    pub from_now: bool,
    /// Whether the reader gets each [`Hole`] as an [`Error::Hole`] and reads on. The report has them in any case.
    pub tells_holes: bool,
    /// Commits that wait for their reader; what is over it is lost and reported as [`Error::Overrun`].
    pub queue_commits: usize,
    /// A stream that brings nothing for so long is dropped and resumed.
    pub silence_limit: Duration,
    /// How long the server is asked to keep a stream, in seconds.
    pub stream_s: u64,
    /// When no watch could be opened, or none made sense, for so long, the audit has failed.
    pub outage_limit: Duration,
    /// How long [`Audit::finish`] waits for the watch to show what the last list has.
    pub catch_up_limit: Duration,
}

/// One version that the control plane committed, with what only the audit knows of it. Its order rises by one with each. For a
/// deletion that only a list showed, its revision is that of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the audit received it; the commit itself was a moment before.
    pub at: Instant,
    /// What was committed.
    pub commit: Commit,
    /// The generation, and what [`Config::looks`] asks for.
    pub progress: Progress,
    /// The images of the pod spec, where [`Config::pod_spec`] asks for them.
    pub images: Vec<String>,
    /// What stands at [`Config::fields`], null where there is nothing. Of a deletion that only a list showed none is known.
    pub fields: Vec<Value>,
    /// How the audit knows.
    pub source: Source,
}

/// How the audit learned of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was there when the audit began.
    Listed,
    /// A list after a hole showed it. Versions before it may never have been seen, and its time is that of the list.
    Relisted,
    /// The watch showed it.
    Watched,
}

/// A stretch of time of which the audit knows the outcome only, not the versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// When the control plane was last heard before it.
    pub from: Instant,
    /// When the list after it was complete.
    pub until: Instant,
    /// The last version before it.
    pub after: String,
    /// The version of the list after it.
    pub relisted: String,
    /// Objects that the list showed to be new, changed or gone.
    pub changes: u64,
    /// What the server said.
    pub reason: String,
}

/// What the audit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Commits in the feed, the first list included.
    pub commits: u64,
    /// Objects in the last list.
    pub objects: u64,
    /// The version of the last list.
    pub resource_version: String,
    /// How often a stream ended and was opened again.
    pub resumes: u64,
    /// Bookmarks that came.
    pub bookmarks: u64,
    /// Events that showed what was known already; a server may do that.
    pub repeated: u64,
    /// The first hundred holes, in order.
    pub holes: Vec<Hole>,
    /// All holes.
    pub holes_total: u64,
    /// The first hundred disagreements: of the watch with itself, then of the watch with the last list.
    pub disagreements: Vec<Disagreement>,
    /// All disagreements.
    pub disagreements_total: u64,
}

/// Why there is no audit, or no more of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Address, certificates, token, resource or pointer.
    #[error("start the audit: {problem}")]
    Config {
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// The control plane did not give the list.
    #[error("list {resource} for the audit: {problem}")]
    List {
        /// The resource, as it was written.
        resource: String,
        /// What the control plane said.
        problem: String,
    },
    /// The operating system refused a thread or a runtime.
    #[error("start the audit's thread: {source}")]
    Thread {
        /// What it said.
        #[from]
        source: std::io::Error,
    },
    /// The reader was too slow: so many commits were dropped before it read them. Reading goes on after them.
    #[error("read the audit in time: {lost} commits were dropped unread")]
    Overrun {
        /// How many.
        lost: u64,
    },
    /// There is a hole before what comes next. Reading goes on after it.
    #[error("read the audit without a gap: {hole}")]
    Hole {
        /// What is known of it.
        hole: Box<Hole>,
    },
    /// The control plane was out of reach for too long. Commits are missing from here on.
    #[error("the audit lost the control plane: {problem}")]
    Lost {
        /// What went wrong last.
        problem: String,
    },
    /// Everything was changing while the last list was compared.
    #[error("compare the audit with a last list: {changes} changes came meanwhile; stop the churn first")]
    Busy {
        /// How many.
        changes: usize,
    },
    /// The audit was finished, and everything in it was read.
    #[error("read the audit: it was finished")]
    Finished,
}

/// An audit under way. Dropping it ends it.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    link: Link,
    resource: String,
    catch_up_limit: Duration,
    thread: Option<std::thread::JoinHandle<()>>,
    /// Dropped to end the thread at once.
    alive: Option<oneshot::Sender<()>>,
}

impl Config {
    /// An audit of a resource, without a pointer, as patient as a real control plane needs.
    pub fn new(api: Api, resource: &str) -> Self {
        Self {
            api,
            resource: resource.to_owned(),
            looks: None,
            pod_spec: None,
            fields: Vec::new(),
            from_now: false,
            tells_holes: false,
            queue_commits: QUEUE_COMMITS,
            silence_limit: SILENCE_LIMIT,
            stream_s: STREAM_S,
            outage_limit: OUTAGE_LIMIT,
            catch_up_limit: CATCH_UP_LIMIT,
        }
    }

    fn no_resource(&self) -> Error {
        Error::Config { problem: format!("`{}` is no resource: write it like one of {SPELLINGS}", self.resource) }
    }

    /// What commits say: `packages.longhaul.dev`.
    fn name(&self) -> Result<Arc<str>, Error> {
        let (name, _) = crate::churn::names(&self.resource).ok_or_else(|| self.no_resource())?;
        Ok(name.into())
    }

    fn link(&self) -> Result<Link, Error> {
        let path = crate::churn::resource::collection_path(&self.resource).ok_or_else(|| self.no_resource())?;
        let looked = self.looks.iter().map(|looks| looks.observed.as_str());
        let mut paths = looked.chain(self.fields.iter().map(String::as_str));
        if let Some(pointer) = paths.find(|path| !path.is_empty() && !path.starts_with('/')) {
            let problem = format!("`{pointer}` is no JSON pointer: write for example `/status/observedGeneration`");
            return Err(Error::Config { problem });
        }
        let (looks, pod_spec, fields) = (self.looks.clone(), self.pod_spec.clone(), self.fields.clone());
        let wanted = event::Wanted { looks, pod_spec, fields };
        Link::new(&self.api, &path, wanted)
    }
}

impl Audit {
    /// Lists the resource, then watches it on a thread of its own, so that a busy runtime cannot make commits late. What
    /// is there already comes first, as [`Source::Listed`], unless [`Config::from_now`] leaves it out.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let link = config.link()?;
        let (resource, catch_up_limit) = (config.resource.clone(), config.catch_up_limit);
        let list = first_list(&link, config.from_now).await.map_err(|failed| list_failed(&resource, &failed))?;
        let resource_version = list.resource_version.clone();
        let (queue, state) = (Queue::new(config.queue_commits), Mutex::new(State::default()));
        let shared = Arc::new(Shared { resource: config.name()?, queue, state });
        shared.relist(Instant::now(), Source::Listed, list);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let feed = Feed::new(link.clone(), config, Arc::clone(&shared), resource_version);
        let (alive, dropped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = feed.run() => {}
                    _ = dropped => {}
                }
            });
        })?;
        Ok(Self { shared, link, resource, catch_up_limit, thread: Some(thread), alive: Some(alive) })
    }

    /// Waits for commits and answers up to `max` of them, oldest first; never an empty batch (unless `max` is 0).
    /// Cancel-safe.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.next(max).await
    }

    /// The commits that are there already, up to `max`, oldest first.
    pub fn try_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.take(max)
    }

    /// Objects that exist now, as the watch shows them.
    pub fn objects(&self) -> usize {
        self.shared.state.lock().history.len()
    }

    /// Lists once more, waits until the watch has shown what the list has (see [`Config::catch_up_limit`]), and ends the watch. What still
    /// disagrees then is named in the report. Commits that nobody has read can be read afterwards.
    ///
    /// Others may go on writing meanwhile; an object agrees when the watch showed the version that the list has.
    pub async fn finish(&mut self) -> Result<Report, Error> {
        if let Some(failure) = self.shared.queue.failure() {
            return Err(failure);
        }
        self.shared.state.lock().history.mark();
        let list = self.link.list().await.map_err(|failed| list_failed(&self.resource, &failed))?;
        let limit = Instant::now() + self.catch_up_limit;
        let mut seen = None;
        let mut disagreements = Vec::new();
        loop {
            {
                let state = self.shared.state.lock();
                // Nothing new, nothing to compare again.
                if seen != Some(state.order) {
                    seen = Some(state.order);
                    let compared = state.history.compare(&list.objects);
                    disagreements = compared.map_err(|changes| Error::Busy { changes })?;
                }
            }
            if disagreements.is_empty() || Instant::now() >= limit {
                break;
            }
            if let Some(failure) = self.shared.queue.failure() {
                return Err(failure);
            }
            tokio::time::sleep(CATCH_UP_LOOK).await;
        }
        self.end();
        self.shared.queue.finish();
        Ok(self.report(&list, disagreements))
    }

    fn report(&self, list: &link::List, mut found: Vec<Disagreement>) -> Report {
        let mut state = self.shared.state.lock();
        let disagreements_total = state.history.out_of_turn_total + found.len() as u64;
        let mut disagreements = std::mem::take(&mut state.history.out_of_turn);
        disagreements.append(&mut found);
        disagreements.truncate(history::NAMED_MAX);
        Report {
            commits: state.order.number(),
            objects: list.objects.len() as u64,
            resource_version: list.resource_version.clone(),
            resumes: state.resumes,
            bookmarks: state.bookmarks,
            repeated: state.history.repeated,
            holes: state.holes.clone(),
            holes_total: state.holes_total,
            disagreements,
            disagreements_total,
        }
    }

    fn end(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.end();
    }
}

impl Report {
    /// Whether the watch and the lists agree on every object, and no version can be missing.
    pub fn is_complete(&self) -> bool {
        self.disagreements_total == 0 && self.holes_total == 0
    }
}

impl fmt::Display for Report {
    /// One line, then one for each of the first few holes and disagreements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        write!(
            f,
            "{} commits, {} objects at version {} in the last list, {} disagreements, {} gaps",
            self.commits, self.objects, self.resource_version, self.disagreements_total, self.holes_total
        )?;
        self.disagreements.iter().take(SHOWN).try_for_each(|each| write!(f, "\n  {each}"))?;
        self.holes.iter().take(SHOWN).try_for_each(|each| write!(f, "\n  {each}"))
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, relisted, changes, reason, .. } = self;
        let length_ms = self.until.saturating_duration_since(self.from).as_millis();
        write!(
            f,
            "no versions are known between {after} and {relisted} ({length_ms} ms, {changes} objects changed): {reason}"
        )
    }
}

/// The first list, tried again for a moment where a control plane that just started may refuse it.
async fn first_list(link: &Link, from_now: bool) -> Result<link::List, Failed> {
    let limit = Instant::now() + START_LIMIT;
    loop {
        let list = if from_now { link.newest().await } else { link.list().await };
        match list {
            Err(Failed::Status { status, .. })
                if (matches!(status.as_u16(), 404 | 429) || status.is_server_error()) && Instant::now() < limit => {}
            outcome => return outcome,
        }
        tokio::time::sleep(START_PAUSE).await;
    }
}

fn list_failed(resource: &str, failed: &Failed) -> Error {
    Error::List { resource: resource.to_owned(), problem: failed.to_string() }
}
