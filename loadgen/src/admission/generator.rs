//! A generator thread: sends its share of the plan over its own connections, and records the answers.
//!
//! One thread, one poll, no task and no lock that another thread holds for long. Whenever the thread wakes, due
//! requests are sent before any answer is read, and between two answers it checks for newly due requests. `calls.rs`
//! handles calls, `pool.rs` connections: `exclusive.rs` for HTTP/1.1, where each connection has one call at a time,
//! `shared.rs` for HTTP/2.

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

/// `MaxIdleConnsPerHost` of kube-apiserver's webhook clients.
const IDLE_MAX: usize = 25;
/// Requests that may be due and unsent while answers are read. More would only be late.
const QUEUE: usize = 1024;
/// Requests sent before answers are read, if more are due than can be sent.
const SENT_A_TURN: usize = 64;
/// Events taken from one poll.
const EVENTS: usize = 128;
/// The interval at which idle and opening connections are checked, and the longest sleep.
const SWEEP: Duration = Duration::from_secs(1);

const ALARM: Token = Token(0);
const WAKER: Token = Token(1);
/// The first token of connections.
const FIRST_CONNECTION: usize = 2;

/// The settings of a thread.
pub(super) struct Setup {
    corpus: Arc<Corpus>,
    peer: Peer,
    protocol: Protocol,
    timeout: Duration,
    in_flight_max: usize,
    /// The most calls that a connection carries.
    calls_max: u32,
    /// Whether the thread polls its sockets again and again instead of sleeping.
    awake: bool,
}

/// The protocol, and the number of connections; with one head for each path of the corpus.
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

    /// For a closed loop: keeps this many idle connections of HTTP/1.1.
    pub(super) fn keeping(mut self, connections: usize) -> Self {
        if let Protocol::Http1 { idle_max, .. } = &mut self.protocol {
            *idle_max = connections;
        }
        self
    }

    /// Sets whether the thread never sleeps.
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
    /// Due requests that are not yet begun, at most [`QUEUE`].
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

    /// Runs until it is stopped and its calls are over.
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

    /// Sends due requests and sleeps until something happens. False if only a signal came.
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

    /// Handles the events. The clock is read after them.
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

    /// The longest time that the poll may sleep.
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

    /// Begins due requests, up to a bound.
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

    /// Moves due requests from the plan to the queue; those that find it full are overflow.
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

    /// Calls that occupy a closed loop: calls that are not over, or that would leave no place for a further one.
    fn occupied(&self) -> usize {
        if self.room() <= self.due.len() { usize::MAX } else { self.calls.len() + self.due.len() }
    }

    /// Requests that were due before the stop count as planned, later ones do not.
    fn last_due(&mut self) {
        self.pull(Instant::now());
        self.source.close();
    }
}

fn slot_of(token: Token) -> Option<usize> {
    token.0.checked_sub(FIRST_CONNECTION)
}
