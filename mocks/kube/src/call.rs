//! A request for a resource, and the state that all requests share.

use std::sync::Arc;

use http::Method;
use mock_faults::{Asked, Injection, On, View};
use mock_objects::catalogue::{Resource, Served};
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
    /// The server is shutting down: watches end.
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

/// A request for a resource.
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
    /// Whether the answer will be protobuf.
    pub in_protobuf: bool,
    pub resource: Arc<Resource>,
    /// The query as it was sent.
    pub raw_query: Arc<str>,
    /// Effects of faults on the request.
    pub injection: Injection,
}

/// Keeps the user's count of open requests right, however the request ends, and reports the result to followers of the
/// user.
pub(crate) struct OpenRequest {
    pub audit: Arc<UserAudit>,
    pub cluster: Arc<Cluster>,
    pub following: Option<Box<Following>>,
}

impl OpenRequest {
    /// Notes the answer; `streams` means that it goes on as a watch.
    pub fn answered(&mut self, status: u16, about: About, said: Option<Arc<Said>>, streams: bool) {
        if let Some(following) = &mut self.following {
            following.answered(status, about, said, streams);
        }
    }

    /// Notes object versions written to the watch; `revision` is that of the last one.
    pub fn sent(&mut self, objects: usize, revision: u64, now_us: u64) {
        if let Some(following) = &mut self.following {
            following.sent(objects as u64, revision, now_us);
        }
    }

    /// Notes a bookmark written to the watch.
    pub fn bookmarked(&mut self, revision: u64) {
        if let Some(following) = &mut self.following {
            following.bookmarked(revision);
        }
    }

    /// Notes an `ERROR` event on the stream.
    pub fn failed(&mut self, code: u16) {
        if let Some(following) = &mut self.following {
            following.failed(code);
        }
    }

    /// Notes that the server ends the stream, cleanly or not. Without this call the client has left.
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
    /// The requested version.
    pub fn served(&self) -> &Served {
        self.resource.version(&self.target.version).unwrap_or_else(|| self.resource.storage_version())
    }

    /// The namespace of the path; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    /// The revision that this endpoint shows when the store is at `current`.
    pub fn sees(&self, current: u64) -> u64 {
        let seen = self.app.view.revision(current);
        self.injection.stale.as_ref().map_or(seen, |stale| stale.view.revision(seen))
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.app.cluster
    }

    /// The request as faults see it.
    pub fn asked(&self) -> Asked<'_> {
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
        Asked {
            user: &self.who.name,
            resource: &self.resource.full_name,
            user_agent: &self.user_agent,
            on,
            query: &self.raw_query,
            endpoint: self.connection.handle.endpoint,
            connection: self.connection.id,
        }
    }

    /// For example `watch of packages.longhaul.dev by subject on connection 3`.
    pub fn describe(&self) -> String {
        self.asked().describe()
    }
}
