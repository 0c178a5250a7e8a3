//! The players of faults: the API server, the network in front of it, the registry.
//!
//! Owns their common interface, so that a schedule's runner need not know which player it has.

use super::{Error, Fault, FaultId, Hit};

/// A player of the faults of one [`Family`](super::Family), or of several.
pub trait Player: Sync {
    /// Begins a fault. A fault with contradictory settings or of another player is refused.
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error>;
    /// Ends a fault. Its hits stay readable; an unknown id is ignored.
    fn end(&self, id: FaultId);
    /// Number of real effects.
    fn hits(&self, id: FaultId) -> u64;
    /// The hits since the last call, oldest first.
    fn take_hits(&self) -> Vec<Hit>;
}

/// Implements [`Player`] for a type that has these methods itself, for callers that know the type.
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
