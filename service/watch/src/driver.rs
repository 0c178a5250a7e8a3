//! The driver of a watch: sends the requests that the state machine wants to the API server, and passes the answers
//! back.
//!
//! This module owns the sockets, clocks and pauses of the watch and decides nothing about objects. The driver repeats
//! failed requests without end. Between two watch requests lie at least [`OPEN_GAP`], whatever the server does.

mod list;
mod streamed;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rand::RngExt as _;
use tokio::time::{Instant, sleep, sleep_until};

use super::backoff::Backoff;
use super::decode::Lines;
use super::diagnostics::Diagnostics;
use super::machine::{Applied, Event, Line, Listing, Machine, Next, Reason, Settled};
use super::object::Kind;
use super::source::{Source, encode};
use super::store::Store;
use super::witness::Witness;
use crate::config;
use list::ListError;
use service_core::kube::{Client, LIST_PAGE};
use service_core::wire::{self, Stream};

/// Shortest time between two watch requests. Even if every stream ends at once, the server gets fewer than two watch
/// requests per second.
const OPEN_GAP: Duration = Duration::from_millis(600);
/// Shortest pause after a watch stream that ended without a byte.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);
/// A watch stream that lasted this long counts as working, even without events.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// Time for which a list beside the watch waits until the watch has reached the list's version. A watch that takes
/// longer has lost events.
const SETTLE_GRACE: Duration = Duration::from_secs(10);
/// Shortest pause after the server sent a list that is older than the view. The actual pause is random and at most
/// twice as long, so that clients do not list at the same time. Several lists over some seconds are needed to prove
/// that the server was reset to an older state.
const OLDER_PAUSE: Duration = Duration::from_secs(1);
/// Shortest time between two lists that are requested because a stream has old events: the server may repeat old events
/// for ever.
const DOUBT_GAP: Duration = Duration::from_secs(10);
/// After this many failed streamed lists in a row, one list is requested in pages, because a proxy may not support
/// streamed lists.
const STREAMED_FAILURES_MAX: u32 = 3;
/// Pause after a failed list that ran beside the watch.
const SIDE_RETRY: Duration = Duration::from_secs(30);

/// The future that a sink returns if it cannot take more events yet; `None` if it can.
pub type Backpressure = Option<BoxFuture<'static, ()>>;

/// A function that takes every accepted event and must not block. If it returns a future, the watch waits for the
/// future and reads no further events from the server. No event is dropped.
pub type Sink<K> = Box<dyn Fn(&Event<K>) -> Backpressure + Send>;

pub struct Parts<K> {
    pub source: Source,
    pub settings: config::Watch,
    pub client: Arc<Client>,
    pub store: Store<K>,
    pub diagnostics: Arc<Diagnostics<K>>,
    pub witness: Witness,
    pub sink: Sink<K>,
}

pub struct Driver<K> {
    parts: Parts<K>,
    machine: Machine<K>,
    backoff: Backoff,
    page: u32,
    /// Whether the server supports only lists in pages.
    paged: bool,
    /// Number of failed streamed lists in a row.
    streamed_failures: u32,
    opened: Option<Instant>,
    relist_due: Instant,
    doubt_after: Instant,
    side: Option<BoxFuture<'static, Result<Listing<K>, ListError>>>,
    settling: Option<(Listing<K>, Instant)>,
}

/// The reason why the loop that reads a stream woke up.
enum Wake<K> {
    Chunk(Result<Option<bytes::Bytes>, wire::Error>),
    Silent,
    SideDue,
    SideListed(Result<Listing<K>, ListError>),
    SettleDue,
}

struct Progress {
    opened: Instant,
    bytes: bool,
    lines: bool,
}

impl<K: Kind> Driver<K> {
    pub fn new(parts: Parts<K>) -> Self {
        let backoff = Backoff::new(parts.settings.backoff_initial, parts.settings.backoff_max);
        let relist_due = Instant::now() + parts.settings.relist_interval;
        let machine = Machine::new(parts.store.clone());
        Self {
            paged: !parts.source.streamed,
            streamed_failures: 0,
            parts,
            machine,
            backoff,
            page: LIST_PAGE,
            opened: None,
            relist_due,
            doubt_after: Instant::now(),
            side: None,
            settling: None,
        }
    }

    pub async fn run(mut self) {
        loop {
            match self.machine.next() {
                Next::List { reason, at_least } => self.list(reason, at_least).await,
                Next::Watch { from } => self.watch(&from).await,
            }
            self.parts.diagnostics.position(self.machine.position(), self.machine.repeats);
        }
    }

