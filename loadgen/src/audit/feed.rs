//! The running watch: connects, reads, resumes, and lists again if the server has forgotten the last version.
//!
//! Owns the order of commits and the limits after which the audit gives up. [`History`] interprets the events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::event::{self, Event, Object};
use super::history::History;
use super::lines::Lines;
use super::link::{Failed, Link, List};
use super::queue::Queue;
use super::{Config, Entry, Hole, Source};
use crate::failure::chain;
use facts::{Change, Commit, Order};

/// The shortest pause between attempts to connect; pauses grow up to [`PAUSE_LONGEST`].
const PAUSE_SHORTEST: Duration = Duration::from_millis(50);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);
/// Maximum number of watches in a row that bring no event and do not end cleanly. After that many such watches the
/// audit lists again.
const FRUITLESS_MAX: u32 = 5;
/// Maximum number of gaps that are kept in full; further gaps are only counted.
const HOLES_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Shared {
    /// The name of the resource in commits: `packages.longhaul.dev`.
    pub resource: Arc<str>,
    pub queue: Queue,
    pub state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub history: History,
    pub order: Order,
    pub bookmarks: u64,
    pub resumes: u64,
    pub holes: Vec<Hole>,
    pub holes_total: u64,
}

pub(super) struct Feed {
    pub link: Link,
    pub config: Config,
    pub shared: Arc<Shared>,
    /// The version from which the next watch starts.
    pub resource_version: String,
    /// The time of the last answer or event of the control plane.
    pub heard: Instant,
    /// The time since which no watch was opened or valid.
    trouble_since: Option<Instant>,
    fruitless: u32,
    pause: Duration,
}

/// How a watch ended.
enum Turn {
    /// The watch was open, and ended or was silent too long. The text is the reason, for log lines.
    Ended(String),
    /// The watch could not be opened.
    Unopened(String),
    /// The data received on the watch is invalid.
    Broken(String),
    /// The server does not know the last version any more.
    Expired(String),
}

impl Shared {
    /// Gives the changes their order numbers and puts them into the queue for the reader.
    fn publish(&self, state: &mut State, at: Instant, source: Source, changes: Vec<(Change, Object)>) {
        let entries = changes.into_iter().map(|(change, object)| {
            state.order = state.order.next();
            let commit = Commit {
                order: state.order,
                resource: Arc::clone(&self.resource),
                namespace: object.namespace.into(),
                name: object.name.into(),
                uid: object.uid.into(),
                revision: object.resource_version.into(),
                change,
            };
            Entry { at, commit, progress: object.progress, images: object.images, fields: object.fields, source }
        });
        self.queue.push(entries);
    }

    /// Takes over a list, either the first one or one after a gap, and returns the number of objects that changed.
    pub(super) fn relist(&self, at: Instant, source: Source, list: List) -> u64 {
        let mut state = self.state.lock();
        let changes = state.history.relist(list.objects, &list.resource_version);
        let count = changes.len() as u64;
        self.publish(&mut state, at, source, changes);
        count
    }
}

impl Feed {
    pub(super) fn new(link: Link, config: Config, shared: Arc<Shared>, resource_version: String) -> Self {
        let (heard, pause) = (Instant::now(), PAUSE_SHORTEST);
        Self { link, config, shared, resource_version, heard, trouble_since: None, fruitless: 0, pause }
    }

    /// Runs until the control plane is away for too long. Dropping the future ends the watch.
    pub(super) async fn run(mut self) {
        loop {
            let turn = self.stream().await;
            self.shared.state.lock().resumes += 1;
            let (healthy, reason) = match turn {
                Turn::Ended(reason) => (true, reason),
                Turn::Unopened(reason) => (false, reason),
                Turn::Broken(reason) => {
                    self.fruitless += 1;
                    let why = format!("{FRUITLESS_MAX} streams in a row brought no event: {reason}");
                    (self.fruitless >= FRUITLESS_MAX && self.relist(&why).await, reason)
                }
                Turn::Expired(reason) => (self.relist(&reason).await, reason),
            };
            tracing::debug!(reason, "the audit's watch is opened again");
            let since = *self.trouble_since.get_or_insert_with(Instant::now);
            if healthy {
                self.trouble_since = None;
            } else if since.elapsed() >= self.config.outage_limit {
                let waited = self.config.outage_limit.as_secs();
                self.shared.queue.lose(format!("no watch worked for {waited} s: {reason}"));
                return;
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSE_LONGEST);
        }
    }

