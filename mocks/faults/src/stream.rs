//! The handle of one open watch: what it is, and what is to become of it.
//!
//! Owns the stream's state, the effects on their way to it, and the waker of whoever serves it. It must not know the
//! server.

pub(super) mod pipe;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;

use pipe::Effect;

use super::handle::Handle;
use super::{FaultId, Http2Code};

/// One open watch.
#[derive(Debug)]
pub struct Stream {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub user: Arc<str>,
    /// Full resource name.
    pub resource: Arc<str>,
    /// Of the client.
    pub user_agent: Arc<str>,
    /// Of the request, as it was sent.
    pub query: Arc<str>,
    /// What carries it.
    pub connection: Arc<Handle>,
    /// Events that were written, initial ones included.
    sent: AtomicU64,
    inner: Mutex<Inner>,
}

/// What a stream is made of.
#[derive(Debug)]
pub struct Streaming {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub user: Arc<str>,
    /// Full resource name.
    pub resource: Arc<str>,
    /// Of the client.
    pub user_agent: Arc<str>,
    /// Of the request, as it was sent.
    pub query: Arc<str>,
    /// What carries it.
    pub connection: Arc<Handle>,
}

/// What is to become of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchState {
    /// Nothing special.
    Served,
    /// It ends.
    Over(Ending),
    /// Stays open without a byte.
    Silent(FaultId),
}

/// How a watch ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As if its time were over.
    Clean,
    /// RST; on HTTP/2 `RST_STREAM` with this code.
    Reset(Http2Code),
    /// The connection is closed in the middle.
    Eof,
    /// A last line, then a clean end, or silence because of a fault.
    Error {
        /// The line.
        line: Bytes,
        /// The fault that keeps the stream open after it.
        hold: Option<FaultId>,
    },
}

#[derive(Debug)]
struct Inner {
    watch_state: WatchState,
    attached: Vec<Box<dyn Effect>>,
    waker: Option<Waker>,
}

impl Stream {
    /// A watch that is served.
    pub fn new(of: Streaming) -> Self {
        let Streaming { id, user, resource, user_agent, query, connection } = of;
        let inner = Mutex::new(Inner { watch_state: WatchState::Served, attached: Vec::new(), waker: None });
        Self { id, user, resource, user_agent, query, connection, sent: AtomicU64::new(0), inner }
    }

    /// The state and the effects that are new, and whom to wake when either changes.
    pub fn look(&self, waker: &Waker) -> (WatchState, Vec<Box<dyn Effect>>) {
        let mut inner = self.inner.lock();
        if !inner.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
        (inner.watch_state.clone(), std::mem::take(&mut inner.attached))
    }

    /// What is to become of it.
    pub fn watch_state(&self) -> WatchState {
        self.inner.lock().watch_state.clone()
    }

    /// Decides; a stream that is over stays so.
    pub fn decide(&self, watch_state: WatchState) -> bool {
        let mut inner = self.inner.lock();
        if matches!(inner.watch_state, WatchState::Over(_)) || inner.watch_state == watch_state {
            return false;
        }
        inner.watch_state = watch_state;
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// The last line of an ending was sent, and silence follows.
    pub fn fall_silent(&self, fault: FaultId) {
        self.inner.lock().watch_state = WatchState::Silent(fault);
    }

    /// Puts an effect on the stream.
    pub fn attach(&self, effect: Box<dyn Effect>) {
        self.inner.lock().attached.push(effect);
        self.wake();
    }

    /// Lets whoever serves the stream look again.
    pub fn wake(&self) {
        let waker = self.inner.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How many events were written.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// So many more events were written.
    #[inline]
    pub fn add_sent(&self, events: usize) {
        self.sent.fetch_add(events as u64, Ordering::AcqRel);
    }

    /// `watch 7 of packages.longhaul.dev by subject on connection 3`.
    pub fn describe(&self) -> String {
        format!("{} on connection {}", self.what(), self.connection.id)
    }

    /// `watch 7 of packages.longhaul.dev by subject`.
    pub fn what(&self) -> String {
        format!("watch {} of {} by {}", self.id, self.resource, self.user)
    }
}
