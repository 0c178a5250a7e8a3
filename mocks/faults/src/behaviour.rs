//! What one fault can do, and what it may use.
//!
//! Owns the hooks. A fault implements those that it needs; every one has the harmless default.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::handle::{Handle, Welcome};
use super::table::Ring;
use super::{ActiveFault, Asked, Fault, FaultId, Form, Injection, Newer, Row, Stream, Watches};

/// What the engine needs of the server.
pub trait Host: Send + Sync + std::fmt::Debug {
    /// The time, in microseconds since the epoch.
    fn now_us(&self) -> u64;
    /// Forgets the history but for the newest `keep` revisions; with 0 every revision handed out so far is too old to
    /// resume from. Answers the floor before and after.
    fn compact(&self, keep: u64) -> (u64, u64);
    /// Goes back in time; answers what was undone, `None` when nothing was.
    fn restore(&self, restore: Restore) -> Option<String>;
    /// What there is now, and the revision of `age` ago.
    fn moment(&self, age: Duration) -> Moment;
    /// Gives a user another token and takes the old one for so long; answers what was done, `None` when there is no such user.
    fn rotate_token(&self, user: &str, stays: Duration) -> Option<String>;
}

/// Where the server stands.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The newest revision.
    pub revision: u64,
    /// The revision of that age.
    pub revision_then: u64,
    /// Connections with this number or a higher one do not exist yet.
    pub next_connection: u64,
}

/// A backup that the store is restored from.
#[derive(Debug, Clone, Copy)]
pub struct Restore {
    /// How old it is; at most as old as the history.
    pub age: Duration,
    /// What a watch from beyond the backup gets.
    pub newer: Newer,
    /// What becomes of open watches.
    pub watches: Watches,
}

/// One fault's mechanism. The engine has looked at `resource`, `on`, `nth` and the other keys that choose before it calls.
pub(crate) trait Behaviour: Send + Sync + std::fmt::Debug {
    /// Before the fault begins: what is asked of the server itself. `targets` are the users it may touch.
    fn prepare(&mut self, _host: &dyn Host, _targets: &[Arc<str>]) {}
    /// What is asked of the server once more when the fault has begun: events may have gone out between [`Behaviour::prepare`] and
    /// [`Behaviour::begin`].
    fn once_begun(&self) -> Option<fn(&dyn Host)> {
        None
    }
    /// The fault begins: `open` are the watches it applies to.
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.opened(stream, scene);
        }
    }
    /// The fault ends; the watches are woken afterwards.
    fn end(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}
    /// A connection to an endpoint that faults may touch was accepted, and nobody knows yet whose it is.
    fn welcome(&mut self, _handle: &Handle, _welcome: &mut Welcome, _scene: &mut Scene<'_>) {}
    /// A matching watch opens while the fault is active, or has sent as many events as the fault waits for.
    fn opened(&mut self, _stream: &Arc<Stream>, _scene: &mut Scene<'_>) {}
    /// A matching request comes in while the fault is active.
    fn asked(&mut self, _asked: &Asked<'_>, _treatment: &mut Injection, _scene: &mut Scene<'_>) {}
    /// An event could not be sent because the stream is silenced by this fault; also after the fault's end.
    fn withheld(&mut self, _stream: &Stream, _revision: u64, _scene: &mut Scene<'_>) {}
    /// A watch asks for a revision that was compacted away: which form of 410 to answer. Also after the fault's end,
    /// because clients resume later.
    fn gone(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> Option<Form> {
        None
    }
    /// A watch resumes from a revision that the store had and does not have any more; answers whether this fault is
    /// why. Also after the fault's end.
    fn ahead(&mut self, _stream: &Stream, _requested: u64, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// A request of a target gets as far as the store, whoever answers it then; also after the fault's end. Answers whether it meets what
    /// this fault did to the server: then older faults of the same name are not asked.
    fn met(&mut self, _asked: &Asked<'_>, _scene: &mut Scene<'_>) -> bool {
        false
    }
    /// Somebody came with a token that this fault took away. Also after the fault's end.
    fn old_token_refused(&mut self, _user: &str, _scene: &mut Scene<'_>) -> bool {
        false
    }
}

/// Makes what plays a fault.
pub(crate) type Play = fn(&Fault) -> Box<dyn Behaviour>;

/// A row of a fault that the mock API server plays.
pub(crate) struct PlayedRow {
    pub row: Row,
    pub play: Play,
}

impl Row {
    /// How it is played.
    pub(crate) const fn played(self, play: Play) -> PlayedRow {
        PlayedRow { row: self, play }
    }
}

/// What a behaviour may use.
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

    /// True with the fault's probability; always when it has none.
    pub fn chance(&mut self) -> bool {
        self.fault.probability.is_none_or(|p| self.random.random_bool(p.clamp(0.0, 1.0)))
    }

    /// Whether the fault has used up its `count`.
    pub fn spent(&self) -> bool {
        self.fault.count_most().is_some_and(|count| *self.counted >= count)
    }
}