    /// Runs one watch from its request until it ends.
    async fn stream(&mut self) -> Turn {
        let mut session = match self.link.open().await {
            Ok(session) => session,
            Err(failed) => return Turn::Unopened(failed.to_string()),
        };
        let watch = self.link.watch(&mut session, &self.resource_version, self.config.stream_s);
        let mut body = match watch.await {
            Ok(body) => body,
            Err(Failed::Status { status: StatusCode::GONE, message }) => return Turn::Expired(message),
            Err(failed) => return Turn::Unopened(failed.to_string()),
        };
        self.heard = Instant::now();
        let mut lines = Lines::default();
        loop {
            let frame = match tokio::time::timeout(self.config.silence_limit, next(&mut body)).await {
                Ok(Ok(Some(frame))) => frame,
                // An unended line is sent again: the resumed version is before it.
                Ok(Ok(None)) => return Turn::Ended("the stream ended".to_owned()),
                Ok(Err(reason)) => return Turn::Ended(reason),
                Err(_) => return Turn::Ended("the stream was silent".to_owned()),
            };
            let at = Instant::now();
            if let Err(error) = lines.push(&frame) {
                return Turn::Broken(error.to_string());
            }
            while let Some(line) = lines.next_line() {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                match event::event(line, self.link.wanted()) {
                    Ok(event) => {
                        if let Some(turn) = self.take(at, event) {
                            return turn;
                        }
                    }
                    Err(error) => return Turn::Broken(error.to_string()),
                }
            }
        }
    }

    /// Handles an event; if the event ends the watch, returns how.
    fn take(&mut self, at: Instant, event: Event) -> Option<Turn> {
        let mut state = self.shared.state.lock();
        match event {
            Event::Object(change, object) => {
                self.resource_version.clone_from(&object.resource_version);
                if state.history.event(change, &object) {
                    self.shared.publish(&mut state, at, Source::Watched, vec![(change, object)]);
                }
            }
            Event::Bookmark(resource_version) => {
                self.resource_version = resource_version;
                state.bookmarks += 1;
            }
            Event::Failed { code, message } if code == i64::from(StatusCode::GONE.as_u16()) => {
                return Some(Turn::Expired(message));
            }
            Event::Failed { code, message } => return Some(Turn::Broken(format!("ERROR {code}: {message}"))),
        }
        drop(state);
        self.heard = at;
        self.trouble_since = None;
        self.fruitless = 0;
        self.pause = PAUSE_SHORTEST;
        None
    }

    /// Lists again, takes over the changes, and reports the gap. If this list fails, returns `false`; the end of the
    /// next watch then leads to another list.
    async fn relist(&mut self, reason: &str) -> bool {
        let list = match self.link.list().await {
            Ok(list) => list,
            Err(failed) => {
                tracing::debug!(%failed, "the audit's list failed");
                return false;
            }
        };
        let at = Instant::now();
        let relisted = list.resource_version.clone();
        let changes = self.shared.relist(at, Source::Relisted, list);
        let after = std::mem::replace(&mut self.resource_version, relisted.clone());
        let hole = Hole { from: self.heard, until: at, after, relisted, changes, reason: reason.to_owned() };
        tracing::warn!(%hole, "the audit has a gap");
        if self.config.tells_holes {
            self.shared.queue.tell(hole.clone());
        }
        let mut state = self.shared.state.lock();
        state.holes_total += 1;
        if state.holes.len() < HOLES_MAX {
            state.holes.push(hole);
        }
        drop(state);
        self.heard = at;
        self.fruitless = 0;
        true
    }
}

/// The next data of a watch; `None` at its end.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(format!("the stream broke off: {}", chain(&error))),
            Some(Ok(frame)) => {
                // Trailers carry nothing here.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
