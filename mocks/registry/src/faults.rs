//! The faults of the registry. [`Faults`] has the same methods as [`mock_faults::Faults`], so that the scheduler of
//! faults handles the registry like the mock API server.
//!
//! Owns the choice of requests and connections that a fault affects. One fault is one file below `faults/` and one line
//! in [`behaviour`]. `mock_faults` owns names, keys, activation and hits of faults. A hit is recorded only if an answer
//! was really changed.

mod auth_failing;
mod cut;
mod down;
mod error;
mod hang;
mod redirect_loop;
mod referrers_404;
mod slow;
mod tag_moved;
mod wrong_digest;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Response;
use mock_faults::table::Table;
use mock_faults::{Error, Family, Fault, FaultId, Hit, How, Name};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::refusal::Refusal;
use super::route::{Kind, Route};

pub(super) use down::Acceptance;

/// Longest path, and longest user agent, in the description of a hit, in characters.
const TOLD_CHARS: usize = 200;

pub struct Faults {
    epoch: Instant,
    /// False as long as no fault was ever begun, so that most requests take no lock.
    any: AtomicBool,
    inner: Mutex<Inner>,
}

/// The effect of a fault before the registry handles a request.
pub(super) enum Before {
    /// Sends this answer instead of the registry's answer.
    Answer(Response<Body>),
    /// Refuses the request.
    Refuse(Refusal),
    /// Refuses the request with the challenge of the authentication in use.
    Challenge,
    /// Sends no answer while the fault lasts.
    Hang,
    /// Waits for this time, then lets the registry answer.
    Wait(Duration),
    /// Lets the registry answer. The answer shows an earlier change by the fault, and therefore counts as a hit.
    Pass,
}

/// The effect of a fault on the registry's own answer.
pub(super) enum After {
    /// The answer was changed.
    Changed,
    /// The answer is not sent; the connection ends.
    Unsent,
    /// The answer stays unchanged, and the tag in the request moves afterwards. A hit is counted only when a client
    /// reads the moved tag.
    MoveTag,
}

/// The properties by which faults choose a request.
pub(super) struct Ask<'a> {
    pub(super) kind: Kind,
    pub(super) route: &'a Route,
    /// The request's path and query.
    pub(super) path: &'a str,
    pub(super) user_agent: &'a str,
}

/// The effects of the faults on one request.
#[derive(Default)]
pub(super) struct Injection {
    /// The faults that apply to this request.
    chosen: Vec<FaultId>,
    pub(super) applied: Option<Applied>,
}

/// A fault with an effect before a request is handled.
pub(super) struct Applied {
    pub(super) id: FaultId,
    pub(super) name: Name,
    pub(super) action: Before,
    /// Cancelled when the fault ends.
    pub(super) over: CancellationToken,
}

/// The effect of one fault. The default of every method does nothing.
trait Behaviour: Send {
    /// Whether the fault can affect requests of this kind.
    fn concerns(&self, kind: Kind) -> bool;

    /// The effect before the registry answers, if there is one.
    fn before(&mut self, _ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        None
    }

    /// Changes the registry's own answer if the fault changes answers; returns whether the answer was changed.
    fn after(&mut self, _ask: &Ask<'_>, _fault: &Fault, _response: &mut Response<Body>) -> Option<After> {
        None
    }
}

struct Inner {
    table: Table<Played>,
    lines: down::Lines,
}

struct Played {
    behaviour: Box<dyn Behaviour>,
    over: CancellationToken,
}

/// Makes the behaviour of the fault with this name; one line for each fault of the registry.
fn behaviour(name: Name) -> Option<Box<dyn Behaviour>> {
    Some(match name {
        Name::RegistryError => Box::new(error::HttpError),
        Name::RegistryHang => Box::new(hang::Hang),
        Name::RegistrySlow => Box::new(slow::Slow),
        Name::RegistryCut => Box::new(cut::Cut),
        Name::RegistryDown => Box::new(down::Down),
        Name::RegistryAuthFailing => Box::new(auth_failing::AuthFailing),
        Name::RegistryWrongDigest => Box::new(wrong_digest::WrongDigest),
        Name::RegistryTagMoved => Box::new(tag_moved::TagMoved::default()),
        Name::RegistryReferrers404 => Box::new(referrers_404::Referrers404),
        Name::RegistryRedirectLoop => Box::new(redirect_loop::RedirectLoop),
        _ => return None,
    })
}

mock_faults::player!(Faults);

impl Faults {
    pub(super) fn new(epoch: Instant, seed: u64) -> Self {
        let inner = Inner { table: Table::new(seed), lines: down::Lines::default() };
        Self { epoch, any: AtomicBool::new(false), inner: Mutex::new(inner) }
    }

