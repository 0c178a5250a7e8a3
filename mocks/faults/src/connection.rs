//! Faults of connections, below HTTP: each is one file below.
//!
//! Owns the choice among connections. A fault here touches only connections of targets. It finds a connection through a
//! watch of a targeted user. Before the user of a connection is known, it finds the connection through an endpoint
//! named in [`super::Faults::target_endpoints`].

pub(super) mod certificate;
pub(super) mod freeze;
pub(super) mod goaway;
pub(super) mod max_streams;
pub(super) mod no_pong;
pub(super) mod refuse_connections;

use std::sync::Weak;

use super::Scene;
use super::handle::Handle;

/// Counts the connections that a fault could act on, and those that it does act on.
#[derive(Debug, Default)]
struct Turns {
    seen: u64,
    taken: u64,
}

impl Turns {
    /// Whether the fault acts on one more connection that carries a watch: its count and its probability decide.
    fn take(&mut self, scene: &mut Scene<'_>) -> bool {
        let takes = scene.fault.count.is_none_or(|count| self.taken < count) && scene.chance();
        self.taken += u64::from(takes);
        takes
    }

    /// Whether the fault acts on one more new connection: here `nth` counts too.
    fn take_new(&mut self, scene: &mut Scene<'_>) -> bool {
        self.seen += 1;
        scene.fault.is_turn(self.seen) && self.take(scene)
    }
}

/// Drops closed connections, so that the list is no longer than the number of open ones.
fn forget_closed(handles: &mut Vec<Weak<Handle>>) {
    handles.retain(|handle| handle.strong_count() > 0);
}
