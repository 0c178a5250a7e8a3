//! Faults of connections, below HTTP; each fault is one file in `connection/`.
//!
//! Owns the choice of connections. A fault affects only connections of target users. The engine finds such a connection
//! by a watch of a target user. Before the user of a connection is known, the engine uses the endpoints that
//! [`super::Faults::target_endpoints`] sets.

pub(super) mod certificate;
pub(super) mod freeze;
pub(super) mod goaway;
pub(super) mod max_streams;
pub(super) mod no_pong;
pub(super) mod refuse_connections;

use std::sync::Weak;

use super::Scene;
use super::handle::Handle;

/// Counts the connections that a fault could affect, and the connections that it affects.
#[derive(Debug, Default)]
struct Turns {
    seen: u64,
    taken: u64,
}

impl Turns {
    /// Whether the fault affects another connection with a watch: its `count` and its probability decide.
    fn take(&mut self, scene: &mut Scene<'_>) -> bool {
        let takes = scene.fault.count.is_none_or(|count| self.taken < count) && scene.chance();
        self.taken += u64::from(takes);
        takes
    }

    /// Whether the fault affects another new connection: its `nth`, `count` and probability decide.
    fn take_new(&mut self, scene: &mut Scene<'_>) -> bool {
        self.seen += 1;
        scene.fault.is_turn(self.seen) && self.take(scene)
    }
}

/// Drops the handles of closed connections, so that the list is no longer than the number of open connections.
fn forget_closed(handles: &mut Vec<Weak<Handle>>) {
    handles.retain(|handle| handle.strong_count() > 0);
}
