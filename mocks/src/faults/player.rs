//! Who plays faults: the API server, the network in front of it, the registry.
//!
//! Owns what whoever holds a schedule needs of each of them, so that it need not know which one it has.

use super::{Error, Fault, FaultId, Hit};

/// Somebody who plays faults of one [`Family`](super::Family), or of several.
pub trait Player: Sync {
    /// Begins a fault. One whose settings contradict each other, or that belongs to somebody else, is refused.
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error>;
    /// Ends a fault. Its hits stay readable; an unknown id is ignored.
    fn end(&self, id: FaultId);
    /// How often a fault had a real effect.
    fn hits(&self, id: FaultId) -> u64;
    /// The hits since the last call, oldest first.
    fn take_hits(&self) -> Vec<Hit>;
}

/// Each has these methods itself, for those who know which one they have.
macro_rules! players {
    ($($player:ty),*) => {$(
        impl Player for $player {
            fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
                <$player>::begin(self, id, fault)
            }

            fn end(&self, id: FaultId) {
                <$player>::end(self, id);
            }

            fn hits(&self, id: FaultId) -> u64 {
                <$player>::hits(self, id)
            }

            fn take_hits(&self) -> Vec<Hit> {
                <$player>::take_hits(self)
            }
        }
    )*};
}

players!(super::Faults, crate::proxy::Faults, crate::registry::Faults);
