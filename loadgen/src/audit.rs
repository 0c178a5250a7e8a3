//! The harness's own list and watch of one resource, for a control plane whose internal state it cannot read.
//!
//! Owns the feed of commits in the order of the control plane, and the check that the feed is complete.
//! [`Audit::finish`] compares the feed with a list at the end, and [`Agreement`] compares it with the answers to
//! churn's writes. If a list or an answer disagrees with the feed, the run is invalid, because the harness does not
//! blame the subject for its own gaps. The audit knows no ledger and judges nothing.
//!
//! A stream that ends is resumed at the last version. If the server has forgotten that version (410), the audit lists
//! again, and the report contains a [`Hole`]: a time whose versions are not all known.

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

/// Maximum number of commits in the queue, about 80 MiB. The number is above the largest population of objects, so that
/// the first list fits.
const QUEUE_COMMITS: usize = 1 << 18;
/// How long a stream may be silent: kube-apiserver sends a bookmark about once a minute.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);
/// The requested length of a watch in seconds: client-go asks for 5 to 10 minutes.
const STREAM_S: u64 = 300;
/// How long the control plane may be away. After a longer outage the run does not test the control plane any more.
const OUTAGE_LIMIT: Duration = Duration::from_mins(2);
/// How long the start is retried: a control plane that just started may answer 429 or 503 for a moment, or not know a
/// new resource yet.
const START_LIMIT: Duration = Duration::from_secs(10);
const START_PAUSE: Duration = Duration::from_millis(200);
/// How long [`Audit::finish`] waits for events. A watch is rarely a second late, and an event that is missing after 15
/// s will not come.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(15);
const CATCH_UP_LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Config {
    /// The control plane, configured as for churn. The user must be allowed to list and watch the resource in all
    /// namespaces.
    pub api: Api,
    /// The resource, written as for churn: `packages.longhaul.dev/v1alpha1`, `v1/configmaps`. Every resource of the
    /// control plane is possible.
    pub resource: String,
    /// The fields in which the object's controller reports progress.
    pub looks: Option<Looks>,
    /// The JSON pointer to the pod spec whose images are reported with each commit, such as `/spec/template/spec`.
    pub pod_spec: Option<String>,
    /// Paths of further reported fields, in the form of [`facts::seek`]; the empty path is the whole object.
    pub fields: Vec<String>,
    /// Whether the feed starts with the next change and leaves existing objects out. Without a first list,
    /// [`Audit::finish`] cannot compare and must not be called.
    pub from_now: bool,
    /// Whether the reader gets each [`Hole`] as an [`Error::Hole`], and can read on. The report contains all gaps in
    /// any case.
    pub tells_holes: bool,
    /// Maximum number of commits that wait for the reader. Commits beyond this number are lost, and the reader gets
    /// [`Error::Overrun`].
    pub queue_commits: usize,
    /// The time after which a silent watch is dropped and resumed.
    pub silence_limit: Duration,
    /// The requested length of a watch, in seconds.
    pub stream_s: u64,
    /// The time without an open and valid watch after which the audit fails.
    pub outage_limit: Duration,
    /// The time that [`Audit::finish`] waits for the watch to show all objects of the last list.
    pub catch_up_limit: Duration,
}

/// A version that the control plane committed, as the audit saw it. The order number rises by one with each entry. If
/// the audit saw a deletion only in a list, the deletion has the revision of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time at which the audit received the commit, a moment after the commit itself.
    pub at: Instant,
    pub commit: Commit,
    /// The object's generation, and the progress in the fields of [`Config::looks`].
    pub progress: Progress,
    /// The images of the pod spec, if [`Config::pod_spec`] requests them.
    pub images: Vec<String>,
    /// The values at [`Config::fields`]; null if a field is absent. Empty for a deletion that the audit saw only in a
    /// list.
    pub fields: Vec<Value>,
    pub source: Source,
}

/// How the audit saw a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The object existed when the audit began.
    Listed,
    /// A list after a gap showed the commit. A commit after a gap has the time of the list, and earlier versions may be
    /// unknown.
    Relisted,
    /// The watch showed the commit.
    Watched,
}

