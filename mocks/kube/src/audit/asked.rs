//! Everything that one user asked, without loss: for a record of what a subject did.
//!
//! Owns the bounded log between requests that end and the one reader that takes them. A reader that falls behind is told how
//! many it lost. Nothing is kept of users that nobody follows.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{RequestRecord, UserAudit, cut};
use crate::path::{Query, Target, verb_of};

/// Facts that wait for their reader: 16 MiB at most. A reader comes by many times a second.
const FACTS_MAX: usize = 16_384;
/// No client follows more kinds than a cluster has.
const RESOURCES_MAX: usize = 256;
/// Longest name of an object, in bytes.
const NAME_MAX: usize = 253;
/// Longest reason of a refusal that is kept, in bytes: the first causes of an invalid object.
const MESSAGE_MAX: usize = 400;
/// Longest continue token that is kept, in bytes.
const CONTINUE_MAX: usize = 80;

/// Who ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The server, with a complete answer or the clean end of a stream.
    Server,
    /// The server, by breaking it off.
    Reset,
    /// The client went away, or the connection was lost.
    Client,
}

/// One request of a followed user. A watch is told twice, when it is answered and when it ended; everything else once.
#[derive(Debug, Clone)]
pub struct RequestFact {
    /// Rises in the order of arrival.
    pub number: u64,
    /// What arrived, and the status of the answer; 0 if there was none.
    pub record: RequestRecord,
    /// What the answer was about.
    pub about: About,
    /// When it was over and by whom, in microseconds since the epoch; `None` for a watch that is open.
    pub ended: Option<(u64, EndedBy)>,
    /// When object versions were sent on a watch, first and last, in microseconds since the epoch.
    pub objects_us: Option<(u64, u64)>,
    /// What the answer said of itself, where that is more than its status.
    pub said: Option<Arc<Said>>,
}

/// What an answer says in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The object that was made, or was to be made, where only the body of the request names it; at most 253 bytes.
    pub name: String,
    /// Why the request was refused, at most 400 bytes; empty where it was not.
    pub message: String,
}

/// What an answer was about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About {
    /// Items of a list, or object versions that were sent on a watch.
    pub objects: u64,
    /// The revision of a list, of the object that was read or written, or the newest one of an object that was sent on a watch.
    pub revision: Option<u64>,
    /// The newest revision that a bookmark told on a watch.
    pub bookmark: Option<u64>,
    /// The `code` of an `ERROR` event.
    pub error_code: Option<u16>,
    /// The number of a watch that was accepted, as in [`super::Sending`].
    pub watch: Option<u64>,
}

/// What a request asked for, as far as path and query say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `list`, `watch`, `get`, `create`, `update`, `patch`, `delete`, `deletecollection`; empty if it was for no resource.
    pub verb: &'static str,
    /// `plural.group`, or the plural in the core group.
    pub resource: String,
    /// The namespace of the path.
    pub namespace: Option<String>,
    /// The object's name.
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

/// The log of one user.
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
    /// What was ever asked for, answered or not; at most [`RESOURCES_MAX`].
    resources: BTreeSet<String>,
}

/// A request that is under way. Told when it is dropped, however it ends.
#[derive(Debug)]
pub(crate) struct Following {
    audit: Arc<UserAudit>,
    fact: RequestFact,
    ended_by: Option<EndedBy>,
}

/// Counts a connection as its user's for as long as it lives.
#[derive(Debug)]
pub(crate) struct OwnConnection(Arc<UserAudit>);

impl RequestFact {
    /// What was asked for.
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
    /// Of a refusal.
    pub(crate) fn refused(name: &str, message: &str) -> Arc<Self> {
        Arc::new(Self { name: cut(name, NAME_MAX).to_owned(), message: cut(message.trim(), MESSAGE_MAX).to_owned() })
    }

    /// Of an object that was made.
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

    /// Whether a resource was ever asked for, answered or not.
    pub fn asked_for(&self, resource: &str) -> bool {
        self.inner.lock().resources.contains(resource)
    }

    /// What came since the last call, and how much of it was lost.
    pub fn take(&self) -> (Vec<RequestFact>, u64) {
        let mut inner = self.inner.lock();
        (inner.facts.drain(..).collect(), std::mem::take(&mut inner.lost))
    }
}

impl Following {
    /// Follows a request of a user that is followed.
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

    /// It is answered. Anything but a watch is over as soon as it is handed to the connection.
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

    /// Object versions were sent on the watch.
    pub fn sent(&mut self, objects: u64, revision: u64, now_us: u64) {
        let about = &mut self.fact.about;
        about.objects += objects;
        about.revision = about.revision.max(Some(revision));
        self.fact.objects_us = Some((self.fact.objects_us.map_or(now_us, |(first_us, _)| first_us), now_us));
    }

    /// A bookmark was sent on the watch.
    pub fn bookmarked(&mut self, revision: u64) {
        let about = &mut self.fact.about;
        about.bookmark = about.bookmark.max(Some(revision));
    }

    /// The stream said that it failed.
    pub fn failed(&mut self, code: u16) {
        self.fact.about.error_code = Some(code);
    }

    /// The server ends the stream itself.
    pub fn ends(&mut self, by: EndedBy) {
        self.ended_by = Some(by);
    }

    /// It is over now.
    pub fn over(self: Box<Self>, now_us: u64) {
        let Self { audit, mut fact, ended_by } = *self;
        fact.ended = Some((now_us, ended_by.unwrap_or(EndedBy::Client)));
        audit.log.push(fact);
    }
}

impl OwnConnection {
    /// The user sent its first request on a connection.
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
