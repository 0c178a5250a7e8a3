//! The handle of a fault for effects that act later: on a stream, or while a request waits.
//!
//! Owns the questions whether the fault is still active and may still act, and the report that it did.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::FaultId;

#[derive(Debug, Clone)]
pub struct ActiveFault {
    id: FaultId,
    /// Unlike the id, never reused.
    serial: u64,
    over: CancellationToken,
    counts: Arc<dyn Counts>,
}

/// The counter of effects, by serial number.
pub(crate) trait Counts: Debug + Send + Sync {
    /// Whether the fault may have one more effect.
    fn may(&self, serial: u64) -> bool;
    /// Counts one effect, unless the fault is spent or, with `by_chance`, its probability decides against it. `detail`
    /// is called only for a counted effect.
    fn strike(&self, serial: u64, by_chance: bool, detail: &mut dyn FnMut() -> String) -> bool;
}

impl ActiveFault {
    pub(super) fn new(id: FaultId, serial: u64, counts: Arc<dyn Counts>) -> Self {
        Self { id, serial, over: CancellationToken::new(), counts }
    }

    pub fn id(&self) -> FaultId {
        self.id
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether the fault has ended.
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

    /// Whether the fault may have one more effect now; does not count one.
    pub fn may(&self) -> bool {
        !self.is_over() && self.counts.may(self.serial)
    }

    /// Counts one effect if the fault is active, not spent, and its probability allows it. Only then the effect may
    /// happen.
    pub fn strike(&self, mut detail: impl FnMut() -> String) -> bool {
        !self.is_over() && self.counts.strike(self.serial, true, &mut detail)
    }

    /// Counts an effect whose probability was decided before, even if the fault has ended meanwhile.
    pub fn hit(&self, mut detail: impl FnMut() -> String) -> bool {
        self.counts.strike(self.serial, false, &mut detail)
    }
}