    async fn list(&mut self, reason: Reason, at_least: Option<Box<str>>) {
        if !self.paged && self.streamed_failures < STREAMED_FAILURES_MAX {
            return self.streamed_list(reason, at_least).await;
        }
        let work = list::collect(
            self.parts.source.clone(),
            Arc::clone(&self.parts.client),
            self.parts.store.clone(),
            Arc::clone(&self.parts.diagnostics),
            at_least,
            self.page,
        );
        let listing = match work.await {
            Ok(listing) => listing,
            Err(error) => {
                self.page = error.next_page(self.page);
                self.machine.list_failed();
                let what = format!("list ({}): {error}", reason.name());
                if error.is_ahead() {
                    return self.older(what).await;
                }
                return self.failed(what, error.retry_after()).await;
            }
        };
        self.streamed_failures = 0;
        self.adopt(reason, listing).await;
    }

    /// Requests a list by a watch request (streamed list), and reads later events from the same stream.
    async fn streamed_list(&mut self, reason: Reason, at_least: Option<Box<str>>) {
        if let Some(opened) = self.opened {
            sleep_until(opened + OPEN_GAP).await;
        }
        self.opened = Some(Instant::now());
        let Parts { source, client, store, diagnostics, settings, .. } = &self.parts;
        let list =
            streamed::collect(source, client, store, diagnostics, at_least.as_deref(), settings.server_timeout).await;
        match list {
            Ok((listing, stream, lines)) => {
                self.streamed_failures = 0;
                self.parts.diagnostics.stream_opened();
                if self.adopt(reason, listing).await {
                    self.stream(stream, lines).await;
                } else {
                    self.parts.diagnostics.stream_ended("stale");
                }
            }
            Err(error) => {
                self.machine.list_failed();
                self.streamed_failures += 1;
                let what = format!("streamed list ({}): {error}", reason.name());
                if error.is_ahead() {
                    return self.older(what).await;
                }
                if error.is_unknown() {
                    self.paged = true;
                    return self.parts.diagnostics.failed(format!("{what}; pages are asked for from now on"));
                }
                self.failed(what, error.retry_after()).await;
            }
        }
    }

    /// Makes a list the new view; returns whether the list was used.
    async fn adopt(&mut self, reason: Reason, listing: Listing<K>) -> bool {
        let (version, items) = (listing.version.clone(), listing.items.len());
        let mut events = Vec::new();
        let reason = match self.machine.list(listing, Instant::now().into_std(), &mut events) {
            Applied::Stale => {
                self.older(format!("list at {version} is older than what is known")).await;
                return false;
            }
            Applied::Rewound => self.rewound(&version),
            Applied::Yes => reason,
        };
        self.page = LIST_PAGE;
        self.drop_side();
        self.parts.diagnostics.applied_list(reason, items, events.len());
        self.deliver(&mut events).await;
        true
    }

    async fn watch(&mut self, from: &str) {
        if let Some(opened) = self.opened {
            sleep_until(opened + OPEN_GAP).await;
        }
        self.opened = Some(Instant::now());
        let query = format!(
            "watch=true&resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds={}",
            encode(from),
            self.parts.settings.server_timeout.as_secs()
        );
        match streamed::open(&self.parts.client, &self.parts.source, &query).await {
            Ok(stream) => {
                self.parts.diagnostics.stream_opened();
                self.stream(stream, Lines::default()).await;
            }
            Err(error) if error.status() == Some(http::StatusCode::GONE) => {
                self.machine.expired();
                self.lost_position("refused-410").await;
            }
            Err(error) if error.is_ahead() => {
                self.parts.diagnostics.failed(format!("watch from {from}: {error}"));
                self.machine.ahead();
                self.lost_position("refused-ahead").await;
            }
            Err(error) => {
                self.parts.diagnostics.stream_ended("refused");
                self.machine.fruitless();
                self.failed(format!("watch from {from}: {error}"), error.retry_after()).await;
            }
        }
    }

