//! The audit: the requests of every user, and the bytes that the server sent to each user.
//!
//! Owns one audit per user: counters, the newest requests, the delivery progress of each watch, the gaps that a relist
//! closed, and the newest lines of watches. All records are bounded. The audit must not influence answers.

mod delivered;
mod excerpt;
mod fact;
mod requests;
mod shown;
mod wire;
mod writes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::Mutex;

pub(crate) use delivered::Delivered;
pub use fact::{About, EndedBy, RequestFact, RequestParameters, Said};
pub(crate) use fact::{Following, OwnConnection, RequestLog};
pub use requests::RequestRecord;
pub(crate) use requests::{RequestRing, cut};
use shown::ShownLog;
pub use shown::{Shown, ShownBy};

use wire::Wire;
use writes::WriteLog;
pub use writes::Written;

use mock_faults::FaultId;
use mock_store::ResourceId;
use mock_store::batch::Batch;

const GAPS_MAX: usize = 4096;
const SCOPES_MAX: usize = 4096;
const LISTS_MAX: usize = 16;
const USERS_MAX: usize = 1024;

/// Counters of a user's requests since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub requests: u64,
    /// Number of list requests; every page counts.
    pub lists: u64,
    pub watches_opened: u64,
    pub watches_open: u64,
    /// Number of requests that are open now, including watches.
    pub requests_open: u64,
    /// Microseconds since the last request ended; `None` if a request is open or if the user never sent one.
    pub idle_us: Option<u64>,
    /// Number of answers with the HTTP status 410.
    pub gone_http: u64,
    /// Number of `ERROR` events with the code 410.
    pub gone_stream: u64,
    /// Number of answers 410 for a revision for which the client had got a 410 before: the client ignored the earlier
    /// answer.
    pub gone_repeated: u64,
    /// Number of connections whose first request came from this user.
    pub connections: u64,
    /// Number of connections in [`Self::connections`] that are open now.
    pub connections_open: u64,
    /// Bytes of lists as JSON: answers to list requests, and the initial events of watches.
    pub list_bytes: u64,
}

/// A gap in the versions that watches sent to a user. A later list replaced the versions in `(after, through]`, so no
/// watch had to send them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub resource: Arc<str>,
    /// The last revision that the user got before the gap; 0 before the first watch.
    pub after: u64,
    /// The revision of the list that closed the gap.
    pub through: u64,
}

/// How the server delivered one version of an object to one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The server sent the version on a watch.
    Sent {
        watch: u64,
        /// The time of sending, in microseconds since the epoch.
        at_us: u64,
    },
    Withheld {
        fault: FaultId,
    },
    /// The server never sent the version on a watch, or the audit has dropped the delivery (after 131,072 newer
    /// versions of the user).
    NotSent,
}

/// One version that the server sent to one user, or that a fault withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    pub revision: u64,
    pub watch: u64,
    /// The time of sending or withholding, in microseconds since the epoch.
    pub at_us: u64,
    /// The fault that withheld the version; `None` if the server sent it.
    pub withheld_by: Option<FaultId>,
}

#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub revision: u64,
    /// The name of the object, around which long lines are cut.
    pub name: Option<&'a str>,
    /// The wanted time in microseconds since the epoch. If several watches sent the version, the delivery nearest to
    /// this time counts.
    pub at_us: u64,
}

/// A line that a watch sent; a long line is cut around the object's name and revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLine {
    pub watch: u64,
    /// The time of sending, in microseconds since the epoch.
    pub at_us: u64,
    pub revision: u64,
    /// The whole line, or an excerpt of a long line.
    pub text: String,
}

/// The objects that one informer follows: a resource, a namespace and selectors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Scope {
    pub resource: ResourceId,
    pub namespace: Option<String>,
    pub labels: Option<String>,
    pub fields: Option<String>,
}

#[derive(Debug)]
pub(crate) struct AuditLog {
    users: Mutex<BTreeMap<Arc<str>, Arc<UserAudit>>>,
    pub requests: RequestRing,
    pub shown: ShownLog,
    pub writes: WriteLog,
}

