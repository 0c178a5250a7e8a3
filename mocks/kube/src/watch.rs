//! One watch: a cursor into the log that is polled as the body of an answer.
//!
//! Owns the order of data on one stream: initial events, their closing bookmark, events, bookmarks, the end. All
//! waiting events become one write, and without a selector the bytes of the store are sent without a copy. A watch
//! keeps an event in memory only while it writes the event. Streams with effects of faults use the code in `piped`.

mod piped;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use facts::Change;
use mock_faults::View;
use mock_faults::{Ending, FaultId, Pipe, Stale, Stream, WatchState};
use mock_objects::catalogue::Resource;
use mock_objects::selector::Selector;
use mock_store::batch::{Batch, Next};
use mock_store::ordered::Ordered;
use mock_store::{Cursor, Event, Lost, Store, Version};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::audit::{Delivered, EndedBy, ShownBy, UserAudit};
use super::broken::Broken;
use super::call::OpenRequest;
use super::cluster::Cluster;
use super::connection::Connection;
use super::conversion::{self, Converting};
use super::represent::Renderer;

/// Maximum number of events that are taken from the log at a time.
const PULL_MAX: usize = 256;
/// Maximum number of bytes of one write: enough that the cost of the write is spread over many events.
const WRITE_MAX_BYTES: usize = 256 * 1024;
/// Time between the last bookmark of a stream and its end.
const BEFORE_THE_END: Duration = Duration::from_secs(2);

/// The settings of a new watch.
pub(crate) struct Opening {
    pub cluster: Arc<Cluster>,
    pub audit: Arc<UserAudit>,
    pub connection: Arc<Connection>,
    pub stream: Arc<Stream>,
    pub delivered: Arc<Delivered>,
    pub resource: Arc<Resource>,
    pub namespace: Option<String>,
    pub selector: Selector,
    pub renderer: Renderer,
    pub cursor: Cursor,
    pub initial: Option<Initial>,
    pub bookmarks: bool,
    pub lasts: Duration,
    pub ending: CancellationToken,
    /// Cancelled when the definition of the resource changes.
    pub replaced: Option<CancellationToken>,
    pub view: Arc<View>,
    /// An old state that a fault shows.
    pub stale: Option<Stale>,
}

/// A snapshot with which the stream begins.
pub(crate) struct Initial {
    pub versions: VecDeque<Arc<Version>>,
    pub revision: u64,
    /// Whether an annotated bookmark closes the snapshot.
    pub announce_end: bool,
}

pub(crate) struct WatchBody {
    o: Opening,
    request: Option<OpenRequest>,
    queue: VecDeque<Arc<Event>>,
    /// Events that a webhook is converting now.
    converting: Option<Box<Converting>>,
    /// The cursor that reads the log while a fault silences the stream, to find the events that the fault withholds.
    peek: Option<Cursor>,
    timer: Pin<Box<Sleep>>,
    next_bookmark: Instant,
    ends: Instant,
    ending: Ended,
    /// Ready when the definition of the resource changes; `None` for built-in resources.
    replaced: Option<Ended>,
    /// The revision through which the stream still sends events, after the definition of the resource changed.
    closing: Option<u64>,
    done: bool,
    /// The effects of faults on this stream; `None` if there are none.
    pipe: Option<Box<Pipe>>,
    /// How a fault will end the stream, once the written bytes have left this process.
    parting: Option<Ending>,
    settles: Option<Pin<Box<Sleep>>>,
    /// Whether the stream has nothing more to send and ends cleanly at the next poll.
    last: bool,
    /// Bytes of the stream that were made before the headers of the answer were sent.
    ready: Option<Result<Bytes, Broken>>,
    /// Whether the hit of a fault that withholds events by an old state was already counted.
    stale_noted: bool,
}

/// Ready when a token is cancelled.
type Ended = Pin<Box<WaitForCancellationFutureOwned>>;

/// The next action on a stream that has no event to send.
enum Resting {
    Bookmark,
    Over,
}

