//! The state of one connection for its requests and streams. It must not know sockets.

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
    /// Cancelled to close the connection at once, without an answer.
    pub severed: CancellationToken,
    /// The connection's user, known from the first request on.
    pub owner: OnceLock<OwnConnection>,
    /// Completed flushes to the socket.
    pub flushes: Arc<AtomicU64>,
    /// Whether the socket is to be closed with a reset.
    pub reset: Arc<AtomicBool>,
    /// The access of faults to the connection.
    pub handle: Arc<Handle>,
    /// Whether the connection belongs to a part of the server itself, which needs no role.
    pub inside: bool,
    /// The WebSocket that takes over the connection after the current answer.
    pub websocket: Mutex<Option<Opened>>,
}

/// A WebSocket whose connection still belongs to the HTTP library.
pub(crate) struct Opened {
    pub upgrade: OnUpgrade,
    /// The frames' source; `None` if the handshake failed and the connection is only to be closed.
    pub body: Option<UnsyncBoxBody<Bytes, Broken>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Connection {
    /// Closes the connection at once with FIN; TLS `close_notify` and buffered data are not sent.
    pub fn sever(&self) {
        self.severed.cancel();
    }
}