#[derive(Debug, Default)]
pub(crate) struct UserAudit {
    inner: Mutex<Inner>,
    pub log: RequestLog,
}

#[derive(Debug, Default)]
struct Inner {
    traffic: Traffic,
    idle_since_us: u64,
    scopes: BTreeMap<Scope, ScopeBook>,
    gaps: VecDeque<Gap>,
    wire: Wire,
    last_gone: VecDeque<(ResourceId, u64)>,
}

#[derive(Debug, Default)]
struct ScopeBook {
    /// The revisions of the newest lists that the user got.
    lists: VecDeque<u64>,
    watch: Option<Arc<Delivered>>,
    through: u64,
}

impl AuditLog {
    pub fn new(requests_max: usize) -> Self {
        Self {
            users: Mutex::new(BTreeMap::new()),
            requests: RequestRing::new(requests_max),
            shown: ShownLog::default(),
            writes: WriteLog::default(),
        }
    }

    /// The audit of a user. Only the audits of the first 1024 users are kept.
    pub fn of(&self, user: &Arc<str>) -> Arc<UserAudit> {
        let mut users = self.users.lock();
        if let Some(audit) = users.get(user) {
            return audit.clone();
        }
        let audit = Arc::new(UserAudit::default());
        if users.len() < USERS_MAX {
            users.insert(user.clone(), audit.clone());
        }
        audit
    }

    pub fn all(&self) -> Vec<(Arc<str>, Arc<UserAudit>)> {
        self.users.lock().iter().map(|(user, audit)| (user.clone(), audit.clone())).collect()
    }

    /// Records that the store was restored to revision `to`: sent versions with a higher revision belong to another
    /// timeline.
    pub fn rewound(&self, to: u64) {
        for (_, audit) in self.all() {
            audit.rewound(to);
        }
    }

    pub fn find(&self, user: &str) -> Option<Arc<UserAudit>> {
        self.users.lock().get(user).cloned()
    }
}

impl UserAudit {
    pub fn traffic(&self, now_us: u64) -> Traffic {
        let inner = self.inner.lock();
        let mut traffic = inner.traffic;
        let idle = traffic.requests_open == 0 && traffic.requests > 0;
        traffic.idle_us = idle.then(|| now_us.saturating_sub(inner.idle_since_us));
        traffic
    }

    pub fn request_began(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.requests += 1;
        inner.traffic.requests_open += 1;
    }

    pub fn request_ended(&self, now_us: u64) {
        let mut inner = self.inner.lock();
        inner.traffic.requests_open = inner.traffic.requests_open.saturating_sub(1);
        inner.idle_since_us = now_us;
    }

    /// Counts bytes of a list that were encoded for the user.
    pub fn list_encoded(&self, bytes: usize) {
        self.inner.lock().traffic.list_bytes += bytes as u64;
    }

    fn connection_opened(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.connections += 1;
        inner.traffic.connections_open += 1;
    }

    fn connection_closed(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.connections_open = inner.traffic.connections_open.saturating_sub(1);
    }

    /// Records that the server answered a list at `revision`.
    pub fn listed(&self, scope: Scope, revision: u64) {
        let mut inner = self.inner.lock();
        inner.traffic.lists += 1;
        let audit = inner.scope(scope);
        if audit.lists.back() == Some(&revision) {
            return;
        }
        if audit.lists.len() == LISTS_MAX {
            audit.lists.pop_front();
        }
        audit.lists.push_back(revision);
    }

    /// Records that a watch opens at revision `start`. `initial` means that the stream begins with a snapshot at that
    /// revision.
    pub fn watch_opened(
        &self,
        scope: &Scope,
        resource: &Arc<str>,
        start: u64,
        initial: bool,
        flushes: Arc<AtomicU64>,
        now_us: u64,
    ) -> Arc<Delivered> {
        let mut inner = self.inner.lock();
        inner.traffic.watches_opened += 1;
        inner.traffic.watches_open += 1;
        let audit = inner.scope(scope.clone());
        let after = audit.watch.take().map_or(0, |watch| watch.through(now_us)).max(audit.through);
        let relisted = initial || audit.lists.contains(&start);
        // A snapshot inside the stream counts only once its end was delivered; until then the old mark stands.
        audit.through = if initial || start < after { after } else { start };
        let delivered = Arc::new(Delivered::new(audit.through, flushes));
        audit.watch = Some(delivered.clone());
        if relisted && after < start {
            inner.relisted(Gap { resource: resource.clone(), after, through: start });
        }
        delivered
    }