    /// Reads one watch stream to its end, then pauses as long as the kind of end requires.
    async fn stream(&mut self, mut stream: Stream, mut lines: Lines) {
        let mut progress = Progress { opened: Instant::now(), bytes: false, lines: false };
        // The list at the start of this stream may have ended in the middle of a chunk.
        if let Some(over) = self.lines(&mut lines, &mut progress).await {
            drop(stream);
            return self.over(over, &progress).await;
        }
        let mut silent_at = Instant::now() + self.parts.settings.silence_limit;
        loop {
            match self.wake(&mut stream, silent_at).await {
                Wake::Chunk(Ok(Some(chunk))) => {
                    silent_at = Instant::now() + self.parts.settings.silence_limit;
                    progress.bytes = true;
                    lines.push(&chunk);
                    let over = self.lines(&mut lines, &mut progress).await;
                    // The stream is closed before the pause: a server that holds it open must not block us.
                    if let Some(over) = over {
                        drop(stream);
                        return self.over(over, &progress).await;
                    }
                    if self.settle(false).await {
                        return;
                    }
                }
                Wake::Chunk(Ok(None)) => return self.clean_end(&lines, &progress).await,
                Wake::Chunk(Err(error)) => {
                    self.parts.diagnostics.stream_ended("broken");
                    return self.broken(format!("watch broke: {error}"), &progress).await;
                }
                Wake::Silent => {
                    drop(stream);
                    self.parts.client.forget_connections();
                    self.parts.diagnostics.stream_ended("silent");
                    let limit = self.parts.settings.silence_limit.as_secs_f64();
                    return self.broken(format!("no byte for {limit} s: torn down"), &progress).await;
                }
                Wake::SideDue => self.begin_side(),
                Wake::SideListed(Ok(listing)) => {
                    self.side = None;
                    self.settling = Some((listing, Instant::now() + SETTLE_GRACE));
                    if self.settle(false).await {
                        return;
                    }
                }
                Wake::SideListed(Err(error)) => {
                    self.parts.diagnostics.failed(format!("list beside the watch: {error}"));
                    self.drop_side();
                    self.relist_due = Instant::now() + SIDE_RETRY.min(self.parts.settings.relist_interval);
                }
                Wake::SettleDue => {
                    if self.settle(true).await {
                        return;
                    }
                }
            }
        }
    }

    async fn wake(&mut self, stream: &mut Stream, silent_at: Instant) -> Wake<K> {
        let side_idle = self.side.is_none() && self.settling.is_none();
        let settle_at = self.settling.as_ref().map(|(_, at)| *at);
        let relist_due = self.relist_due;
        tokio::select! {
            chunk = stream.chunk() => Wake::Chunk(chunk),
            () = sleep_until(silent_at) => Wake::Silent,
            () = sleep_until(relist_due), if side_idle => Wake::SideDue,
            listing = async { self.side.as_mut().expect("checked by the condition").await }, if self.side.is_some() => {
                Wake::SideListed(listing)
            }
            () = sleep_until(settle_at.unwrap_or(silent_at)), if settle_at.is_some() => Wake::SettleDue,
        }
    }

    /// Passes complete lines to the state machine and delivers the accepted events; returns the line that ends the
    /// stream, if such a line came.
    async fn lines(&mut self, lines: &mut Lines, progress: &mut Progress) -> Option<Line> {
        let mut events = Vec::new();
        let mut over = None;
        while let Some(line) = lines.next_line() {
            let result = match line {
                Ok(line) => self.machine.line(&line, &mut events),
                Err(error) => Line::Malformed(error.to_string()),
            };
            if result != Line::Continue {
                over = Some(result);
                break;
            }
            progress.lines = true;
        }
        if progress.lines {
            self.backoff.reset();
        }
        self.deliver(&mut events).await;
        let now = Instant::now();
        if self.machine.take_doubt() && now >= self.doubt_after {
            self.doubt_after = now + DOUBT_GAP;
            self.relist_due = self.relist_due.min(now);
        }
        self.parts.diagnostics.progress();
        self.parts.diagnostics.position(self.machine.position(), self.machine.repeats);
        over
    }

    /// Handles a line by which the server ended the stream.
    async fn over(&mut self, over: Line, progress: &Progress) {
        match over {
            Line::Continue => {}
            Line::Expired => self.lost_position("expired").await,
            Line::Ahead => self.lost_position("ahead").await,
            Line::Failed { code, retry_after_s, message } => {
                self.parts.diagnostics.stream_ended("error");
                if !progress.lines {
                    self.machine.fruitless();
                }
                self.failed(format!("watch: {code} {message}"), retry_after_s.map(Duration::from_secs)).await;
            }
            Line::Malformed(what) => {
                self.parts.diagnostics.stream_ended("malformed");
                if !progress.lines {
                    self.machine.fruitless();
                }
                self.failed(format!("watch: {what}"), None).await;
            }
        }
    }