impl WatchBody {
    pub fn new(opening: Opening) -> Self {
        let now = Instant::now();
        let ends = now + opening.lasts;
        let next_bookmark = bookmark_after(now, opening.cluster.bookmarks_every, ends);
        let first = if opening.bookmarks { next_bookmark.min(ends) } else { ends };
        let ending = ended(opening.ending.clone());
        let replaced = opening.replaced.clone().map(ended);
        Self {
            o: opening,
            request: None,
            queue: VecDeque::new(),
            converting: None,
            peek: None,
            timer: Box::pin(tokio::time::sleep_until(first)),
            next_bookmark,
            ends,
            ending,
            replaced,
            closing: None,
            done: false,
            pipe: None,
            parting: None,
            settles: None,
            last: false,
            ready: None,
            stale_noted: false,
        }
    }

    /// Keeps the request counted as open while the watch exists.
    pub fn hold(&mut self, request: OpenRequest) {
        self.request = Some(request);
    }

    /// Waits for the first bytes; the next poll returns them.
    pub async fn first(&mut self) {
        // The next poll finds an end again.
        self.ready = std::future::poll_fn(|cx| self.poll_next(cx)).await;
    }

    /// The next bytes of the stream; `None` at its clean end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(ready) = self.ready.take() {
            return Poll::Ready(Some(ready));
        }
        if self.done || self.last || self.ending.as_mut().poll(cx).is_ready() {
            return self.end();
        }
        if let Some(parting) = self.parting.clone() {
            return self.finish(parting, cx);
        }
        self.note_replaced(cx);
        self.o.delivered.settle(self.o.cluster.now_us());
        loop {
            let (watch_state, effects) = self.o.stream.look(cx.waker());
            match watch_state {
                WatchState::Served => self.peek = None,
                WatchState::Over(ending) => return self.finish(ending, cx),
                WatchState::Silent(fault) => {
                    self.stay_silent(fault, cx);
                    return Poll::Pending;
                }
            }
            self.take_on(effects);
            if self.pipe.is_none() {
                return self.poll_plain(cx);
            }
            if let Some(polled) = self.poll_piped(cx) {
                return polled;
            }
        }
    }

    /// The next bytes of a stream without effects of faults.
    fn poll_plain(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(bytes) = self.initial() {
            return Poll::Ready(Some(Ok(bytes)));
        }
        if self.shares() {
            let through = self.through(cx);
            let namespace = self.o.namespace.as_deref();
            return match self.o.cluster.next_batch(self.o.resource.id, namespace, &mut self.o.cursor, through) {
                Ok(Next::Batch(batch)) => Poll::Ready(Some(Ok(self.hand_over(&batch)))),
                Ok(Next::Nothing) => self.rest(through, cx),
                Err(Lost) => self.end(),
            };
        }
        loop {
            let drained_at = match self.pull(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(drained_at)) => drained_at,
                // Too slow: the needed history is gone. The real server ends such a stream; resuming gets 410.
                Poll::Ready(Err(Lost)) => return self.end(),
            };
            if let Some(bytes) = self.write() {
                return Poll::Ready(Some(Ok(bytes)));
            }
            match drained_at {
                None => {}
                Some(revision) => return self.rest(revision, cx),
            }
        }
    }

    /// After a change of the definition the stream sends the events from before the change, then it ends.
    fn note_replaced(&mut self, cx: &mut Context<'_>) {
        if self.closing.is_some()
            || self.replaced.as_mut().is_none_or(|replaced| replaced.as_mut().poll(cx).is_pending())
        {
            return;
        }
        // A deleted definition has no revision any more.
        let changed_at = Some(self.o.cluster.serving.since(self.o.resource.id)).filter(|changed_at| *changed_at > 0);
        self.closing = changed_at.or_else(|| Some(self.o.cluster.wakers.reached()));
    }

    fn end(&mut self) -> Poll<Option<Result<Bytes, Broken>>> {
        self.done = true;
        self.tell(|request| request.ends(EndedBy::Server));
        Poll::Ready(None)
    }

    /// Updates the entry of the watch's request in the audit.
    fn tell(&mut self, what: impl FnOnce(&mut OpenRequest)) {
        if let Some(request) = &mut self.request {
            what(request);
        }
    }

    /// Records the state that this watch has shown to a cache, if the watch fills a cache.
    fn note_shown(&self, by: ShownBy, through: u64, now_us: u64) {
        let namespace = self.o.namespace.as_deref();
        self.o.cluster.audit.shown.note(&self.o.stream, namespace, by, through, now_us);
    }

    /// Records events that were written; `last` is the revision of the last one.
    fn note_sent(&mut self, events: usize, last: u64, now_us: u64) {
        self.note_shown(ShownBy::Event, last, now_us);
        self.o.stream.add_sent(events);
        self.tell(|request| request.sent(events, last, now_us));
    }

    /// Whether this stream can share encoded bytes with other streams: it has no selector, sends unchanged objects, and
    /// shows no old state because of a fault.
    fn shares(&self) -> bool {
        self.queue.is_empty() && self.o.selector.is_empty() && self.is_plain() && self.o.stale.is_none()
    }

    fn is_plain(&self) -> bool {
        self.o.renderer.is_plain() && !self.o.resource.converts()
    }

    /// The revision up to which events may be sent now; `cx` is woken when it advances. The waker is registered before
    /// the revision is read, so that no change is missed.
    fn through(&mut self, cx: &Context<'_>) -> u64 {
        self.o.cluster.wakers.wait(self.o.resource.id, self.o.stream.id, cx.waker());
        let reached = self.o.view.revision(self.o.cluster.wakers.reached());
        let reached = self.closing.map_or(reached, |closing| reached.min(closing));
        let Some(stale) = &self.o.stale else { return reached };
        let through = stale.view.revision(reached);
        if through < reached && !self.stale_noted {
            self.note_stale(reached);
        }
        through
    }

    /// Counts a hit when an old state withholds an event from this watch for the first time.
    fn note_stale(&mut self, reached: u64) {
        let (mut cursor, mut events) = (self.o.cursor, Vec::new());
        let pull = |store: &Store| store.pull(self.o.resource.id, &mut cursor, PULL_MAX, reached, &mut events);
        let first = self.o.cluster.read(pull).ok().and_then(|_| events.iter().find(|event| self.line(event).is_some()));
        if let (Some(event), Some(stale)) = (first, &self.o.stale) {
            let detail = || format!("{} does not see revision {}", self.o.stream.describe(), event.version.revision);
            self.stale_noted = stale.active.hit(detail);
        }
    }

    /// Records in the audit that this stream sends a batch, and returns the batch's bytes.
    fn hand_over(&mut self, batch: &Arc<Batch>) -> Bytes {
        let now_us = self.o.cluster.now_us();
        self.o.delivered.handed(batch.last(), now_us);
        self.o.audit.sent_batch(self.o.stream.id, self.o.resource.id, now_us, batch);
        self.note_sent(batch.revisions().len(), batch.last(), now_us);
        batch.bytes().clone()
    }

    /// Moves events from the log into the stream's queue; returns the revision up to which the log has no further
    /// event.
    fn pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Lost>> {
        if !self.queue.is_empty() {
            return Poll::Ready(Ok(None));
        }
        if let Some(converting) = &mut self.converting {
            let Poll::Ready(converted) = converting.poll_join_next(cx) else { return Poll::Pending };
            self.converting = None;
            // `None` means that the time of the conversion, and of the watch, is up.
            let Some(Ok(Some(events))) = converted else { return Poll::Ready(Err(Lost)) };
            self.queue = events;
            return Poll::Ready(Ok(None));
        }
        let through = self.through(cx);
        let mut events = Vec::new();
        let (id, cursor) = (self.o.resource.id, &mut self.o.cursor);
        let pull = |store: &Store| store.pull(id, cursor, PULL_MAX, through, &mut events);
        let revision = match self.o.cluster.read(pull) {
            Ok(revision) => revision,
            Err(lost) => return Poll::Ready(Err(lost)),
        };
        let drained = events.len() < PULL_MAX;
        if !events.is_empty() && self.o.resource.converts() {
            let converting = conversion::begin(&self.o.cluster, &self.o.resource, events, self.ends);
            self.converting = Some(Box::new(converting));
            return self.pull(cx);
        }
        self.queue.extend(events);
        Poll::Ready(Ok(drained.then_some(revision)))
    }

    /// Encodes the queued events as one write.
    fn write(&mut self) -> Option<Bytes> {
        let mut pieces: Vec<(u64, Bytes)> = Vec::new();
        let mut size = 0;
        while size < WRITE_MAX_BYTES {
            let Some(event) = self.queue.pop_front() else { break };
            let Some((_, line)) = self.line(&event) else { continue };
            let revision = event.version.revision;
            size += line.len();
            pieces.push((revision, line));
        }
        let last = pieces.last()?.0;
        let now_us = self.o.cluster.now_us();
        self.o.delivered.handed(last, now_us);
        let (id, resource) = (self.o.stream.id, self.o.resource.id);
        self.o.audit.sent(id, resource, now_us, pieces.iter().map(|(revision, line)| (*revision, line)));
        self.note_sent(pieces.len(), last, now_us);
        if pieces.len() == 1 {
            return pieces.pop().map(|(_, line)| line);
        }
        let mut together = BytesMut::with_capacity(size);
        for (_, line) in &pieces {
            together.extend_from_slice(line);
        }
        Some(together.freeze())
    }

    /// The line that this stream sends for an event; `None` if the selector excludes the object.
    fn line(&self, event: &Event) -> Option<(Change, Bytes)> {
        let version = &event.version;
        if self.o.namespace.as_deref().is_some_and(|namespace| namespace != &*version.identity.namespace) {
            return None;
        }
        if self.o.selector.is_empty() {
            return Some((event.change, self.shown(event.change, version, event.change)));
        }
        let selects = |version: &Version| self.o.selector.matches(version);
        let before = event.previous.as_deref().is_some_and(selects);
        let now = event.change != Change::Deleted && selects(version);
        match (before, now) {
            (false, false) => None,
            (false, true) => Some((Change::Added, self.shown(event.change, version, Change::Added))),
            (true, true) => Some((Change::Modified, self.shown(event.change, version, Change::Modified))),
            (true, false) if event.change == Change::Deleted => {
                Some((Change::Deleted, self.shown(Change::Deleted, version, Change::Deleted)))
            }
            // The object left the selection: its last selected state, under the revision of the change.
            (true, false) => {
                let mut last = event.previous.as_ref()?.value();
                last["metadata"]["resourceVersion"] = Value::String(version.revision.to_string());
                Some((Change::Deleted, framed(Change::Deleted, &self.o.renderer.value(&last))))
            }
        }
    }

    fn shown(&self, written: Change, version: &Version, change: Change) -> Bytes {
        if !self.o.renderer.is_plain() {
            return framed(change, &self.o.renderer.object(version));
        }
        if written == change { version.frame() } else { framed(change, &version.object()) }
    }

    /// The next write of the initial snapshot.
    fn initial(&mut self) -> Option<Bytes> {
        let initial = self.o.initial.as_mut()?;
        let mut out = BytesMut::new();
        let mut pieces: Vec<(u64, Bytes)> = Vec::new();
        while out.len() < WRITE_MAX_BYTES {
            let Some(version) = initial.versions.pop_front() else { break };
            let line = framed(Change::Added, &self.o.renderer.object(&version));
            out.extend_from_slice(&line);
            pieces.push((version.revision, line));
        }
        let now_us = self.o.cluster.now_us();
        self.o.audit.list_encoded(out.len());
        let (id, resource) = (self.o.stream.id, self.o.resource.id);
        self.o.audit.sent(id, resource, now_us, pieces.iter().map(|(revision, line)| (*revision, line)));
        if let (Some(request), Some(newest)) = (&mut self.request, pieces.iter().map(|(revision, _)| *revision).max()) {
            request.sent(pieces.len(), newest, now_us);
        }
        self.o.stream.add_sent(pieces.len());
        if initial.versions.is_empty() {
            let (revision, announce) = (initial.revision, initial.announce_end);
            self.o.initial = None;
            if announce {
                if let Some(request) = &mut self.request {
                    request.bookmarked(revision);
                }
                out.extend_from_slice(&bookmark(&self.o.renderer, revision, true));
            }
            self.o.delivered.handed(revision, now_us);
            self.note_shown(ShownBy::Snapshot, revision, now_us);
        }
        Some(out.freeze()).filter(|out| !out.is_empty())
    }

    /// Sends a bookmark or ends the stream when there is no event to send.
    fn rest(&mut self, revision: u64, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match self.resting(revision, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Resting::Over) => self.end(),
            Poll::Ready(Resting::Bookmark) => {
                let now_us = self.o.cluster.now_us();
                self.o.delivered.handed(revision, now_us);
                self.note_shown(ShownBy::Event, revision, now_us);
                if let Some(request) = &mut self.request {
                    request.bookmarked(revision);
                }
                Poll::Ready(Some(Ok(bookmark(&self.o.renderer, revision, false))))
            }
        }
    }

    fn resting(&mut self, revision: u64, cx: &mut Context<'_>) -> Poll<Resting> {
        if self.closing.is_some() {
            return Poll::Ready(Resting::Over);
        }
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= self.ends {
                return Poll::Ready(Resting::Over);
            }
            let due = self.o.bookmarks && now >= self.next_bookmark;
            if due {
                self.next_bookmark = bookmark_after(now, self.o.cluster.bookmarks_every, self.ends);
            }
            let next = if self.o.bookmarks { self.next_bookmark.min(self.ends) } else { self.ends };
            self.timer.as_mut().reset(next);
            // After a restore a bookmark would take the client back; it must never do that.
            if due && revision >= self.o.cursor.after() {
                return Poll::Ready(Resting::Bookmark);
            }
        }
    }

    /// Sends nothing, not even the end of the stream; records the events that the fault suppresses.
    fn stay_silent(&mut self, fault: FaultId, cx: &mut Context<'_>) {
        self.o.cluster.wakers.wait(self.o.resource.id, self.o.stream.id, cx.waker());
        let mut events: Vec<Arc<Event>> = Vec::new();
        let mut cursor = self.peek.unwrap_or(self.o.cursor);
        let cluster = &self.o.cluster;
        loop {
            let before = events.len();
            let pull = |store: &Store| {
                let seen = self.o.view.revision(store.revision());
                let through = self.o.stale.as_ref().map_or(seen, |stale| stale.view.revision(seen));
                store.pull(self.o.resource.id, &mut cursor, PULL_MAX, through, &mut events)
            };
            let pulled = cluster.read(pull);
            if pulled.is_err() || events.len() == before {
                break;
            }
            for event in events.drain(..) {
                if self.line(&event).is_some() {
                    let revision = event.version.revision;
                    cluster.faults.withheld(fault, &self.o.stream, revision);
                    self.o.audit.withheld(self.o.stream.id, self.o.resource.id, revision, cluster.now_us(), fault);
                }
            }
        }
        self.peek = Some(cursor);
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        let by = if self.done { ShownBy::Ended } else { ShownBy::Left };
        self.note_shown(by, 0, self.o.cluster.now_us());
        self.o.cluster.wakers.forget(self.o.resource.id, self.o.stream.id);
        self.o.cluster.faults.closed(self.o.stream.id);
        self.o.audit.watch_closed();
    }
}

fn ended(token: CancellationToken) -> Ended {
    Box::pin(token.cancelled_owned())
}

fn bookmark(renderer: &Renderer, revision: u64, ends_initial: bool) -> Bytes {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if ends_initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let object = renderer.bookmark(&mut metadata);
    let mut line = br#"{"type":"BOOKMARK","object":"#.to_vec();
    line.extend_from_slice(&Ordered(&object).to_bytes());
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// The time of the next bookmark. Bookmarks come at fixed intervals, and once just before the stream ends, as in
/// kube-apiserver's watch cache, so that a returning client can resume there.
fn bookmark_after(now: Instant, every: Duration, ends: Instant) -> Instant {
    let last = ends.checked_sub(BEFORE_THE_END).filter(|last| *last > now);
    last.map_or(now + every, |last| last.min(now + every))
}

fn framed(change: Change, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(mock_store::head(change).len() + object.len() + 2);
    line.extend_from_slice(mock_store::head(change));
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.freeze()
}
