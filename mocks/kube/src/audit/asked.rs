//! Every request of a followed user, without loss, for a record of the subject's behaviour.
//!
//! Owns the bounded log between finished requests and their one reader. A reader that falls behind gets the number of
//! lost requests. Requests of users that are not followed are not kept.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{RequestRecord, UserAudit, cut};
use crate::path::{Query, Target, verb_of};

/// Facts that wait for their reader: 16 MiB at most. The reader polls many times a second.
const FACTS_MAX: usize = 16_384;
/// A client follows no more kinds than a cluster has.
const RESOURCES_MAX: usize = 256;
/// Longest name of an object, in bytes.
const NAME_MAX: usize = 253;
/// Longest reason of a refusal that is kept, in bytes: the first causes of an invalid object.
const MESSAGE_MAX: usize = 400;
/// Longest continue token that is kept, in bytes.
const CONTINUE_MAX: usize = 80;

/// The side that ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The server, with a complete answer or the clean end of a stream.
    Server,
    /// The server, by a reset.
    Reset,
    /// The client went away, or the connection was lost.
    Client,
}

/// One request of a followed user. A watch is reported twice, when it is answered and when it ends; other requests
/// once.
#[derive(Debug, Clone)]
pub struct RequestFact {
    /// Rises in the order of arrival.
    pub number: u64,
    /// The request, and the status of the answer; 0 if there was none.
    pub record: RequestRecord,
    pub about: About,
    /// The time of the request's end, in microseconds since the epoch, and the side that ended it; `None` for an open watch.
    pub ended: Option<(u64, EndedBy)>,
    /// When the first and the last object version were sent on a watch, in microseconds since the epoch.
    pub objects_us: Option<(u64, u64)>,
    /// The texts of the answer, if it has any.
    pub said: Option<Arc<Said>>,
}

/// The texts of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The name of the created object, or of the one to create, if only the request body names it; at most 253 bytes.
    pub name: String,
    /// Why the request was refused, at most 400 bytes; empty if it was not refused.
    pub message: String,
}

/// The objects that an answer was about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About {
    /// Items of a list, or object versions that were sent on a watch.
    pub objects: u64,
    /// The revision of a list or of the object read or written; on a watch, of the newest object version sent.
    pub revision: Option<u64>,
    /// The newest revision that a bookmark announced on a watch.
    pub bookmark: Option<u64>,
    /// The `code` of an `ERROR` event.
    pub error_code: Option<u16>,
    /// The number of a watch that was accepted, as in [`super::Sending`].
    pub watch: Option<u64>,
}

/// The request's parameters, read from path and query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `list`, `watch`, `get`, `create`, `update`, `patch`, `delete`, `deletecollection`; empty if it was for no resource.
    pub verb: &'static str,
    /// `plural.group`, or the plural in the core group.
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// `resourceVersion`.
    pub revision: Option<String>,
    /// `resourceVersionMatch`.
    pub revision_match: Option<String>,
    /// `limit`.
    pub limit: Option<u64>,
    /// `continue`, at most 80 bytes.
    pub continues: Option<String>,
    /// `labelSelector`.
    pub labels: Option<String>,
    /// `fieldSelector`.
    pub fields: Option<String>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`.
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
    /// Every resource ever requested, answered or not; at most [`RESOURCES_MAX`].
    resources: BTreeSet<String>,
}

/// A request in progress. When it is dropped, the log gets its fact, however the request ended.
#[derive(Debug)]
pub(crate) struct Following {
    audit: Arc<UserAudit>,
    fact: RequestFact,
    ended_by: Option<EndedBy>,
}

/// Counts a connection as its user's while it exists.
#[derive(Debug)]
pub(crate) struct OwnConnection(Arc<UserAudit>);

impl RequestFact {
    pub fn asked(&self) -> Asked {
        let record = &self.record;
        let Some(target) = Target::parse(&record.path) else { return Asked::default() };
        let query = Query::parse(&record.query).unwrap_or_default();
        let named = target.name.is_some();
        let resource = match target.group.as_str() {
            "" => target.plural,
            group => format!("{}.{group}", target.plural),
        };
        Asked {
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
    /// The texts of a refusal.
    pub(crate) fn refused(name: &str, message: &str) -> Arc<Self> {
        Arc::new(Self { name: cut(name, NAME_MAX).to_owned(), message: cut(message.trim(), MESSAGE_MAX).to_owned() })
    }

    /// The texts for a created object.
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

    /// Whether the user ever requested a resource, answered or not.
    pub fn asked_for(&self, resource: &str) -> bool {
        self.inner.lock().resources.contains(resource)
    }

    /// Facts since the last call, and the number of lost ones.
    pub fn take(&self) -> (Vec<RequestFact>, u64) {
        let mut inner = self.inner.lock();
        (inner.facts.drain(..).collect(), std::mem::take(&mut inner.lost))
    }
}

impl Following {
    /// Follows a request if its user is followed.
    pub fn begin(audit: &Arc<UserAudit>, record: &RequestRecord) -> Option<Box<Self>> {
        let log = &audit.log;
        if !log.follows() {
            return None;
        }
        let number = log.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let about = About::default();
        let fact = RequestFact { number, record: record.clone(), about, ended: None, objects_us: None, said: None };
        if let Some(resource) = Some(fact.asked().resource).filter(|resource| !resource.is_empty()) {
            log.begun(resource);
        }
        Some(Box::new(Self { audit: audit.clone(), fact, ended_by: None }))
    }

    /// Notes the answer. Any request but a watch is over when its answer goes to the connection.
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

    /// Notes object versions sent on the watch.
    pub fn sent(&mut self, objects: u64, revision: u64, now_us: u64) {
        let about = &mut self.fact.about;
        about.objects += objects;
        about.revision = about.revision.max(Some(revision));
        self.fact.objects_us = Some((self.fact.objects_us.map_or(now_us, |(first_us, _)| first_us), now_us));
    }

    /// Notes a bookmark sent on the watch.
    pub fn bookmarked(&mut self, revision: u64) {
        let about = &mut self.fact.about;
        about.bookmark = about.bookmark.max(Some(revision));
    }

    /// Notes an `ERROR` event on the stream.
    pub fn failed(&mut self, code: u16) {
        self.fact.about.error_code = Some(code);
    }

    /// Notes that the server itself ends the stream.
    pub fn ends(&mut self, by: EndedBy) {
        self.ended_by = Some(by);
    }

    /// Notes the end of the request.
    pub fn over(self: Box<Self>, now_us: u64) {
        let Self { audit, mut fact, ended_by } = *self;
        fact.ended = Some((now_us, ended_by.unwrap_or(EndedBy::Client)));
        audit.log.push(fact);
    }
}

impl OwnConnection {
    /// Notes the user's first request on a connection.
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
