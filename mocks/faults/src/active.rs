//! A hand on a fault, for effects that act after the engine has let go of it: on a stream, or while a request waits.
//!
//! Owns asking whether the fault still is, may still act, and saying that it did.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::FaultId;
use super::engine::Core;

/// One fault that was begun.
#[derive(Debug, Clone)]
pub struct ActiveFault {
    id: FaultId,
    /// Unlike the id never used twice.
    serial: u64,
    over: CancellationToken,
    core: Arc<Core>,
}

impl ActiveFault {
    pub(super) fn new(id: FaultId, serial: u64, core: Arc<Core>) -> Self {
        Self { id, serial, over: CancellationToken::new(), core }
    }

    /// Which fault it is.
    pub fn id(&self) -> FaultId {
        self.id
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The fault has ended.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Waits until the fault ends.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    pub(super) fn finish(&self) {
        self.over.cancel();
    }

    /// Whether the fault may have one more effect now; nothing is counted.
    pub fn may(&self) -> bool {
        !self.is_over() && self.core.may(self.serial)
    }

    /// Counts one effect if the fault is active, not spent, and its chance allows it: only then the effect may be had.
    pub fn strike(&self, detail: impl FnOnce() -> String) -> bool {
        !self.is_over() && self.core.strike(self.serial, true, detail)
    }

    /// The same for an effect whose chance was taken before; also after the fault's end, which came in between.
    pub fn hit(&self, detail: impl FnOnce() -> String) -> bool {
        self.core.strike(self.serial, false, detail)
    }
}
