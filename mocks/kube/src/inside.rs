//! Connections without a socket, for the control plane programs that this server simulates.
//!
//! Owns one HTTP/2 connection in memory for each program. The programs' requests are handled like all others:
//! admission, webhooks, field managers and the audit see them with the programs' names. Only RBAC does not check these
//! requests.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self as client, SendRequest};
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mock_faults::handle::Handle;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::call::App;
use super::connection::Connection;
use super::handler;
use super::users::Who;

/// Maximum number of bytes that are buffered between a simulated program and the server.
const PIPE_BYTES: usize = 64 * 1024;
/// Deadline for the answer to a simulated program's request; a webhook may take thirty seconds.
const ANSWER_DEADLINE: Duration = Duration::from_secs(40);
/// Maximum number of connections that are kept. Each node name in `spec.nodeName` of a Pod has a connection, and
/// clients may write any number of names.
const DOORS_MAX: usize = 1024;
/// An endpoint number that no real endpoint has, so that no fault of connections hits the simulated programs.
const NO_ENDPOINT: u32 = u32::MAX;

pub(crate) struct Inside {
    app: Arc<App>,
    doors: BTreeMap<Arc<str>, InsideConnection>,
    tasks: JoinSet<()>,
}

#[derive(Debug, Clone)]
pub(crate) struct InsideConnection(SendRequest<Full<Bytes>>);

impl Inside {
    pub fn new(app: Arc<App>) -> Self {
        Self { app, doors: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// The connection of the simulated program with this user name; `None` if a new connection ended at once.
    pub async fn door(&mut self, user: &str, groups: &[String]) -> Option<InsideConnection> {
        if let Some(door) = self.doors.get(user).filter(|door| !door.0.is_closed()) {
            return Some(door.clone());
        }
        // Finished tasks are removed.
        while self.tasks.try_join_next().is_some() {}
        if self.doors.len() >= DOORS_MAX {
            // Connections in use stay open until their requests are answered.
            self.doors.clear();
        }
        let who = Arc::new(Who::new(user, groups));
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let connection = self.connection(who.clone());
        let app = self.app.clone();
        let service = service_fn(move |request| {
            let (app, connection) = (app.clone(), connection.clone());
            async move { handler::handle(app, connection, request).await }
        });
        // The streams are single requests, which end within their deadlines.
        let mut builder = server::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new());
        self.tasks.spawn(async move {
            // The connection ends when its client is dropped.
            let _ = builder.serve_connection(TokioIo::new(far), service).await;
        });
        let (sender, connection) = client::handshake(TokioExecutor::new(), TokioIo::new(near)).await.ok()?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        let door = InsideConnection(sender);
        self.doors.insert(who.name.clone(), door.clone());
        Some(door)
    }

    fn connection(&self, who: Arc<Who>) -> Arc<Connection> {
        let handle = Arc::new(Handle::new(self.app.cluster.next_connection(), NO_ENDPOINT));
        handle.speaks(2);
        Arc::new(Connection {
            id: handle.id,
            http_version: 2,
            peer: Some(who),
            severed: CancellationToken::new(),
            owner: OnceLock::new(),
            flushes: handle.flushes.clone(),
            reset: Arc::new(AtomicBool::new(false)),
            handle,
            inside: true,
            websocket: Mutex::new(None),
        })
    }
}

impl InsideConnection {
    /// Sends a request; returns the status and body of the answer, or `None` without an answer.
    pub async fn ask(mut self, request: Request<Full<Bytes>>) -> Option<(u16, Bytes)> {
        let answered = async {
            self.0.ready().await.ok()?;
            let response = self.0.send_request(request).await.ok()?;
            let status = response.status().as_u16();
            Some((status, response.into_body().collect().await.ok()?.to_bytes()))
        };
        tokio::time::timeout(ANSWER_DEADLINE, answered).await.ok()?
    }
}
