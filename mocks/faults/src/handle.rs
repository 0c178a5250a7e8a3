//! The handle of one open connection: the effects that faults want on it.
//!
//! Owns these decisions, the waker of the connection's server task, and the effects on a new connection. It must not
//! know sockets or single faults.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{FaultId, How, Kind};

#[derive(Debug)]
pub struct Handle {
    /// The number over all endpoints.
    pub id: u64,
    /// The number of the endpoint that accepted it, from 1.
    pub endpoint: u32,
    /// Completed flushes to the socket.
    pub flushes: Arc<AtomicU64>,
    /// 1 or 2; 0 until that is known.
    http_version: AtomicU8,
    /// Fast path: false while no fault has acted on the connection.
    touched: AtomicBool,
    inner: Mutex<Inner>,
    /// One task polls both directions of a connection.
    waker: AtomicWaker,
    changed: Notify,
}

/// An HTTP/2 GOAWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goaway {
    pub code: u32,
    /// Whether open streams go on.
    pub drain: bool,
}

/// `NO_ERROR`, and open streams go on.
const POLITE: Goaway = Goaway { code: 0, drain: true };

/// A direction of a connection, as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Bytes from the client.
    In,
    /// Bytes to the client.
    Out,
}

/// The effects on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Welcome {
    /// How the connection is refused, if it is.
    pub refused: Option<How>,
    /// The most HTTP/2 streams at a time.
    pub streams_max: Option<(FaultId, u32)>,
    /// The kind of another certificate.
    pub certificate: Option<(FaultId, Kind)>,
}

#[derive(Debug, Default)]
struct Inner {
    frozen_in: Option<FaultId>,
    frozen_out: Option<FaultId>,
    ignores_pings: Option<FaultId>,
    goaway: Option<Goaway>,
    drains: bool,
    /// Whether a GOAWAY was requested, in either form.
    leaving: bool,
    carries: Option<String>,
    /// Faults whose first effect here was counted; bounded by the number of remembered faults.
    counted: BTreeSet<FaultId>,
}

impl Handle {
    /// A connection without effects.
    pub fn new(id: u64, endpoint: u32) -> Self {
        Self {
            id,
            endpoint,
            flushes: Arc::default(),
            http_version: AtomicU8::new(0),
            touched: AtomicBool::new(false),
            inner: Mutex::default(),
            waker: AtomicWaker::new(),
            changed: Notify::new(),
        }
    }

    /// Sets the HTTP version, 1 or 2.
    pub fn speaks(&self, http_version: u8) {
        self.http_version.store(http_version, Ordering::Release);
    }

    /// 1 or 2; 0 until that is known.
    #[inline]
    pub fn http_version(&self) -> u8 {
        self.http_version.load(Ordering::Acquire)
    }

    /// Sets the task to wake after a decision. Must be called before looking.
    pub fn wakes(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// The fault that stops this direction.
    #[inline]
    pub fn frozen(&self, way: Way) -> Option<FaultId> {
        self.look(|inner| match way {
            Way::In => inner.frozen_in,
            Way::Out => inner.frozen_out,
        })
    }

    /// Whether a direction is frozen.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.frozen(Way::In).or_else(|| self.frozen(Way::Out)).is_some()
    }

    /// The fault that keeps PINGs from being answered.
    #[inline]
    pub fn ignores_pings(&self) -> Option<FaultId> {
        self.look(|inner| inner.ignores_pings)
    }

    /// Whether a GOAWAY is to be sent.
    pub fn has_goaway(&self) -> bool {
        self.look(|inner| inner.goaway).is_some()
    }

    /// The GOAWAY to send; returned once.
    #[inline]
    pub fn take_goaway(&self) -> Option<Goaway> {
        if !self.touched.load(Ordering::Acquire) {
            return None;
        }
        self.inner.lock().goaway.take()
    }

    /// Waits for a graceful shutdown of the connection: no new streams, open ones go on.
    pub async fn drains(&self) {
        self.until(|inner| inner.drains).await;
    }

    /// Waits until no direction is frozen.
    pub async fn thawed(&self) {
        self.until(|inner| inner.frozen_in.is_none() && inner.frozen_out.is_none()).await;
    }

    /// Whether a GOAWAY was requested, sent or not.
    pub fn is_leaving(&self) -> bool {
        self.look(|inner| inner.leaving.then_some(())).is_some()
    }

    /// For example `connection 7 (watch 3 of packages.longhaul.dev by subject)`.
    pub fn describe(&self) -> String {
        match &self.inner.lock().carries {
            Some(watch) => format!("connection {} ({watch})", self.id),
            None => format!("connection {}", self.id),
        }
    }

    /// Notes the watch that led a fault to the connection.
    pub(super) fn carries(&self, watch: String) {
        self.inner.lock().carries.get_or_insert(watch);
    }

    /// Whether this is the first effect of a fault here.
    pub(super) fn is_first(&self, by: FaultId) -> bool {
        self.inner.lock().counted.insert(by)
    }

    /// Stops a direction; `false` if it is stopped already.
    pub fn freeze(&self, by: FaultId, way: Way) -> bool {
        self.decide(|inner| {
            let slot = inner.slot(way);
            slot.is_none() && slot.replace(by).is_none()
        })
    }

    /// Undoes the temporary effects of a fault.
    pub(super) fn release(&self, by: FaultId) {
        self.decide(|inner| {
            for way in [Way::In, Way::Out] {
                let slot = inner.slot(way);
                *slot = slot.filter(|owner| *owner != by);
            }
            inner.ignores_pings = inner.ignores_pings.filter(|owner| *owner != by);
            true
        });
    }

    /// Keeps PINGs from being answered; `false` if a fault does so already.
    pub fn ignore_pings(&self, by: FaultId) -> bool {
        self.decide(|inner| inner.ignores_pings.is_none() && inner.ignores_pings.replace(by).is_none())
    }

    /// Sends a GOAWAY; `false` if one was sent or the connection is not HTTP/2.
    pub fn go_away(&self, goaway: Goaway) -> bool {
        if self.http_version() != 2 {
            return false;
        }
        self.decide(|inner| {
            if std::mem::replace(&mut inner.leaving, true) {
                return false;
            }
            // The graceful GOAWAY is the HTTP implementation's own: it also counts the streams down.
            if goaway == POLITE {
                inner.drains = true;
            } else {
                inner.goaway = Some(goaway);
            }
            true
        })
    }

    fn look<T>(&self, look: impl FnOnce(&Inner) -> Option<T>) -> Option<T> {
        if !self.touched.load(Ordering::Acquire) {
            return None;
        }
        look(&self.inner.lock())
    }

    fn decide(&self, decide: impl FnOnce(&mut Inner) -> bool) -> bool {
        let decided = decide(&mut self.inner.lock());
        if decided {
            self.touched.store(true, Ordering::Release);
            self.waker.wake();
            self.changed.notify_waiters();
        }
        decided
    }

    async fn until(&self, holds: impl Fn(&Inner) -> bool) {
        loop {
            // Registered before looking, so that a change in between wakes.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(&self.inner.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl Inner {
    fn slot(&mut self, way: Way) -> &mut Option<FaultId> {
        match way {
            Way::In => &mut self.frozen_in,
            Way::Out => &mut self.frozen_out,
        }
    }
}
