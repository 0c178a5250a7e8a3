//! The programs that inject faults: the mock API server, the network proxy in front of a control plane, and the mock
//! registry.
//!
//! Owns the common interface of these programs, which the scheduler of faults uses.

use super::{Error, Fault, FaultId, Hit};

/// A program that injects the faults of one [`Family`](super::Family) or of several families.
pub trait Player: Sync {
    /// Begins a fault. Contradictory settings are refused, as are faults that another program injects.
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error>;
    /// Ends a fault, whose hits stay readable. An unknown id is ignored.
    fn end(&self, id: FaultId);
    /// Number of real effects of a fault.
    fn hits(&self, id: FaultId) -> u64;
    /// The hits since the last call, oldest first.
    fn take_hits(&self) -> Vec<Hit>;
}

/// Implements [`Player`] for a type by its own methods of the same names.
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