/// A gap: a time for which the audit does not know all versions, but only the objects at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The time of the last answer or event of the control plane before the gap.
    pub from: Instant,
    /// The time at which the list after the gap was complete.
    pub until: Instant,
    /// The last version before the gap.
    pub after: String,
    /// The version of the list after the gap.
    pub relisted: String,
    /// Number of objects that were created, changed or deleted during the gap, as the list shows.
    pub changes: u64,
    /// The server's message about the forgotten version.
    pub reason: String,
}

/// The result of a finished audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Number of commits in the feed, including the first list.
    pub commits: u64,
    /// Number of objects in the list at the end.
    pub objects: u64,
    /// The version of the list at the end.
    pub resource_version: String,
    /// How often a watch ended and was opened again.
    pub resumes: u64,
    pub bookmarks: u64,
    /// Number of events without a change; a server may send such events.
    pub repeated: u64,
    /// The first hundred gaps, in order.
    pub holes: Vec<Hole>,
    pub holes_total: u64,
    /// The first hundred disagreements: contradictions in the watch, then differences between the watch and the list at
    /// the end.
    pub disagreements: Vec<Disagreement>,
    pub disagreements_total: u64,
}

/// Why an audit could not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Address, certificates, token, resource or pointer cannot be used.
    #[error("start the audit: {problem}")]
    Config {
        /// The problem, and advice for the user.
        problem: String,
    },
    /// The control plane did not answer the list.
    #[error("list {resource} for the audit: {problem}")]
    List { resource: String, problem: String },
    /// The operating system could not start a thread or a runtime.
    #[error("start the audit's thread: {source}")]
    Thread {
        #[from]
        source: std::io::Error,
    },
    /// The reader was too slow: `lost` commits were dropped. The reader can continue after the lost commits.
    #[error("read the audit in time: {lost} commits were dropped unread")]
    Overrun { lost: u64 },
    /// A gap precedes the next commit. The reader can continue after the gap.
    #[error("read the audit without a gap: {hole}")]
    Hole { hole: Box<Hole> },
    /// The control plane could not be reached for too long. All commits after that are missing.
    #[error("the audit lost the control plane: {problem}")]
    Lost { problem: String },
    /// Too many changes came while the list at the end was compared.
    #[error("compare the audit with a last list: {changes} changes came meanwhile; stop the churn first")]
    Busy { changes: usize },
    /// The audit was finished, and all its commits were read.
    #[error("read the audit: it was finished")]
    Finished,
}

/// A running audit; dropping the value ends it.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    link: Link,
    resource: String,
    catch_up_limit: Duration,
    thread: Option<std::thread::JoinHandle<()>>,
    /// The audit's thread ends at once when this sender is dropped.
    alive: Option<oneshot::Sender<()>>,
}

impl Config {
    /// The default settings for a resource: no JSON pointers, and the limits for a real control plane.
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
    /// Lists the resource, then watches it on a separate thread, so that a busy runtime cannot delay commits. Existing
    /// objects come first, as [`Source::Listed`], unless [`Config::from_now`] leaves them out.
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

    /// Waits for commits and returns up to `max` of them, oldest first. The batch is never empty, unless `max` is 0.
    /// Cancel-safe.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.next(max).await
    }

    /// The commits that have already arrived, up to `max`, oldest first.
    pub fn try_batch(&self, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.queue.take(max)
    }

    /// Number of objects that exist now, as the watch shows them.
    pub fn objects(&self) -> usize {
        self.shared.state.lock().history.len()
    }

    /// Lists once more, waits until the watch has shown all objects of the list (see [`Config::catch_up_limit`]), and
    /// ends the watch. The report contains the disagreements that remain after that. Commits can still be read after
    /// that.
    ///
    /// Other clients may write during this call. An object agrees if the watch showed the version that the list
    /// contains.
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
    /// Writes one line, then a line for each of the first gaps and disagreements.
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

/// The first list of the audit. The first list is retried for a moment, because a control plane that just started may
/// refuse it.
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