    /// Records that the initial events of a watch end at revision `through`. A client that waits for the end of the
    /// initial events need not report earlier versions that existed only for a short time.
    pub fn snapshot_closed(&self, resource: &Arc<str>, delivered: &Delivered, through: u64) {
        self.inner.lock().relisted(Gap { resource: resource.clone(), after: delivered.start(), through });
    }

    fn rewound(&self, to: u64) {
        let mut inner = self.inner.lock();
        inner.wire.rewound(to);
        for scope in inner.scopes.values_mut() {
            scope.through = scope.through.min(to);
            scope.lists.retain(|revision| *revision <= to);
            if let Some(watch) = &scope.watch {
                watch.rewound(to);
            }
        }
    }

    pub fn watch_closed(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.watches_open = inner.traffic.watches_open.saturating_sub(1);
    }

    /// Records that the server answered a watch from revision `requested` with 410.
    pub fn gone(&self, resource: ResourceId, requested: u64, http: bool) {
        let mut inner = self.inner.lock();
        if http {
            inner.traffic.gone_http += 1;
        } else {
            inner.traffic.gone_stream += 1;
        }
        if inner.last_gone.contains(&(resource, requested)) {
            inner.traffic.gone_repeated += 1;
            return;
        }
        if inner.last_gone.len() == LISTS_MAX {
            inner.last_gone.pop_front();
        }
        inner.last_gone.push_back((resource, requested));
    }

    /// Records one write to a watch: the versions in the write and their lines.
    pub fn sent<'a>(
        &self,
        watch: u64,
        resource: ResourceId,
        at_us: u64,
        events: impl Iterator<Item = (u64, &'a Bytes)>,
    ) {
        let mut inner = self.inner.lock();
        for (revision, bytes) in events {
            inner.wire.sent(watch, resource, at_us, revision, bytes.clone());
        }
    }

    /// Records that a batch, which other watches also get, was written to a watch.
    pub fn sent_batch(&self, watch: u64, resource: ResourceId, at_us: u64, batch: &Arc<Batch>) {
        self.inner.lock().wire.sent_batch(watch, resource, at_us, batch);
    }

    pub fn withheld(&self, watch: u64, resource: ResourceId, revision: u64, at_us: u64, fault: FaultId) {
        self.inner.lock().wire.withheld(watch, resource, at_us, revision, fault);
    }

    pub fn take_gaps(&self) -> Vec<Gap> {
        self.inner.lock().gaps.drain(..).collect()
    }

    /// The last delivery of a version; a version that was sent once and withheld once counts as sent.
    pub fn delivery(&self, resource: ResourceId, revision: u64) -> Delivery {
        self.inner.lock().wire.delivery(resource, revision)
    }

    /// The deliveries since `since_us` (microseconds since the epoch) of the versions in `revisions` (ascending),
    /// oldest first.
    pub fn sendings(&self, resource: ResourceId, revisions: &[u64], since_us: u64) -> Vec<Sending> {
        self.inner.lock().wire.sendings(resource, revisions, since_us)
    }

    /// The lines of the watch that sent the wanted version, or a version near it: `around` lines before and after.
    pub fn wire(&self, wanted: &Wanted<'_>, around: usize) -> Vec<WireLine> {
        self.inner.lock().wire.lines_round(wanted, around)
    }
}

impl Inner {
    fn relisted(&mut self, gap: Gap) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }

    fn scope(&mut self, scope: Scope) -> &mut ScopeBook {
        if self.scopes.len() >= SCOPES_MAX && !self.scopes.contains_key(&scope) {
            self.scopes.pop_first();
        }
        self.scopes.entry(scope).or_default()
    }
}

#[cfg(test)]
mod tests;
