//! One connection, as requests and streams on it see it. It must not know sockets.

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

/// One connection, as requests and streams on it see it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub id: u64,
    pub http_version: u8,
    pub peer: Option<Arc<Who>>,
    /// To be closed at once, without a word.
    pub severed: CancellationToken,
    /// Whose it is: known from the first request on.
    pub owner: OnceLock<OwnConnection>,
    /// Completed flushes to the socket.
    pub flushes: Arc<AtomicU64>,
    /// The socket is to be closed with a reset.
    pub reset: Arc<AtomicBool>,
    /// By which faults reach it.
    pub handle: Arc<Handle>,
    /// It is of a part of the server itself, which needs no role.
    pub inside: bool,
    /// What the connection goes on as after the answer that is being sent.
    pub websocket: Mutex<Option<Opened>>,
}

/// A WebSocket whose connection is still the HTTP library's.
pub(crate) struct Opened {
    pub upgrade: OnUpgrade,
    /// What it sends; none when the handshake failed and the connection is only to be closed.
    pub body: Option<UnsyncBoxBody<Bytes, Broken>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Connection {
    /// Closes the connection at once: FIN, without TLS `close_notify` and whatever stands in buffers.
    pub fn sever(&self) {
        self.severed.cancel();
    }
}
