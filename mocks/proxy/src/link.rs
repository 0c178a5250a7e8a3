//! The state of one open connection, which faults and counters read. The module `connection` owns the sockets.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use mock_faults::FaultId;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::shape::{Shape, Way};

#[derive(Debug)]
pub(super) struct Link {
    pub id: u64,
    /// The subject's address.
    pub peer: SocketAddr,
    pub shape: watch::Sender<Shape>,
    /// Bytes written to a socket so far, by direction.
    pub moved: [AtomicU64; 2],
    /// Faults whose first effect on this connection was counted; bounded by the number of remembered faults.
    counted: Mutex<BTreeSet<FaultId>>,
    /// Cancelled when the subject has closed its connection.
    pub subject_gone: CancellationToken,
}

impl Link {
    pub fn new(id: u64, peer: SocketAddr, shape: Shape) -> Self {
        let shape = watch::Sender::new(shape);
        Self {
            id,
            peer,
            shape,
            moved: Default::default(),
            counted: Mutex::default(),
            subject_gone: CancellationToken::new(),
        }
    }

    pub fn moved(&self, way: Way) -> u64 {
        self.moved[way as usize].load(Ordering::Acquire)
    }

    /// Describes the connection, for example `connection 3 from 127.0.0.1:50112`.
    pub fn describe(&self) -> String {
        format!("connection {} from {}", self.id, self.peer)
    }

    /// True at the first call for a fault: the fault has its first effect on this connection.
    pub fn is_first(&self, by: FaultId) -> bool {
        self.counted.lock().insert(by)
    }
}
