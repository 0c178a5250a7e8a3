//! A handle of one open connection: the effects of faults on the connection.
//!
//! Owns the effects on open and on new connections, and the waker of the connection's server task. This module knows no
//! sockets and no particular fault.

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
    /// The number of the connection, counted over all endpoints.
    pub id: u64,
    /// The number of the endpoint that accepted the connection, from 1.
    pub endpoint: u32,
    /// Number of completed flushes to the socket.
    pub flushes: Arc<AtomicU64>,
    /// The HTTP version, 1 or 2; 0 until it is known.
    http_version: AtomicU8,
    /// False while no fault has affected the connection, so that most checks take no lock.
    touched: AtomicBool,
    inner: Mutex<Inner>,
    /// The waker of the task that polls both directions of the connection.
    waker: AtomicWaker,
    changed: Notify,
}

/// An HTTP/2 GOAWAY frame that a fault sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goaway {
    pub code: u32,
    /// Whether open streams continue after the frame.
    pub drain: bool,
}

/// GOAWAY with `NO_ERROR`; open streams continue.
const POLITE: Goaway = Goaway { code: 0, drain: true };

/// A direction of a connection, as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The direction from the client.
    In,
    /// The direction to the client.
    Out,
}

/// The effects of faults on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Welcome {
    /// How the connection is refused; `None` if it is accepted.
    pub refused: Option<How>,
    /// Maximum number of simultaneous HTTP/2 streams, and the fault that sets the limit.
    pub streams_max: Option<(FaultId, u32)>,
    /// The kind of certificate that the connection gets instead of the right certificate.
    pub certificate: Option<(FaultId, Kind)>,
}

#[derive(Debug, Default)]
struct Inner {
    frozen_in: Option<FaultId>,
    frozen_out: Option<FaultId>,
    ignores_pings: Option<FaultId>,
    goaway: Option<Goaway>,
    drains: bool,
    /// Whether a fault requested a GOAWAY or a graceful shutdown.
    leaving: bool,
    carries: Option<String>,
    /// Faults whose first effect on this connection was counted; bounded by the number of remembered faults.
    counted: BTreeSet<FaultId>,
}

impl Handle {
    /// The handle of a connection without effects.
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

    /// The HTTP version, 1 or 2; 0 until it is known.
    #[inline]
    pub fn http_version(&self) -> u8 {
        self.http_version.load(Ordering::Acquire)
    }

    /// Sets the task that is woken after a new effect. Call this before reading the effects.
    pub fn wakes(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// The fault that stops this direction of the connection.
    #[inline]
    pub fn frozen(&self, way: Way) -> Option<FaultId> {
        self.look(|inner| match way {
            Way::In => inner.frozen_in,
            Way::Out => inner.frozen_out,
        })
    }

    /// Whether a fault stops a direction of the connection.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.frozen(Way::In).or_else(|| self.frozen(Way::Out)).is_some()
    }

    /// The fault that leaves PINGs without an answer.
    #[inline]
    pub fn ignores_pings(&self) -> Option<FaultId> {
        self.look(|inner| inner.ignores_pings)
    }

    pub fn has_goaway(&self) -> bool {
        self.look(|inner| inner.goaway).is_some()
    }

    /// Takes the GOAWAY that must be sent; each requested GOAWAY is returned once.
    #[inline]
    pub fn take_goaway(&self) -> Option<Goaway> {
        if !self.touched.load(Ordering::Acquire) {
            return None;
        }
        self.inner.lock().goaway.take()
    }

    /// Waits until a fault requests a graceful shutdown of the connection: no new streams, while open streams continue.
    pub async fn drains(&self) {
        self.until(|inner| inner.drains).await;
    }

    /// Waits until no fault stops a direction of the connection.
    pub async fn thawed(&self) {
        self.until(|inner| inner.frozen_in.is_none() && inner.frozen_out.is_none()).await;
    }

    /// Whether a fault requested a GOAWAY, whether the frame was already sent or not.
    pub fn is_leaving(&self) -> bool {
        self.look(|inner| inner.leaving.then_some(())).is_some()
    }

    /// Describes the connection, for example `connection 7 (watch 3 of packages.longhaul.dev by subject)`.
    pub fn describe(&self) -> String {
        match &self.inner.lock().carries {
            Some(watch) => format!("connection {} ({watch})", self.id),
            None => format!("connection {}", self.id),
        }
    }

    /// Remembers the watch by which a fault found the connection.
    pub(super) fn carries(&self, watch: String) {
        self.inner.lock().carries.get_or_insert(watch);
    }

    /// True at the first call for a fault: the fault has its first effect on this connection.
    pub(super) fn is_first(&self, by: FaultId) -> bool {
        self.inner.lock().counted.insert(by)
    }

    /// Stops one direction of the connection; `false` if it is already stopped.
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

    /// Leaves PINGs without an answer; `false` if a fault already leaves them without one.
    pub fn ignore_pings(&self, by: FaultId) -> bool {
        self.decide(|inner| inner.ignores_pings.is_none() && inner.ignores_pings.replace(by).is_none())
    }

    /// Requests a GOAWAY; `false` if one was requested before or the connection is not HTTP/2.
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
