//! The hooks of a fault, and the tools that it may use.
//!
//! Owns the hooks. A fault implements those that it needs; the defaults do nothing.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::handle::{Handle, Welcome};
use super::table::Ring;
use super::{ActiveFault, Asked, Fault, FaultId, Form, Injection, Newer, Row, Stream, Watches};

/// The server, as the engine needs it.
pub trait Host: Send + Sync + std::fmt::Debug {
    /// The time, in microseconds since the epoch.
    fn now_us(&self) -> u64;
    /// Compacts the history to the newest `keep` revisions; with 0 every revision handed out so far is too old to
    /// resume from. Returns the floor before and after.
    fn compact(&self, keep: u64) -> (u64, u64);
    /// Restores an older state; returns a description of the undone commits, `None` if there were none.
    fn restore(&self, restore: Restore) -> Option<String>;
    /// The present position, and the revision of `age` ago.
    fn moment(&self, age: Duration) -> Moment;
    /// Gives a user a new token and keeps the old one valid for `stays`. Returns a description, or `None` if there is
    /// no such user.
    fn rotate_token(&self, user: &str, stays: Duration) -> Option<String>;
}

/// A position of the server.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub revision: u64,
    /// The revision of that age.
    pub revision_then: u64,
    /// Connections with this number or a higher one do not exist yet.
    pub next_connection: u64,
}

/// A backup for a restore.
#[derive(Debug, Clone, Copy)]
pub struct Restore {
    /// The age of the backup; at most as old as the history.
    pub age: Duration,
    /// How a watch is treated that resumes from a revision beyond the backup.
    pub newer: Newer,
    /// How open watches are treated.
    pub watches: Watches,
}

/// One fault's mechanism. The engine checks `resource`, `on`, `nth` and the other choosing keys before a call.
pub(crate) trait Behaviour: Send + Sync + std::fmt::Debug {
    /// Changes the server before the fault begins. `targets` are the users that the fault may touch.
    fn prepare(&mut self, _host: &dyn Host, _targets: &[Arc<str>]) {}
    /// A second change of the server after the fault has begun, because events may have gone out between
    /// [`Behaviour::prepare`] and [`Behaviour::begin`].
    fn once_begun(&self) -> Option<fn(&dyn Host)> {
        None
    }
    /// The fault begins: `open` holds the watches it applies to.
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.opened(stream, scene);
        }
    }
    /// The fault ends; the watches are woken afterwards.
    fn end(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}
    /// A connection to a targeted endpoint was accepted; its user is not known yet.
    fn welcome(&mut self, _handle: &Handle, _welcome: &mut Welcome, _scene: &mut Scene<'_>) {}
    /// A matching watch opens while the fault is active, or has sent as many events as the fault waits for.
    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}
    /// A matching request comes in while the fault is active.
    fn asked(&mut self, _asked: &Asked<'_>, _treatment: &mut Injection, _scene: &mut Scene<'_>) {}
    /// An event is withheld because this fault silences the stream; also called after the fault's end.
    fn withheld(&mut self, _stream: &Stream, _revision: u64, _scene: &mut Scene<'_>) {}
    /// A watch asks for a compacted revision; returns the form of the 410. Also called after the fault's end, because
    /// clients resume later.
    fn gone(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> Option<Form> {
        None
    }
    /// A watch resumes from a revision that the store had and no longer has; returns whether this fault is the cause.
    /// Also called after the fault's end.
    fn ahead(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// A request of a target reaches the store, whatever answers it then; also called after the fault's end. Returns
    /// whether the request meets this fault's change to the server: then older faults of the same name are not called.
    fn met(&mut self, _asked: &Asked<'_>, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// A token that this fault replaced was refused; returns whether this fault counts it. Also called after the
    /// fault's end.
    fn old_token_refused(&mut self, _user: &str, _scene: &mut Scene<'_>) -> bool {
        false
    }
}

/// Makes the behaviour of a fault.
pub(crate) type Play = fn(&Fault) -> Box<dyn Behaviour>;

/// The row of a fault that the mock API server plays.
pub(crate) struct PlayedRow {
    pub row: Row,
    pub play: Play,
}

impl Row {
    /// Adds the behaviour to a row.
    pub(crate) const fn played(self, play: Play) -> PlayedRow {
        PlayedRow { row: self, play }
    }
}

/// The tools of a behaviour during a call.
pub(crate) struct Scene<'a> {
    pub id: FaultId,
    pub fault: &'a Fault,
    /// For effects that act later.
    pub active: &'a ActiveFault,
    pub(super) now_us: u64,
    pub(super) random: &'a mut ChaCha8Rng,
    pub(super) counted: &'a mut u64,
    pub(super) ring: &'a mut Ring,
}

impl Scene<'_> {
    /// Records one real effect.
    pub fn hit(&mut self, detail: String) {
        *self.counted += 1;
        self.ring.push(self.active.id(), self.now_us, detail);
    }

    /// True with the fault's probability; always if it has none.
    pub fn chance(&mut self) -> bool {
        self.fault.probability.is_none_or(|p| self.random.random_bool(p.clamp(0.0, 1.0)))
    }

    /// Whether the fault has used up its `count`.
    pub fn spent(&self) -> bool {
        self.fault.count_most().is_some_and(|count| *self.counted >= count)
    }
}
