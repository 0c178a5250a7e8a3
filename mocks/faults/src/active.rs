//! A handle of a fault for effects that happen later: on a stream, or while a request waits.
//!
//! Owns three operations: asking whether the fault is still active, asking whether it may have another effect, and
//! counting an effect.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::FaultId;

#[derive(Debug, Clone)]
pub struct ActiveFault {
    id: FaultId,
    /// The serial number of the fault, which, unlike the id, is never reused.
    serial: u64,
    over: CancellationToken,
    counts: Arc<dyn Counts>,
}

/// Counts the effects of each fault, by the fault's serial number.
pub(crate) trait Counts: Debug + Send + Sync {
    /// Whether the fault may have one more effect.
    fn may(&self, serial: u64) -> bool;
    /// Counts one effect, unless the fault has used up its `count`. If `by_chance` is true, the effect is counted only
    /// with the fault's probability. `detail` is called only for a counted effect.
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

    /// Whether the fault may have another effect now; counts no effect.
    pub fn may(&self) -> bool {
        !self.is_over() && self.counts.may(self.serial)
    }

    /// Counts one effect if the fault is active, has not used up its `count`, and its probability allows the effect.
    /// The caller carries out only a counted effect.
    pub fn strike(&self, mut detail: impl FnMut() -> String) -> bool {
        !self.is_over() && self.counts.strike(self.serial, true, &mut detail)
    }

    /// Counts an effect that the probability has already allowed, even if the fault has ended meanwhile.
    pub fn hit(&self, mut detail: impl FnMut() -> String) -> bool {
        self.counts.strike(self.serial, false, &mut detail)
    }
}
