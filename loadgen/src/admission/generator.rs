//! A generator thread: sends the requests of the plan that belong to it over its own connections, and records the
//! answers.
//!
//! A generator is one thread with one poll, no async tasks, and no lock that another thread holds for long. When the
//! thread wakes, it sends the requests whose planned time has come, before it reads any answer. Between two answers it
//! looks for further such requests. `calls.rs` handles calls. `pool.rs` handles connections: `exclusive.rs` for
//! HTTP/1.1, with one call at a time on a connection, and `shared.rs` for HTTP/2.

mod calls;
mod exclusive;
mod head;
mod overdue;
mod pool;
mod scheduling;
mod shared;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use slab::Slab;

use super::config::{Client, Config, DEFAULT_CONNECTIONS};
use super::corpus::Corpus;
use super::shared::{Shared, Stop};
use super::{Error, plan};
use crate::open_loop::{Due, Planned};
use crate::socket::{Alarm, Peer, Scratch, http2};
use crate::wire::Endpoint;
use calls::{Call, Deadlines};
use head::Head;
use overdue::{Overdue, Turn};
use pool::Pool;

/// Maximum number of idle connections: `MaxIdleConnsPerHost` of kube-apiserver's webhook clients.
const IDLE_MAX: usize = 25;
/// Maximum number of requests that may be due (past their planned time) and unsent while answers are read. Requests
/// beyond this number would only be late.
const QUEUE: usize = 1024;
/// Maximum number of requests that are sent before answers are read, if many are due.
const SENT_A_TURN: usize = 64;
/// Maximum number of events that one poll returns.
const EVENTS: usize = 128;
/// How often idle and opening connections are checked; also the longest sleep of the thread.
const SWEEP: Duration = Duration::from_secs(1);

const ALARM: Token = Token(0);
const WAKER: Token = Token(1);
/// The first poll token of connections.
const FIRST_CONNECTION: usize = 2;

pub(super) struct Setup {
    corpus: Arc<Corpus>,
    peer: Peer,
    protocol: Protocol,
    timeout: Duration,
    in_flight_max: usize,
    /// The number of calls after which a connection is closed.
    calls_max: u32,
    /// Whether the thread polls its sockets without a pause instead of sleeping.
    awake: bool,
}

/// The protocol with the head for each path of the corpus, and for HTTP/2 the number of connections.
enum Protocol {
    Http1 { heads: Vec<Head>, idle_max: usize },
    Http2 { heads: Vec<http2::Head>, connections: usize },
}

impl Setup {
    pub(super) fn new(
        config: &Config,
        endpoint: &Endpoint,
        corpus: Arc<Corpus>,
        in_flight_max: usize,
    ) -> Result<Self, Error> {
        let calls_max =
            if config.client == Client::NoReuse { 1 } else { config.calls_per_connection.unwrap_or(u32::MAX) };
        let timeout = config.timeout.0;
        let protocol = if config.client == Client::Http2 {
            let connections = config.connections.unwrap_or(DEFAULT_CONNECTIONS) as usize;
            Protocol::Http2 {
                heads: corpus.paths().iter().map(|path| head::http2(endpoint, path, timeout)).collect(),
                connections,
            }
        } else {
            Protocol::Http1 {
                heads: corpus.paths().iter().map(|path| Head::new(endpoint, path, timeout)).collect(),
                idle_max: IDLE_MAX,
            }
        };
        Ok(Self { corpus, peer: endpoint.peer()?, protocol, timeout, in_flight_max, calls_max, awake: false })
    }

    /// Keeps this many idle HTTP/1.1 connections, for a closed loop.
    pub(super) fn keeping(mut self, connections: usize) -> Self {
        if let Protocol::Http1 { idle_max, .. } = &mut self.protocol {
            *idle_max = connections;
        }
        self
    }

    /// Sets whether the thread polls without ever sleeping.
    pub(super) fn awake(mut self, awake: bool) -> Self {
        self.awake = awake;
        self
    }
}

pub(super) struct Generator {
    setup: Setup,
    source: Planned<plan::Request>,
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    poll: Poll,
    alarm: Alarm,
    scratch: Scratch,
    /// Requests whose planned time has come and whose call has not begun, at most [`QUEUE`].
    due: VecDeque<Due<plan::Request>>,
    calls: Slab<Call>,
    deadlines: Deadlines,
    overdue: Overdue,
    next_serial: u64,
    pool: Pool,
    next_sweep: Instant,
}

