//! One connection, as requests and streams on it see it. It must not know sockets.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use mock_faults::connection::Handle;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::audit::OwnConnection;
use super::users::Who;
use super::websocket::Opened;

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
    /// What the connection goes on as after the answer that is being sent.
    pub websocket: Mutex<Option<Opened>>,
}

impl Connection {
    /// Closes the connection at once: FIN, without TLS `close_notify` and whatever stands in buffers.
    pub fn sever(&self) {
        self.severed.cancel();
    }
}
