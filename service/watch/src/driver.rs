//! The driver of a watch: sends the machine's requests to the API server and returns the answers.
//!
//! This module owns the sockets, clocks and pauses of the watch. It decides nothing about objects. It never gives up
//! and never hurries: two watch requests are at least [`OPEN_GAP`] apart, whatever the server does.

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

/// Least time between two watch requests: fewer than two per second, even if each stream ends at once.
const OPEN_GAP: Duration = Duration::from_millis(600);
/// Least pause after a stream that ended without a byte.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);
/// A stream that lived this long worked, even if it carried nothing.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// How long a list next to the watch waits for the watch to catch up; a watch that is later than this has lost
/// something.
const SETTLE_GRACE: Duration = Duration::from_secs(10);
/// Least pause after a list that is older than the view; at most twice as long, so that clients do not act in step.
/// Proof that the server went back takes some lists and some seconds, and until then the view cannot be trusted.
const OLDER_PAUSE: Duration = Duration::from_secs(1);
/// Least time between two lists caused by a stream with old events: the server may repeat itself for ever.
const DOUBT_GAP: Duration = Duration::from_secs(10);
/// Failed lists by watch in a row before one list is requested in pages: a proxy in between may not support them.
const STREAMED_FAILURES_MAX: u32 = 3;
/// Pause after a failed list next to the watch.
const SIDE_RETRY: Duration = Duration::from_secs(30);

/// The room that a sink has to make before it takes more events; `None` if it has enough.
pub type Backpressure = Option<BoxFuture<'static, ()>>;

/// Takes every accepted event. It must not block; the watch waits for the room that it asks for, and so does the
/// server. No event is dropped.
pub type Sink<K> = Box<dyn Fn(&Event<K>) -> Backpressure + Send>;

pub struct Parts<K> {
    pub source: Source,
    pub settings: config::Watch,
    pub client: Arc<Client>,
    /// The machine's object store.
    pub store: Store<K>,
    pub diagnostics: Arc<Diagnostics<K>>,
    /// Receiver of observations.
    pub witness: Witness,
    /// Receiver of accepted events.
    pub sink: Sink<K>,
}

pub struct Driver<K> {
    parts: Parts<K>,
    machine: Machine<K>,
    backoff: Backoff,
    page: u32,
    /// The server cannot list by a watch.
    paged: bool,
    /// Failed lists by watch in a row.
    streamed_failures: u32,
    opened: Option<Instant>,
    relist_due: Instant,
    doubt_after: Instant,
    side: Option<BoxFuture<'static, Result<Listing<K>, ListError>>>,
    settling: Option<(Listing<K>, Instant)>,
}

/// Why the stream loop woke up.
enum Wake<K> {
    Chunk(Result<Option<bytes::Bytes>, wire::Error>),
    Silent,
    SideDue,
    SideListed(Result<Listing<K>, ListError>),
    SettleDue,
}

/// The progress of one stream.
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

    /// Lists and watches until dropped.
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

    /// Lists by a watch, and continues with its stream.
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

    /// Makes a list the view; returns whether it was used.
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

    /// Reads one stream to its end, then makes the pause that fits the end.
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

    /// Passes every complete line to the machine and delivers the accepted events; returns why the stream is over, if
    /// it is.
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

    /// Handles a line with which the server ended the stream.
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

    /// The server cannot continue from the position: it is out of history, or not reached. The first time, a list
    /// follows at once; further times without progress are followed by a pause.
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

    /// The server that answered is behind the view.
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

    /// Compares the list next to the watch once the watch has caught up, or if `force` ends the wait. Returns whether
    /// the watch has lost something and must be opened again.
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
