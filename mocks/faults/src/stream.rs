//! A handle of one open watch: its identity, and the effects of faults on the watch.
//!
//! Owns the state of the stream, new effects that the stream has not taken yet, and the waker of its server task. This
//! module does not know the server itself.

pub(super) mod pipe;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;

use pipe::Effect;

use super::handle::Handle;
use super::{FaultId, Http2Code};

#[derive(Debug)]
pub struct Stream {
    pub id: u64,
    pub user: Arc<str>,
    pub resource: Arc<str>,
    pub user_agent: Arc<str>,
    /// The request's query string, as it was sent.
    pub query: Arc<str>,
    pub connection: Arc<Handle>,
    /// Number of written events, including initial events.
    sent: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub struct Streaming {
    pub id: u64,
    pub user: Arc<str>,
    pub resource: Arc<str>,
    pub user_agent: Arc<str>,
    /// The request's query string, as it was sent.
    pub query: Arc<str>,
    pub connection: Arc<Handle>,
}

/// How the server currently treats a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchState {
    /// The watch is served normally.
    Served,
    Over(Ending),
    /// The watch stays open without a byte.
    Silent(FaultId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The watch ends cleanly, as if its time were over.
    Clean,
    /// The watch is reset: by RST, or on HTTP/2 by `RST_STREAM` with this code.
    Reset(Http2Code),
    /// The connection is closed in the middle of the watch.
    Eof,
    /// The watch sends a last line, and then ends cleanly, or stays open without a byte because of a fault.
    Error {
        line: Bytes,
        /// The fault that keeps the stream open after the line.
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
    /// A watch that is served normally.
    pub fn new(of: Streaming) -> Self {
        let Streaming { id, user, resource, user_agent, query, connection } = of;
        let inner = Mutex::new(Inner { watch_state: WatchState::Served, attached: Vec::new(), waker: None });
        Self { id, user, resource, user_agent, query, connection, sent: AtomicU64::new(0), inner }
    }

    /// Returns the watch's state and its new effects; `waker` is woken when the state changes or an effect is added.
    pub fn look(&self, waker: &Waker) -> (WatchState, Vec<Box<dyn Effect>>) {
        let mut inner = self.inner.lock();
        if !inner.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
        (inner.watch_state.clone(), std::mem::take(&mut inner.attached))
    }

    pub fn watch_state(&self) -> WatchState {
        self.inner.lock().watch_state.clone()
    }

    /// Sets the watch's state and returns whether it changed. A stream that has ended stays ended.
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

    /// Keeps the stream open without a byte after the last line of an [`Ending::Error`].
    pub fn fall_silent(&self, fault: FaultId) {
        self.inner.lock().watch_state = WatchState::Silent(fault);
    }

    /// Adds an effect of a fault to the stream.
    pub fn attach(&self, effect: Box<dyn Effect>) {
        self.inner.lock().attached.push(effect);
        self.wake();
    }

    /// Wakes the stream's server task.
    pub fn wake(&self) {
        let waker = self.inner.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The number of written events.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Counts further written events.
    #[inline]
    pub fn add_sent(&self, events: usize) {
        self.sent.fetch_add(events as u64, Ordering::AcqRel);
    }

    /// Describes the watch, for example `watch 7 of packages.longhaul.dev by subject on connection 3`.
    pub fn describe(&self) -> String {
        format!("{} on connection {}", self.what(), self.connection.id)
    }

    /// Describes the watch without its connection, for example `watch 7 of packages.longhaul.dev by subject`.
    pub fn what(&self) -> String {
        format!("watch {} of {} by {}", self.id, self.resource, self.user)
    }
}