impl Generator {
    pub(super) fn new(
        setup: Setup,
        source: Planned<plan::Request>,
        shared: Arc<Shared>,
        stop: Arc<Stop>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        let generator = Self {
            setup,
            source,
            shared,
            stop,
            poll,
            alarm,
            scratch: Scratch::new(),
            due: VecDeque::with_capacity(QUEUE),
            calls: Slab::new(),
            deadlines: Deadlines::default(),
            overdue: Overdue::default(),
            next_serial: 0,
            pool: Pool::default(),
            next_sweep: Instant::now() + SWEEP,
        };
        Ok((generator, waker))
    }

    /// Runs until the thread is stopped and all its calls have ended.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        if self.source.is_closed_loop() {
            scheduling::in_batches();
        }
        loop {
            if let Some(until) = self.stop.until() {
                self.last_due();
                if (self.calls.is_empty() && self.due.is_empty()) || Instant::now() >= until {
                    break;
                }
            }
            if let Err(error) = self.turn(&mut events) {
                // No outside event can cause this; the remaining requests are then counted as not sent.
                tracing::error!(%error, "the generator's poll failed");
                self.source.rest(&self.shared.counts);
                break;
            }
        }
        self.shared.recorder.lock().abandoned(self.calls.len() as u64);
        for _ in self.due.drain(..) {
            self.shared.counts.overflow_one();
        }
        self.close_all();
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        if self.wake(events)? {
            self.act(events, Instant::now);
        }
        Ok(())
    }

    /// Sends due requests and sleeps until an event comes or the next request is due. Returns false if a signal
    /// interrupted the sleep.
    fn wake(&mut self, events: &mut Events) -> io::Result<bool> {
        self.send_due();
        let now = Instant::now();
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
        // Resets of abandoned streams, and pings.
        self.write_unwritten();
        let timeout = self.timeout()?;
        match self.poll.poll(events, timeout) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Handles the events of one poll. The clock is read after the poll.
    fn act(&mut self, events: &Events, clock: impl Fn() -> Instant) {
        // A request must not go over a connection that the server has already closed.
        for event in events {
            if let Some(slot) = slot_of(event.token())
                && self.pool.is_idle(slot)
            {
                self.on_event(slot, event.is_read_closed());
            }
        }
        self.send_due();
        for event in events {
            if let Some(slot) = slot_of(event.token()) {
                self.on_event(slot, event.is_read_closed());
                self.send_due();
            }
        }
        for _ in 0..self.pool.unread.len() {
            if let Some(slot) = self.pool.unread.pop_front() {
                self.on_event(slot, false);
                self.send_due();
            }
        }
        let now = clock();
        let overdue = self.deadlines.next(&self.calls).is_some_and(|at| at <= now);
        let more = overdue && (!self.pool.unread.is_empty() || events.iter().count() >= EVENTS);
        if self.overdue.over(Turn { overdue, more, connections: self.pool.seats.len() }) {
            self.expire(now);
        }
    }

    /// The time after which the poll must return, even without an event.
    fn timeout(&mut self) -> io::Result<Option<Duration>> {
        if !self.due.is_empty() || !self.pool.unread.is_empty() || self.setup.awake {
            return Ok(Some(Duration::ZERO));
        }
        let mut at = self.next_sweep;
        let planned = self.source.next_at(self.occupied());
        let deadline = self.deadlines.next(&self.calls);
        for other in [planned, deadline, self.stop.until()].into_iter().flatten() {
            at = at.min(other);
        }
        self.alarm.timeout(at)
    }

    /// Begins due requests, at most [`SENT_A_TURN`].
    fn send_due(&mut self) {
        let mut now = Instant::now();
        for _ in 0..SENT_A_TURN {
            self.pull(now);
            let Some(due) = self.due.pop_front() else { break };
            self.begin(&due, now);
            now = Instant::now();
        }
        self.write_unwritten();
    }

    /// Moves requests whose planned time has come from the plan to the queue. A request that finds the queue full
    /// counts as overflow.
    fn pull(&mut self, now: Instant) {
        while let Some(due) = self.source.due(now, self.occupied()) {
            self.shared.counts.planned_one();
            if self.due.len() < QUEUE {
                self.due.push_back(due);
            } else {
                self.shared.counts.overflow_one();
            }
        }
    }

    /// Number of calls in flight or due; `usize::MAX` if no stream would be free for a further call.
    fn occupied(&self) -> usize {
        if self.room() <= self.due.len() { usize::MAX } else { self.calls.len() + self.due.len() }
    }

    /// Counts requests that were due before the stop as planned; requests that were due later do not count.
    fn last_due(&mut self) {
        self.pull(Instant::now());
        self.source.close();
    }
}

fn slot_of(token: Token) -> Option<usize> {
    token.0.checked_sub(FIRST_CONNECTION)
}
