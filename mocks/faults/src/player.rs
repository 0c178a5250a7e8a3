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

/// Makes a [`Player`] of a type that has these methods itself, for those who know which one they have.
#[macro_export]
macro_rules! player {
    ($player:ty) => {
        impl $crate::Player for $player {
            fn begin(&self, id: $crate::FaultId, fault: &$crate::Fault) -> Result<(), $crate::Error> {
                <$player>::begin(self, id, fault)
            }

            fn end(&self, id: $crate::FaultId) {
                <$player>::end(self, id);
            }

            fn hits(&self, id: $crate::FaultId) -> u64 {
                <$player>::hits(self, id)
            }

            fn take_hits(&self) -> Vec<$crate::Hit> {
                <$player>::take_hits(self)
            }
        }
    };
}
