//! A hand on a fault, for effects that act after the engine has let go of it: on a stream, or while a request waits.
//!
//! Owns asking whether the fault still is, may still act, and saying that it did.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::FaultId;

/// One fault that was begun.
#[derive(Debug, Clone)]
pub struct ActiveFault {
    id: FaultId,
    /// Unlike the id never used twice.
    serial: u64,
    over: CancellationToken,
    counts: Arc<dyn Counts>,
}

/// Who counts the effects of faults, by serial number.
pub(crate) trait Counts: Debug + Send + Sync {
    /// Whether the fault may have one more effect.
    fn may(&self, serial: u64) -> bool;
    /// Counts one effect, unless the fault is spent or `by_chance` its chance is against it; `detail` is asked only then.
    fn strike(&self, serial: u64, by_chance: bool, detail: &mut dyn FnMut() -> String) -> bool;
}

impl ActiveFault {
    pub(super) fn new(id: FaultId, serial: u64, counts: Arc<dyn Counts>) -> Self {
        Self { id, serial, over: CancellationToken::new(), counts }
    }

    /// Which fault it is.
    pub fn id(&self) -> FaultId {
        self.id
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
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
        !self.is_over() && self.counts.may(self.serial)
    }

    /// Counts one effect if the fault is active, not spent, and its chance allows it: only then the effect may be had.
    pub fn strike(&self, mut detail: impl FnMut() -> String) -> bool {
        !self.is_over() && self.counts.strike(self.serial, true, &mut detail)
    }

    /// The same for an effect whose chance was taken before; also after the fault's end, which came in between.
    pub fn hit(&self, mut detail: impl FnMut() -> String) -> bool {
        self.counts.strike(self.serial, false, &mut detail)
    }
}
