//! The state of one connection that its requests and streams share. This module must not know sockets.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::upgrade::OnUpgrade;
use mock_faults::handle::Handle;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::audit::OwnConnection;
use super::broken::Broken;
use super::users::Who;

#[derive(Debug)]
pub(crate) struct Connection {
    pub id: u64,
    pub http_version: u8,
    pub peer: Option<Arc<Who>>,
    /// Cancelled to close the connection at once without an answer.
    pub severed: CancellationToken,
    /// The user of the connection, which the first request sets.
    pub owner: OnceLock<OwnConnection>,
    /// Number of completed flushes to the socket.
    pub flushes: Arc<AtomicU64>,
    pub reset: Arc<AtomicBool>,
    /// The handle through which faults act on the connection.
    pub handle: Arc<Handle>,
    /// Whether the connection belongs to a control plane program that this server simulates, which needs no role.
    pub inside: bool,
    /// The WebSocket that takes over the connection after the current answer.
    pub websocket: Mutex<Option<Opened>>,
}

/// A WebSocket whose connection the HTTP library still holds.
pub(crate) struct Opened {
    pub upgrade: OnUpgrade,
    /// The stream that becomes WebSocket frames; `None` if the handshake failed and the connection is only closed.
    pub body: Option<UnsyncBoxBody<Bytes, Broken>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Connection {
    /// Closes the connection at once with FIN, without TLS `close_notify` and without the buffered data.
    pub fn sever(&self) {
        self.severed.cancel();
    }
}
