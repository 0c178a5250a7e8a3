//! The handle of one open watch: what it is, and what is to become of it.
//!
//! Owns the stream's fate and the waker of whoever serves it. It must not know the server.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use super::FaultId;
use super::connection::Handle;

/// One open watch.
#[derive(Debug)]
pub(crate) struct Stream {
    pub id: u64,
    pub user: Arc<str>,
    /// Full resource name.
    pub resource: Arc<str>,
    pub user_agent: Arc<str>,
    /// What carries it.
    pub connection: Arc<Handle>,
    inner: Mutex<Inner>,
}

/// What is to become of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing special.
    Served,
    /// Ends cleanly.
    Ends,
    /// Is reset.
    Reset,
    /// Stays open without a byte.
    Silent(FaultId),
}

#[derive(Debug)]
struct Inner {
    fate: Fate,
    waker: Option<Waker>,
}

impl Stream {
    pub fn new(id: u64, user: Arc<str>, resource: Arc<str>, user_agent: Arc<str>, connection: Arc<Handle>) -> Self {
        let inner = Mutex::new(Inner { fate: Fate::Served, waker: None });
        Self { id, user, resource, user_agent, connection, inner }
    }

    /// The fate, and whom to wake when it changes.
    pub fn watch_fate(&self, waker: &Waker) -> Fate {
        let mut inner = self.inner.lock();
        if !inner.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
        inner.fate
    }

    pub fn fate(&self) -> Fate {
        self.inner.lock().fate
    }

    /// Decides; an ended or reset stream stays so.
    pub fn decide(&self, fate: Fate) -> bool {
        let mut inner = self.inner.lock();
        if matches!(inner.fate, Fate::Ends | Fate::Reset) || inner.fate == fate {
            return false;
        }
        inner.fate = fate;
        if let Some(waker) = inner.waker.take() {
            drop(inner);
            waker.wake();
        }
        true
    }

    /// `watch 7 of packages.longhaul.dev by subject`.
    pub fn describe(&self) -> String {
        format!("watch {} of {} by {}", self.id, self.resource, self.user)
    }
}
