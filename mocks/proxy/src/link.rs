//! The state of one open connection for faults and counters. It must not know the sockets.

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
    /// Bytes given to the kernel so far, by direction.
    pub moved: [AtomicU64; 2],
    /// Faults whose first effect on this connection was counted; bounded by the number of remembered faults.
    counted: Mutex<BTreeSet<FaultId>>,
    /// Cancelled when the subject has closed its side.
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

    /// For example `connection 3 from 127.0.0.1:50112`.
    pub fn describe(&self) -> String {
        format!("connection {} from {}", self.id, self.peer)
    }

    /// Whether this is the first effect of a fault here.
    pub fn is_first(&self, by: FaultId) -> bool {
        self.counted.lock().insert(by)
    }
}
