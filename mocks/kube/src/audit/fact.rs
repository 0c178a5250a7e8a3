//! The complete record of the requests of followed users.
//!
//! Owns the bounded log of finished requests. The harness takes the requests out of the log. If the harness is too
//! slow, requests are lost, and the harness gets the number of lost requests. The log contains only requests of users
//! that a harness follows.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{RequestRecord, UserAudit, cut};
use crate::path::{Query, Target, verb_of};

/// Maximum number of requests in the log that wait for the reader: at most 16 MiB. The reader polls many times a
/// second.
const FACTS_MAX: usize = 16_384;
/// Maximum number of resources that are remembered for a user: a cluster has fewer kinds.
const RESOURCES_MAX: usize = 256;
/// Longest name of an object, in bytes.
const NAME_MAX: usize = 253;
/// Longest reason of a refusal that is kept, in bytes: enough for the first errors of an invalid object.
const MESSAGE_MAX: usize = 400;
/// Longest continue token that is kept, in bytes.
const CONTINUE_MAX: usize = 80;

/// How a request ended, and which side ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The server ended the request with a complete answer or the clean end of a stream.
    Server,
    /// The server ended the request with a reset.
    Reset,
    /// The client left, or the connection was lost.
    Client,
}

/// One request of a followed user. A watch is reported twice, when it is answered and when it ends; other requests are
/// reported once.
#[derive(Debug, Clone)]
pub struct RequestFact {
    /// A number that rises in the order in which requests arrive.
    pub number: u64,
    /// The request with the status of its answer; 0 if the server sent no answer.
    pub record: RequestRecord,
    pub about: About,
    /// The time of the request's end in microseconds since the epoch, and whether client or server ended it; `None` for
    /// an open watch.
    pub ended: Option<(u64, EndedBy)>,
    /// The times in microseconds since the epoch at which the first and the last object version were sent on a watch.
    pub objects_us: Option<(u64, u64)>,
    /// Texts of the request and its answer that `record` lacks; `None` if there are none.
    pub said: Option<Arc<Said>>,
}

/// Texts of a request and its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The name of the object that the request creates, if only the request body contains it; at most 253 bytes.
    pub name: String,
    /// Why the request was refused, at most 400 bytes; empty if the request was accepted.
    pub message: String,
}

/// The number and revisions of the objects in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About {
    /// Number of items in a list, or of object versions that were sent on a watch.
    pub objects: u64,
    /// The revision of the list or object in the answer; for a watch, the newest revision that was sent.
    pub revision: Option<u64>,
    /// The newest revision that a bookmark on the watch contained.
    pub bookmark: Option<u64>,
    pub error_code: Option<u16>,
    /// The number of an accepted watch, as in [`super::Sending`].
    pub watch: Option<u64>,
    /// Whether a list or watch returns only the metadata of objects.
    pub metadata_only: bool,
}

/// The parameters in the path and query of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestParameters {
    /// `list`, `watch`, `get`, `create`, `update`, `patch`, `delete` or `deletecollection`; empty if the path is not a
    /// resource.
    pub verb: &'static str,
    /// The resource as `plural.group`; only the plural in the core group.
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub revision: Option<String>,
    pub revision_match: Option<String>,
    pub limit: Option<u64>,
    /// The parameter `continue`, at most 80 bytes.
    pub continues: Option<String>,
    pub labels: Option<String>,
    pub fields: Option<String>,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_s: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    on: AtomicBool,
    numbers: AtomicU64,
    inner: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    facts: VecDeque<RequestFact>,
    lost: u64,
    /// All resources that the user ever requested, even if no answer was sent; at most [`RESOURCES_MAX`].
    resources: BTreeSet<String>,
}

/// A request in progress. When this value is dropped, the request goes into the log, however it ended.
#[derive(Debug)]
pub(crate) struct Following {
    audit: Arc<UserAudit>,
    fact: RequestFact,
    ended_by: Option<EndedBy>,
}

/// Counts a connection as open for its user while this value exists.
#[derive(Debug)]
pub(crate) struct OwnConnection(Arc<UserAudit>);

