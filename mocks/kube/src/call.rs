//! A request for a resource, and the state that all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use mock_faults::{Injection, On, RequestFacts, View};
use mock_objects::catalogue::{Resource, Served};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::audit::{About, EndedBy, Following, Said, UserAudit};
use super::cluster::Cluster;
use super::config::Limits;
use super::connection::Connection;
use super::path::{Query, Target};
use super::users::{Users, Who};

pub(crate) struct App {
    pub cluster: Arc<Cluster>,
    pub users: Arc<Users>,
    pub limits: Limits,
    /// Cancelled when the server shuts down, so that watches end.
    pub ending: CancellationToken,
    /// The state of the store that this endpoint shows.
    pub view: Arc<View>,
}

impl App {
    pub fn new(cluster: &Arc<Cluster>, users: &Arc<Users>, limits: Limits, view: View) -> Self {
        let (cluster, users, view) = (cluster.clone(), users.clone(), Arc::new(view));
        Self { cluster, users, limits, ending: CancellationToken::new(), view }
    }
}

/// A parsed request for a resource.
pub(crate) struct Call {
    pub app: Arc<App>,
    pub connection: Arc<Connection>,
    pub who: Arc<Who>,
    pub audit: Arc<UserAudit>,
    pub method: Method,
    pub target: Target,
    pub query: Query,
    pub accept: String,
    pub content_type: String,
    pub user_agent: Arc<str>,
    pub in_protobuf: bool,
    pub resource: Arc<Resource>,
    pub raw_query: Arc<str>,
    /// The effects of faults on the request.
    pub injection: Injection,
    /// The annotations that admission policies gave the request.
    pub annotations: Mutex<Annotations>,
}

/// The audit annotations of a request, by key.
pub(crate) type Annotations = BTreeMap<String, String>;

/// Counts the request as open for its user until it is dropped, and reports the result if the user is followed.
pub(crate) struct OpenRequest {
    pub audit: Arc<UserAudit>,
    pub cluster: Arc<Cluster>,
    pub following: Option<Box<Following>>,
}

impl OpenRequest {
    /// Records the answer to the request; `streams` means that the answer continues as a watch.
    pub fn answered(&mut self, status: u16, about: About, said: Option<Arc<Said>>, streams: bool) {
        if let Some(following) = &mut self.following {
            following.answered(status, about, said, streams);
        }
    }

    /// Records object versions that were written to the watch; `revision` is the revision of the last version.
    pub fn sent(&mut self, objects: usize, revision: u64, now_us: u64) {
        if let Some(following) = &mut self.following {
            following.sent(objects as u64, revision, now_us);
        }
    }

    /// Records a bookmark that was written to the watch.
    pub fn bookmarked(&mut self, revision: u64) {
        if let Some(following) = &mut self.following {
            following.bookmarked(revision);
        }
    }

    /// Records an `ERROR` event that was written to the watch.
    pub fn failed(&mut self, code: u16) {
        if let Some(following) = &mut self.following {
            following.failed(code);
        }
    }

    /// Records that the server ends the stream of a watch, cleanly or not. If this method is not called, the audit
    /// records that the client left.
    pub fn ends(&mut self, by: EndedBy) {
        if let Some(following) = &mut self.following {
            following.ends(by);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let now_us = self.cluster.now_us();
        self.audit.request_ended(now_us);
        if let Some(following) = self.following.take() {
            following.over(now_us);
        }
    }
}

impl Call {
    /// The requested version of the resource.
    pub fn served(&self) -> &Served {
        self.resource.version(&self.target.version).unwrap_or_else(|| self.resource.storage_version())
    }

    /// The namespace in the path; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    /// The revision that this endpoint shows if the store is at `current`.
    pub fn sees(&self, current: u64) -> u64 {
        let seen = self.app.view.revision(current);
        self.injection.stale.as_ref().map_or(seen, |stale| stale.view.revision(seen))
    }

    /// Adds an audit annotation to the request. If the key has a value, that value stays.
    pub fn annotate(&self, key: String, value: String) {
        self.annotations.lock().entry(key).or_insert(value);
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.app.cluster
    }

    /// The facts about the request by which faults decide whether they hit it.
    pub fn facts(&self) -> RequestFacts<'_> {
        let named = self.target.name.is_some();
        let on = match self.method {
            Method::GET if self.query.watch && !named => On::Watch,
            Method::GET if named => On::Get,
            Method::GET => On::List,
            Method::POST => On::Create,
            Method::PUT => On::Update,
            Method::PATCH => On::Patch,
            Method::DELETE => On::Delete,
            // No fault is about other methods.
            _ => On::Any,
        };
        RequestFacts {
            user: &self.who.name,
            resource: &self.resource.full_name,
            user_agent: &self.user_agent,
            on,
            query: &self.raw_query,
            endpoint: self.connection.handle.endpoint,
            connection: self.connection.id,
        }
    }

    /// Describes the request, such as `watch of packages.longhaul.dev by subject on connection 3`.
    pub fn describe(&self) -> String {
        self.facts().describe()
    }
}