    /// Begins a fault. Refuses a fault with contradictory settings, and a fault that is no registry fault.
    pub fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let fault_name = fault.name.as_str();
        let behaviour = behaviour(fault.name).filter(|_| fault.name.row().family == Family::Registry);
        let behaviour = behaviour
            .ok_or(Error::NotPlayed { fault: fault_name, why: "the registry plays faults of its own only" })?;
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        let over = CancellationToken::new();
        let index = inner.table.begin(id, fault, Played { behaviour, over })?;
        self.any.store(true, Ordering::Release);
        if fault.name == Name::RegistryDown {
            inner.sever(index, now_us);
        }
        Ok(())
    }

    pub fn end(&self, id: FaultId) {
        let mut inner = self.inner.lock();
        if let Some(index) = inner.table.end(id) {
            inner.table.entries[index].played.over.cancel();
        }
    }

    pub(super) fn end_all(&self) {
        let ids: Vec<FaultId> = self.inner.lock().table.entries.iter().map(|entry| entry.id).collect();
        for id in ids {
            self.end(id);
        }
    }

    /// Number of real effects of a fault. A fault with no hit proves nothing about the subject.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.inner.lock().table.hits_of(id)
    }

    pub fn take_hits(&self) -> Vec<Hit> {
        self.inner.lock().table.take_hits()
    }

    pub async fn struck(&self) {
        let struck = self.inner.lock().table.struck();
        struck.notified().await;
    }

    pub fn all(&self) -> Vec<(FaultId, Fault, bool, u64)> {
        self.inner.lock().table.all()
    }

    /// Finds the faults that affect an incoming request. The first fault with an effect before the request is handled
    /// counts a hit at once.
    pub(super) fn injection(&self, ask: &Ask<'_>) -> Injection {
        let mut injection = Injection::default();
        if !self.any.load(Ordering::Acquire) {
            return injection;
        }
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        for index in 0..inner.table.entries.len() {
            if !inner.chooses(index, ask) {
                continue;
            }
            let entry = &mut inner.table.entries[index];
            injection.chosen.push(entry.id);
            if injection.applied.is_some() {
                continue;
            }
            let Some(action) = entry.played.behaviour.before(ask, &entry.fault) else { continue };
            let (id, name, over) = (entry.id, entry.fault.name, entry.played.over.clone());
            inner.table.hit(index, now_us, ask.hit_text(name));
            injection.applied = Some(Applied { id, name, action, over });
        }
        injection
    }

    /// Lets the faults of a request change its answer; returns the fault that changed it.
    pub(super) fn after(
        &self,
        ask: &Ask<'_>,
        injection: &Injection,
        response: &mut Response<Body>,
    ) -> Option<(Name, After)> {
        if injection.chosen.is_empty() {
            return None;
        }
        let now_us = self.now_us();
        let mut inner = self.inner.lock();
        for id in &injection.chosen {
            let Some(index) = inner.table.newest(*id) else { continue };
            let entry = &mut inner.table.entries[index];
            if !entry.active || entry.is_spent() {
                continue;
            }
            let name = entry.fault.name;
            if let Some(after) = entry.played.behaviour.after(ask, &entry.fault, response) {
                let counted = injection.applied.as_ref().is_some_and(|applied| applied.id == *id);
                if !counted && !matches!(after, After::MoveTag) {
                    inner.table.hit(index, now_us, ask.hit_text(name));
                }
                return Some((name, after));
            }
        }
        None
    }

    /// Decides whether a new connection is served, closed, or left without an answer.
    pub(super) fn admit(&self, peer: SocketAddr) -> Acceptance {
        let now_us = self.now_us();
        self.inner.lock().admit(peer, now_us)
    }

    /// Removes a connection that has ended.
    pub(super) fn closed(&self, line: u64) {
        self.inner.lock().lines.remove(line);
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Inner {
    /// Whether a fault affects a request: the fault's keys that choose requests, its `count`, its activation and its
    /// probability decide.
    fn chooses(&mut self, index: usize, ask: &Ask<'_>) -> bool {
        let entry = &mut self.table.entries[index];
        let about = entry.active && entry.played.behaviour.concerns(ask.kind) && ask.concerns(&entry.fault);
        about && entry.is_its_turn() && !entry.is_spent() && self.table.chance(index)
    }
}

impl Ask<'_> {
    fn concerns(&self, fault: &Fault) -> bool {
        let repository = fault.repository.as_deref().is_none_or(|pattern| {
            self.route.repository().is_some_and(|name| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == pattern,
            })
        });
        repository && fault.user_agent.as_deref().is_none_or(|part| self.user_agent.contains(part))
    }

    fn hit_text(&self, name: Name) -> String {
        let cut = |text: &str| text.chars().take(TOLD_CHARS).collect::<String>();
        format!("{} on {} by {}", name.as_str(), cut(self.path), cut(self.user_agent))
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("faults", &self.all().len()).finish_non_exhaustive()
    }
}