impl RequestFact {
    pub fn parameters(&self) -> RequestParameters {
        let record = &self.record;
        let Some(target) = Target::parse(&record.path) else { return RequestParameters::default() };
        let query = Query::parse(&record.query).unwrap_or_default();
        let named = target.name.is_some();
        let resource = match target.group.as_str() {
            "" => target.plural,
            group => format!("{}.{group}", target.plural),
        };
        RequestParameters {
            verb: verb_of(&record.method, query.watch, named).unwrap_or_default(),
            resource,
            namespace: target.namespace,
            name: target.name,
            revision: query.resource_version,
            revision_match: query.resource_version_match,
            limit: query.limit,
            continues: query.continue_token.map(|token| cut(&token, CONTINUE_MAX).to_owned()),
            labels: query.label_selector,
            fields: query.field_selector,
            bookmarks: query.allow_watch_bookmarks,
            send_initial_events: query.send_initial_events,
            timeout_s: query.timeout_s,
        }
    }
}

impl Said {
    pub(crate) fn refused(name: &str, message: &str) -> Arc<Self> {
        Arc::new(Self { name: cut(name, NAME_MAX).to_owned(), message: cut(message.trim(), MESSAGE_MAX).to_owned() })
    }

    /// The texts of a request that created an object.
    pub(crate) fn made(name: &str) -> Arc<Self> {
        Self::refused(name, "")
    }
}

impl RequestLog {
    pub fn follow(&self) {
        self.on.store(true, Ordering::Release);
    }

    pub fn follows(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    fn push(&self, fact: RequestFact) {
        let mut inner = self.inner.lock();
        if inner.facts.len() == FACTS_MAX {
            inner.facts.pop_front();
            inner.lost += 1;
        }
        inner.facts.push_back(fact);
    }

    fn begun(&self, resource: String) {
        let mut inner = self.inner.lock();
        if inner.resources.len() < RESOURCES_MAX {
            inner.resources.insert(resource);
        }
    }

    /// Whether the user ever requested a resource, even if no answer was sent.
    pub fn asked_for(&self, resource: &str) -> bool {
        self.inner.lock().resources.contains(resource)
    }

    /// The requests in the log since the last call, and the number of lost requests.
    pub fn take(&self) -> (Vec<RequestFact>, u64) {
        let mut inner = self.inner.lock();
        (inner.facts.drain(..).collect(), std::mem::take(&mut inner.lost))
    }
}

impl Following {
    /// Begins to record a request if its user is followed; returns `None` for other users.
    pub fn begin(audit: &Arc<UserAudit>, record: &RequestRecord) -> Option<Box<Self>> {
        let log = &audit.log;
        if !log.follows() {
            return None;
        }
        let number = log.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let about = About::default();
        let fact = RequestFact { number, record: record.clone(), about, ended: None, objects_us: None, said: None };
        if let Some(resource) = Some(fact.parameters().resource).filter(|resource| !resource.is_empty()) {
            log.begun(resource);
        }
        Some(Box::new(Self { audit: audit.clone(), fact, ended_by: None }))
    }

    /// Records the answer to the request. All requests except watches end when their answer is passed to the
    /// connection.
    pub fn answered(&mut self, status: u16, about: About, said: Option<Arc<Said>>, streams: bool) {
        self.fact.record.status = status;
        self.fact.about = about;
        self.fact.said = said;
        if streams {
            self.audit.log.push(self.fact.clone());
        } else {
            self.ended_by = Some(EndedBy::Server);
        }
    }

    /// Records object versions that were sent on the watch.
    pub fn sent(&mut self, objects: u64, revision: u64, now_us: u64) {
        let about = &mut self.fact.about;
        about.objects += objects;
        about.revision = about.revision.max(Some(revision));
        self.fact.objects_us = Some((self.fact.objects_us.map_or(now_us, |(first_us, _)| first_us), now_us));
    }

    /// Records a bookmark that was sent on the watch.
    pub fn bookmarked(&mut self, revision: u64) {
        let about = &mut self.fact.about;
        about.bookmark = about.bookmark.max(Some(revision));
    }

    /// Records an `ERROR` event that was sent on the watch.
    pub fn failed(&mut self, code: u16) {
        self.fact.about.error_code = Some(code);
    }

    /// Records that the server, not the client, ends the stream of the watch.
    pub fn ends(&mut self, by: EndedBy) {
        self.ended_by = Some(by);
    }

    /// Records the end of the request.
    pub fn over(self: Box<Self>, now_us: u64) {
        let Self { audit, mut fact, ended_by } = *self;
        fact.ended = Some((now_us, ended_by.unwrap_or(EndedBy::Client)));
        audit.log.push(fact);
    }
}

impl OwnConnection {
    /// Records that this user sent the first request on a connection.
    pub fn first_use(audit: &Arc<UserAudit>) -> Self {
        audit.connection_opened();
        Self(audit.clone())
    }
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        self.0.connection_closed();
    }
}
