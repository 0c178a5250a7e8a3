//! The audit: every user's requests, and the bytes put on the wire for each user.
//!
//! Owns one audit per user: counters, the request ring, how far each watch was delivered, the gaps that a relist
//! closed, and the newest stream lines. All of it is bounded. It must not decide anything about requests.

mod asked;
mod delivered;
mod excerpt;
mod requests;
mod shown;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::Mutex;

pub use asked::{About, Asked, EndedBy, RequestFact, Said};
pub(crate) use asked::{Following, OwnConnection, RequestLog};
pub(crate) use delivered::Delivered;
pub use requests::RequestRecord;
pub(crate) use requests::{RequestRing, cut};
use shown::ShownLog;
pub use shown::{Shown, ShownBy};

use wire::Wire;

use mock_faults::FaultId;
use mock_store::ResourceId;
use mock_store::batch::Batch;

const GAPS_MAX: usize = 4096;
const SCOPES_MAX: usize = 4096;
const LISTS_MAX: usize = 16;
const USERS_MAX: usize = 1024;

/// A user's requests, as counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub requests: u64,
    /// List requests; every page counts.
    pub lists: u64,
    pub watches_opened: u64,
    pub watches_open: u64,
    /// Requests open now, watches included.
    pub requests_open: u64,
    /// How long no request has been open, in microseconds; `None` while one is, or when none was ever sent.
    pub idle_us: Option<u64>,
    /// 410s answered as HTTP status.
    pub gone_http: u64,
    /// 410s answered as an `ERROR` event.
    pub gone_stream: u64,
    /// 410s for a revision that the server had already answered with 410: the client ignores the answer.
    pub gone_repeated: u64,
    /// Connections on which the user sent a request first.
    pub connections: u64,
    /// The open ones among [`Self::connections`].
    pub connections_open: u64,
}

/// A gap in a user's stream that a relist closed: versions in `(after, through]` need not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Full resource name.
    pub resource: Arc<str>,
    /// The last revision that was delivered; 0 before the first watch.
    pub after: u64,
    /// The revision of the list that closed the gap.
    pub through: u64,
}

/// How one version was delivered to one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Written to a watch.
    Sent {
        watch: u64,
        /// When, in microseconds since the epoch.
        at_us: u64,
    },
    /// A fault withheld it.
    Withheld { fault: FaultId },
    /// Never sent on a watch, or longer ago than the audit remembers (131,072 versions per user).
    NotSent,
}

/// One delivery, or one suppression by a fault, of one version to one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    pub revision: u64,
    pub watch: u64,
    /// When, in microseconds since the epoch.
    pub at_us: u64,
    /// The fault that withheld it; `None` if it was sent.
    pub withheld_by: Option<FaultId>,
}

#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub revision: u64,
    /// The object's name; the line is cut around it.
    pub name: Option<&'a str>,
    /// Microseconds since the epoch. If several watches sent the version, the one nearest to this moment counts.
    pub at_us: u64,
}

/// A line of a watch, cut around the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLine {
    pub watch: u64,
    /// When it was sent, in microseconds since the epoch.
    pub at_us: u64,
    pub revision: u64,
    /// The line or its excerpt.
    pub text: String,
}

/// The part of the API that one informer follows.
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
    /// Revisions of the newest lists.
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
        }
    }

    /// The audit of a user. Users beyond the first 1024 get an audit that is thrown away.
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

    /// Every audit, by user.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<UserAudit>)> {
        self.users.lock().iter().map(|(user, audit)| (user.clone(), audit.clone())).collect()
    }

    /// The store was restored to revision `to`: versions sent after it belong to another timeline.
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

    fn connection_opened(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.connections += 1;
        inner.traffic.connections_open += 1;
    }

    fn connection_closed(&self) {
        let mut inner = self.inner.lock();
        inner.traffic.connections_open = inner.traffic.connections_open.saturating_sub(1);
    }

    /// Notes that a list was answered at `revision`.
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

    /// Notes that a watch opens at `start`. `initial` means that the stream begins with a snapshot of that revision.
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

    /// The initial events of a watch end at `through`. A client that waits for this mark need not report versions that
    /// came and went earlier.
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

    /// A watch from `requested` was answered with 410.
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

    /// One write to a watch: the versions in it and their lines.
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

    /// One write to a watch, shared with other watches.
    pub fn sent_batch(&self, watch: u64, resource: ResourceId, at_us: u64, batch: &Arc<Batch>) {
        self.inner.lock().wire.sent_batch(watch, resource, at_us, batch);
    }

    pub fn withheld(&self, watch: u64, resource: ResourceId, revision: u64, at_us: u64, fault: FaultId) {
        self.inner.lock().wire.withheld(watch, resource, at_us, revision, fault);
    }

    pub fn take_gaps(&self) -> Vec<Gap> {
        self.inner.lock().gaps.drain(..).collect()
    }

    /// The last delivery of a version; being sent beats being withheld.
    pub fn delivery(&self, resource: ResourceId, revision: u64) -> Delivery {
        self.inner.lock().wire.delivery(resource, revision)
    }

    /// All sendings of these versions (ascending) from `since_us` on, oldest first.
    pub fn sendings(&self, resource: ResourceId, revisions: &[u64], since_us: u64) -> Vec<Sending> {
        self.inner.lock().wire.sendings(resource, revisions, since_us)
    }

    /// The stream lines around a version, `around` before and after, of the watch whose lines came nearest to it.
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
