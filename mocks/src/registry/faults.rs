//! Faults of the registry: named misbehaviour, with proof that each one was really hit.
//!
//! Owns the engine that begins and ends faults and the record of their hits. One fault is one file below `faults/` and
//! one line in [`Name::behaviour`]. A hit is recorded only when an answer was really changed.

mod auth_failing;
mod hang;
mod redirect_loop;
mod referrers_404;
mod server_error;
mod settings;
mod tag_moved;
mod too_many_requests;
mod truncated_blob;
mod wrong_digest;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use http::Response;
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::refusal::Refusal;
use super::route::{Kind, Route};

pub use crate::faults::{FaultId, Hit};
pub use settings::{Error, Fault, Name};

/// How many hits are kept until somebody takes them; older ones are dropped, the counters go on.
const HITS_MAX: usize = 8192;
/// How many faults are remembered after their end.
const ENDED_MAX: usize = 10_000;

/// The faults of one registry.
pub struct Faults {
    epoch: Instant,
    inner: Mutex<Inner>,
}

/// What a fault does before the registry looks at a request.
pub(super) enum Before {
    /// Answers in its place.
    Answer(Response<Body>),
    /// Refuses in its place.
    Refuse(Refusal),
    /// Refuses with the challenge of the authentication in use.
    Challenge,
    /// Never answers while the fault lasts.
    Hang,
    /// Moves the tag that is being read, then lets the registry answer.
    MoveTag,
}

/// A request, as faults see it.
pub(super) struct Ask<'a> {
    pub(super) kind: Kind,
    pub(super) route: &'a Route,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) user_agent: &'a str,
}

/// A fault that applies to a request.
pub(super) struct Applied {
    pub(super) id: FaultId,
    pub(super) name: Name,
    pub(super) action: Before,
    /// Cancelled when the fault ends.
    pub(super) ended: CancellationToken,
}

/// One fault's mechanism. Every method has the harmless default.
pub(super) trait Behaviour: Send {
    /// Which requests it changes.
    fn concerns(&self, kind: Kind) -> bool;

    /// Whether and how it steps in before the registry answers.
    fn before(&mut self, _ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        None
    }

    /// May change the registry's own answer; says whether it did.
    fn after(&mut self, _ask: &Ask<'_>, _response: &mut Response<Body>) -> bool {
        false
    }
}

struct Inner {
    running: Vec<Running>,
    ended: VecDeque<(FaultId, u64)>,
    hits: VecDeque<Hit>,
    random: ChaCha8Rng,
}

struct Running {
    id: FaultId,
    fault: Fault,
    hits: u64,
    behaviour: Box<dyn Behaviour>,
    ended: CancellationToken,
}

impl Faults {
    pub(super) fn new(epoch: Instant, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let inner = Inner { running: Vec::new(), ended: VecDeque::new(), hits: VecDeque::new(), random };
        Self { epoch, inner: Mutex::new(inner) }
    }

    /// Begins a fault. Settings that contradict each other are refused. `at` and `for` are the caller's business.
    pub fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let mut inner = self.inner.lock();
        if inner.running.iter().any(|running| running.id == id) {
            return Err(Error::AlreadyRunning { id: id.0 });
        }
        let behaviour = fault.name.behaviour();
        let ended = CancellationToken::new();
        inner.running.push(Running { id, fault: fault.clone(), hits: 0, behaviour, ended });
        Ok(())
    }

    /// Ends a fault. Its hits stay readable; an unknown id is ignored.
    pub fn end(&self, id: FaultId) {
        let mut inner = self.inner.lock();
        let Some(index) = inner.running.iter().position(|running| running.id == id) else { return };
        let running = inner.running.remove(index);
        running.ended.cancel();
        if inner.ended.len() == ENDED_MAX {
            inner.ended.pop_front();
        }
        inner.ended.push_back((id, running.hits));
    }

    /// Ends every fault.
    pub(super) fn end_all(&self) {
        let ids: Vec<FaultId> = self.inner.lock().running.iter().map(|running| running.id).collect();
        for id in ids {
            self.end(id);
        }
    }

    /// How often a fault had a real effect. A fault with no hit proves nothing about the subject.
    pub fn hits(&self, id: FaultId) -> u64 {
        let inner = self.inner.lock();
        let running = inner.running.iter().filter(|running| running.id == id).map(|running| running.hits);
        let ended = inner.ended.iter().filter(|(ended, _)| *ended == id).map(|(_, hits)| *hits);
        running.chain(ended).sum()
    }

    /// The hits since the last call, oldest first; at most the newest 8192.
    pub fn take_hits(&self) -> Vec<Hit> {
        self.inner.lock().hits.drain(..).collect()
    }

    /// The first fault that steps in before this request is looked at. The hit counts at once, except that of
    /// [`Before::MoveTag`], which is the caller's to [`record`](Self::record) once the tag has moved.
    pub(super) fn before(&self, ask: &Ask<'_>) -> Option<Applied> {
        let mut inner = self.inner.lock();
        for index in 0..inner.running.len() {
            if !inner.may_act(index, ask) {
                continue;
            }
            let running = &mut inner.running[index];
            let Some(action) = running.behaviour.before(ask, &running.fault) else { continue };
            let applied = Applied { id: running.id, name: running.fault.name, action, ended: running.ended.clone() };
            if !matches!(applied.action, Before::MoveTag) {
                inner.hit(index, self.epoch.elapsed(), ask);
            }
            return Some(applied);
        }
        None
    }

    /// Lets faults change an answer; says which one did.
    pub(super) fn after(&self, ask: &Ask<'_>, response: &mut Response<Body>) -> Option<Name> {
        let mut inner = self.inner.lock();
        for index in 0..inner.running.len() {
            if !inner.may_act(index, ask) {
                continue;
            }
            if inner.running[index].behaviour.after(ask, response) {
                inner.hit(index, self.epoch.elapsed(), ask);
                return Some(inner.running[index].fault.name);
            }
        }
        None
    }

    /// Counts an effect that the registry carried out for a fault.
    pub(super) fn record(&self, id: FaultId, ask: &Ask<'_>) {
        let mut inner = self.inner.lock();
        if let Some(index) = inner.running.iter().position(|running| running.id == id) {
            inner.hit(index, self.epoch.elapsed(), ask);
        }
    }
}

impl Inner {
    fn may_act(&mut self, index: usize, ask: &Ask<'_>) -> bool {
        let running = &self.running[index];
        let spent = running.fault.count.is_some_and(|count| running.hits >= count);
        if spent || !running.behaviour.concerns(ask.kind) || !running.fault.matches(ask) {
            return false;
        }
        match running.fault.probability {
            Some(probability) => self.random.random_bool(probability.clamp(0.0, 1.0)),
            None => true,
        }
    }

    fn hit(&mut self, index: usize, at: Duration, ask: &Ask<'_>) {
        let running = &mut self.running[index];
        running.hits += 1;
        let path: String = ask.path.chars().take(200).collect();
        let hit = Hit {
            fault: running.id,
            at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            detail: format!("{} on {} by {}", running.fault.name, path, ask.user_agent),
        };
        if self.hits.len() == HITS_MAX {
            self.hits.pop_front();
        }
        self.hits.push_back(hit);
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("running", &self.inner.lock().running.len()).finish_non_exhaustive()
    }
}
