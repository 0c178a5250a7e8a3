//! The harness's own view of a control plane whose inside is not accessible: a list, then a watch, of one resource.
//!
//! Owns the feed of commits in the order in which the control plane made them, and the proof that the feed is complete:
//! [`Audit::finish`] compares it with a last list, and [`Agreement`] compares it with the answers to churn's writes. If
//! they disagree, the run is invalid: the harness does not blame the subject for its own gaps. It knows no ledger and
//! judges nothing.
//!
//! A stream that ends is resumed at the last version. If the server has forgotten that version (410), the audit lists
//! again, and the report names the [`Hole`]: the versions written in that time are unknown.

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

/// Commits in the queue: more than the largest population, so that the first list fits; at most about 80 MiB.
const QUEUE_COMMITS: usize = 1 << 18;
/// The longest silence: kube-apiserver sends a bookmark about once a minute.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);
/// The length of a stream: client-go asks for 5 to 10 minutes.
const STREAM_S: u64 = 300;
/// The longest outage: a control plane that is away for longer is not being tested any more.
const OUTAGE_LIMIT: Duration = Duration::from_mins(2);
/// The time for retries at the start: a control plane that just started may answer 429 or 503 for a moment, or not know
/// a new resource yet.
const START_LIMIT: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(200);
/// The time for the watch to catch up: it is hardly ever a second behind, and an event that has not come after this
/// will not come.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(15);
const CATCH_UP_LOOK: Duration = Duration::from_millis(50);

/// The audited resource, and the limits of the audit.
#[derive(Debug, Clone)]
pub struct Config {
    /// The control plane, as for churn. Its user must be allowed to list and watch the resource in all namespaces.
    pub api: Api,
    /// The resource, written as for churn: `packages.longhaul.dev/v1alpha1`, `v1/configmaps`. Any resource is possible.
    pub resource: String,
    /// The fields in which an object's controller reports its progress.
    pub looks: Option<Looks>,
    /// JSON pointer of the pod spec whose images are reported with each commit, such as `/spec/template/spec`.
    pub pod_spec: Option<String>,
    /// Paths, as for [`facts::seek`], of further fields that are reported; the empty path is the whole object.
    pub fields: Vec<String>,
    /// Whether the feed begins with the next change and leaves out existing objects. Then there is no list to compare
    /// with, and no [`Audit::finish`].
    pub from_now: bool,
    /// Whether the reader gets each [`Hole`] as an [`Error::Hole`] and reads on. The report has the holes in any case.
    pub tells_holes: bool,
    /// Commits that wait for their reader; further ones are lost and reported as [`Error::Overrun`].
    pub queue_commits: usize,
    /// The time after which a silent stream is dropped and resumed.
    pub silence_limit: Duration,
    /// The requested length of a stream, in seconds.
    pub stream_s: u64,
    /// The time without an opened or valid watch after which the audit has failed.
    pub outage_limit: Duration,
    /// The time that [`Audit::finish`] waits for the watch to show all objects of the last list.
    pub catch_up_limit: Duration,
}

/// One version that the control plane committed, with the audit's own knowledge of it. Its order rises by one with
/// each. For a deletion that only a list showed, its revision is that of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the audit received it; the commit itself was a moment before.
    pub at: Instant,
    pub commit: Commit,
    /// The generation, and the fields of [`Config::looks`].
    pub progress: Progress,
    /// The images of the pod spec, if [`Config::pod_spec`] requests them.
    pub images: Vec<String>,
    /// The values at [`Config::fields`], null if a field is absent. Empty for a deletion that only a list showed.
    pub fields: Vec<Value>,
    pub source: Source,
}

/// How the audit learned of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The object existed when the audit began.
    Listed,
    /// A list after a hole showed it. Versions before it may never have been seen, and its time is that of the list.
    Relisted,
    /// The watch showed it.
    Watched,
}

/// A time for which the audit knows only the outcome, not the versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The last sign of the control plane before it.
    pub from: Instant,
    /// When the list after it was complete.
    pub until: Instant,
    /// The last version before it.
    pub after: String,
    /// The version of the list after it.
    pub relisted: String,
    /// Objects that were new, changed or deleted by the list.
    pub changes: u64,
    /// The server's message.
    pub reason: String,
}

/// The result of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Commits in the feed, including the first list.
    pub commits: u64,
    /// Objects in the last list.
    pub objects: u64,
    /// The version of the last list.
    pub resource_version: String,
    /// How often a stream ended and was opened again.
    pub resumes: u64,
    pub bookmarks: u64,
    /// Events without news; a server may send them.
    pub repeated: u64,
    /// The first hundred holes, in order.
    pub holes: Vec<Hole>,
    pub holes_total: u64,
    /// The first hundred disagreements: of the watch with itself, then of the watch with the last list.
    pub disagreements: Vec<Disagreement>,
    pub disagreements_total: u64,
}

/// Why there is no audit, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Address, certificates, token, resource or pointer.
    #[error("start the audit: {problem}")]
    Config {
        /// The fault, and what to write instead.
        problem: String,
    },
    /// The control plane did not give the list.
    #[error("list {resource} for the audit: {problem}")]
    List { resource: String, problem: String },
    /// The operating system refused a thread or a runtime.
    #[error("start the audit's thread: {source}")]
    Thread {
        #[from]
        source: std::io::Error,
    },
    /// The reader was too slow: this many commits were dropped before it read them. Reading goes on after them.
    #[error("read the audit in time: {lost} commits were dropped unread")]
    Overrun { lost: u64 },
    /// There is a hole before the next commit. Reading goes on after it.
    #[error("read the audit without a gap: {hole}")]
    Hole { hole: Box<Hole> },
    /// The control plane was out of reach for too long. Commits are missing from here on.
    #[error("the audit lost the control plane: {problem}")]
    Lost { problem: String },
    /// Too many changes happened while the last list was compared.
    #[error("compare the audit with a last list: {changes} changes came meanwhile; stop the churn first")]
    Busy { changes: usize },
    /// The audit was finished, and all its commits were read.
    #[error("read the audit: it was finished")]
    Finished,
}

/// An audit in progress. Dropping it ends it.
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
    /// An audit of a resource, without a pointer, with the limits for a real control plane.
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

    /// The name of the resource in commits: `packages.longhaul.dev`.
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
    /// Lists the resource, then watches it on a thread of its own, so that a busy runtime cannot make commits late.
    /// Existing objects come first, as [`Source::Listed`], unless [`Config::from_now`] leaves them out.
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

    /// Waits for commits and returns up to `max` of them, oldest first; never an empty batch (unless `max` is 0).
    /// Cancel-safe.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.next(max).await
    }

    /// The commits that have arrived, up to `max`, oldest first.
    pub fn try_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.take(max)
    }

    /// Objects that exist now, as the watch shows them.
    pub fn objects(&self) -> usize {
        self.shared.state.lock().history.len()
    }

    /// Lists once more, waits until the watch has shown all objects of the list (see [`Config::catch_up_limit`]), and
    /// ends the watch. Remaining disagreements are named in the report. Unread commits can be read afterwards.
    ///
    /// Others may go on writing meanwhile; an object agrees if the watch showed its version in the list.
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
                // No new commit, so no new comparison.
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

/// The first list, with retries for a moment, because a control plane that just started may refuse it.
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
