//! The hooks that a fault implements, and the functions that a fault may call.
//!
//! Owns the trait of hooks. A fault implements the hooks that it needs; the default hooks do nothing.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::handle::{Handle, Welcome};
use super::table::Ring;
use super::{ActiveFault, Fault, FaultId, Form, Injection, Newer, RequestFacts, Row, Stream, Watches};

/// The functions of the server that the engine of faults calls.
pub trait Host: Send + Sync + std::fmt::Debug {
    /// The current time in microseconds since the epoch.
    fn now_us(&self) -> u64;
    /// Compacts the history to the newest `keep` revisions. With `keep` 0, no watch can resume from a revision that the
    /// server has sent so far. Returns the oldest remaining revision before and after the compaction.
    fn compact(&self, keep: u64) -> (u64, u64);
    /// Restores an older state; returns a description of the undone commits, or `None` if no commit was undone.
    fn restore(&self, restore: Restore) -> Option<String>;
    /// The number of the server's next connection, and the revision that was current `age` ago.
    fn moment(&self, age: Duration) -> Moment;
    /// Gives a user a new token and accepts the old token for the duration `stays`. Returns a description; `None` if
    /// there is no such user.
    fn rotate_token(&self, user: &str, stays: Duration) -> Option<String>;
}

/// The number of the server's next connection, and a past revision.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub revision: u64,
    /// The revision that was current `age` before the call of [`Host::moment`].
    pub revision_then: u64,
    /// The number that the next connection gets; connections with this number or a higher one do not exist yet.
    pub next_connection: u64,
}

/// The backup from which the store is restored, and its effect on watches.
#[derive(Debug, Clone, Copy)]
pub struct Restore {
    /// The age of the backup; limited to the age of the history.
    pub age: Duration,
    /// The treatment of a watch that resumes from a revision newer than the backup.
    pub newer: Newer,
    /// The treatment of watches that are open during the restore.
    pub watches: Watches,
}

/// The effects of one fault. Before the call of a hook the engine checks `resource`, `on`, `nth` and the other keys
/// that choose targets.
pub(crate) trait Behaviour: Send + Sync + std::fmt::Debug {
    /// Changes the server before the fault begins. `targets` are the users whose requests the fault may affect.
    fn prepare(&mut self, _host: &dyn Host, _targets: &[Arc<str>]) {}
    /// Changes the server again after the fault has begun, because events may have been sent between
    /// [`Behaviour::prepare`] and [`Behaviour::begin`].
    fn once_begun(&self) -> Option<fn(&dyn Host)> {
        None
    }
    /// Begins the fault; `open` contains the watches to which the fault applies.
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.opened(stream, scene);
        }
    }
    /// Ends the fault; the watches are woken afterwards.
    fn end(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}
    /// Handles a new connection to a targeted endpoint, before its user is known.
    fn welcome(&mut self, _handle: &Handle, _welcome: &mut Welcome, _scene: &mut Scene<'_>) {}
    /// Handles a matching watch that opens while the fault is active, or that has sent `afterEvents` events.
    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}
    /// Handles a matching request that arrives while the fault is active.
    fn request(&mut self, _asked: &RequestFacts<'_>, _treatment: &mut Injection, _scene: &mut Scene<'_>) {}
    /// Handles an event that is withheld because this fault silences the stream; also called after the fault's end.
    fn withheld(&mut self, _stream: &Stream, _revision: u64, _scene: &mut Scene<'_>) {}
    /// Handles a watch from a compacted revision and returns how the 410 is sent. Clients resume later, so this hook is
    /// also called after the fault's end.
    fn gone(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> Option<Form> {
        None
    }
    /// Handles a watch from a revision that the store had before a restore. Returns whether this fault did the restore.
    /// This hook is also called after the fault's end.
    fn ahead(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// Handles a request of a target user that reaches the store, whatever the answer; also called after the fault's
    /// end. Returns whether the request proves the change that this fault made to the server. If so, older faults of
    /// the same name are not called.
    fn met(&mut self, _asked: &RequestFacts<'_>, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// Handles the refusal of a token that this fault replaced; returns whether this fault counts the refusal. This
    /// hook is also called after the fault's end.
    fn old_token_refused(&mut self, _user: &str, _scene: &mut Scene<'_>) -> bool {
        false
    }
}

/// A function that makes the behaviour of a fault from its settings.
pub(crate) type Play = fn(&Fault) -> Box<dyn Behaviour>;

/// The catalogue entry of a fault that the mock API server injects.
pub(crate) struct PlayedRow {
    pub row: Row,
    pub play: Play,
}

impl Row {
    /// Adds the behaviour to a catalogue entry.
    pub(crate) const fn played(self, play: Play) -> PlayedRow {
        PlayedRow { row: self, play }
    }
}

/// The functions and data that a behaviour may use during a call.
pub(crate) struct Scene<'a> {
    pub id: FaultId,
    pub fault: &'a Fault,
    /// The fault's handle for effects that happen later.
    pub active: &'a ActiveFault,
    pub(super) now_us: u64,
    pub(super) random: &'a mut ChaCha8Rng,
    pub(super) counted: &'a mut u64,
    pub(super) ring: &'a mut Ring,
}

impl Scene<'_> {
    /// Records one real effect of the fault.
    pub fn hit(&mut self, detail: String) {
        *self.counted += 1;
        self.ring.push(self.active.id(), self.now_us, detail);
    }

    /// Returns true with the fault's probability; always true if it has no probability.
    pub fn chance(&mut self) -> bool {
        self.fault.probability.is_none_or(|p| self.random.random_bool(p.clamp(0.0, 1.0)))
    }

    /// Whether the fault has used up its `count`.
    pub fn spent(&self) -> bool {
        self.fault.count_most().is_some_and(|count| *self.counted >= count)
    }
}