    /// Handles a server that cannot continue from the watch's version, because the version is expired or not reached
    /// yet. After the first such answer, a list follows at once; after an answer without progress since the previous
    /// one, a pause comes first.
    async fn lost_position(&mut self, how: &'static str) {
        self.parts.diagnostics.stream_ended(how);
        self.drop_side();
        let again = self.backoff.failures() > 0;
        let pause = self.backoff.next(rand::rng().random(), None);
        if again {
            sleep(pause).await;
        }
    }

    async fn clean_end(&mut self, lines: &Lines, progress: &Progress) {
        self.parts.diagnostics.stream_ended(if lines.is_torn() { "torn" } else { "ended" });
        if progress.opened.elapsed() >= HEALTHY_AFTER {
            self.backoff.reset();
        } else if !progress.bytes {
            self.machine.empty_stream();
            sleep(EMPTY_PAUSE).await;
        }
    }

    async fn broken(&mut self, what: String, progress: &Progress) {
        if progress.lines {
            // The stream worked until now: resume at once, paced by the gap between requests.
            self.parts.diagnostics.failed(what);
        } else {
            self.machine.fruitless();
            self.failed(what, None).await;
        }
    }

    async fn failed(&mut self, what: String, retry_after: Option<Duration>) {
        self.parts.diagnostics.failed(what);
        let pause = self.backoff.next(rand::rng().random(), retry_after);
        sleep(pause).await;
    }

    /// Handles an answer that is older than the view; `what` describes the answer.
    async fn older(&mut self, what: String) {
        self.parts.diagnostics.failed(what);
        sleep(older_pause()).await;
    }

    fn rewound(&self, to: &str) -> Reason {
        let lists = "all lists for some time were older than what is known";
        self.parts.diagnostics.failed(format!("the server went back to {to}: {lists}; starting over from there"));
        Reason::Rewound
    }

    async fn deliver(&mut self, events: &mut Vec<Event<K>>) {
        for event in events.drain(..) {
            self.parts.diagnostics.event(&event);
            self.parts.witness.saw(&event).await;
            if let Some(room) = (self.parts.sink)(&event) {
                self.parts.diagnostics.waiting(room).await;
            }
        }
    }

    fn begin_side(&mut self) {
        self.machine.begin_side();
        self.side = Some(Box::pin(list::collect(
            self.parts.source.clone(),
            Arc::clone(&self.parts.client),
            self.parts.store.clone(),
            Arc::clone(&self.parts.diagnostics),
            None,
            LIST_PAGE,
        )));
    }

    fn drop_side(&mut self) {
        self.machine.cancel_side();
        (self.side, self.settling) = (None, None);
        self.relist_due = Instant::now() + self.parts.settings.relist_interval;
    }

    /// Compares the list beside the watch with the view as soon as the watch has reached the list's version, or at once
    /// with `force`. Returns whether the watch has lost events and must be opened again.
    async fn settle(&mut self, force: bool) -> bool {
        let ready = |(listing, _): &mut (Listing<K>, Instant)| force || self.machine.caught_up(listing);
        let Some((listing, _)) = self.settling.take_if(ready) else { return false };
        let (version, items) = (listing.version.clone(), listing.items.len());
        let mut events = Vec::new();
        let settled = self.machine.settle_side(listing, Instant::now().into_std(), &mut events);
        self.drop_side();
        let (reason, differences, ended) = match settled {
            Settled::Agrees => (Reason::Interval, 0, None),
            Settled::Older => {
                self.relist_due = Instant::now() + older_pause();
                self.parts
                    .diagnostics
                    .failed(format!("list beside the watch at {version} is older than what is known"));
                return false;
            }
            Settled::Lost(lost) => {
                self.parts.diagnostics.lost(lost as u64);
                self.parts.diagnostics.failed(format!("the watch had lost {lost} events"));
                (Reason::Interval, lost, Some("lossy"))
            }
            Settled::Rewound(differences) => (self.rewound(&version), differences, Some("rewound")),
        };
        self.parts.diagnostics.applied_list(reason, items, differences);
        self.deliver(&mut events).await;
        if let Some(how) = ended {
            self.parts.diagnostics.stream_ended(how);
        }
        ended.is_some()
    }
}

fn older_pause() -> Duration {
    OLDER_PAUSE.mul_f64(1.0 + rand::rng().random::<f64>())
}
