//! What happens to a connection: dialled, idle, under a call, closed. Behaves as Go's `net/http.Transport` does in
//! kube-apiserver.
//!
//! No idle connection means a new one is dialled; the call takes whichever is first, the new one or one that another
//! call gives back. The most recently used idle connection is taken first. At most so many idle ones are kept, for 90 s;
//! extra ones are closed when they come back. A request that found its connection closed before a byte was written
//! goes to another one; one that was written is never sent twice.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mio::Token;
use slab::Slab;

use super::{FIRST_CONNECTION, Generator};
use crate::socket::{Connection, Received};
use crate::wire::{CONNECT_LIMIT, Class, Failure, TLS_LIMIT};

/// `IdleConnTimeout` of Go's default transport, which kube-apiserver keeps.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// The connections of one thread.
#[derive(Default)]
pub(super) struct Pool {
    pub(super) seats: Slab<Seat>,
    /// Least recently used first.
    idle: VecDeque<(Instant, usize)>,
    /// Calls without a connection, longest wait first.
    pub(super) waiting: VecDeque<usize>,
    /// Connections that have more to read than one turn took.
    pub(super) unread: VecDeque<usize>,
    opening: usize,
}

/// One connection and what it is used for.
pub(super) struct Seat {
    pub(super) connection: Connection,
    pub(super) state: State,
}

#[derive(Clone, Copy)]
pub(super) enum State {
    /// Dialled for a call, which may have been served by another by the time it is open.
    Opening {
        call: usize,
        serial: u64,
        address: usize,
    },
    Idle,
    Busy {
        call: usize,
    },
}

impl Pool {
    pub(super) fn is_idle(&self, slot: usize) -> bool {
        self.seats.get(slot).is_some_and(|seat| matches!(seat.state, State::Idle))
    }

    fn take_idle(&mut self) -> Option<usize> {
        self.idle.pop_back().map(|(_, slot)| slot)
    }
}

impl Generator {
    /// Finds a connection for the call, now or later.
    pub(super) fn acquire(&mut self, call: usize) {
        if let Some(slot) = self.pool.take_idle() {
            self.dispatch(call, slot);
            return;
        }
        self.pool.waiting.push_back(call);
        // Each call has at most one dial; those of calls that are over may still be under way.
        if self.pool.opening < self.setup.in_flight_max {
            let serial = self.calls[call].serial;
            self.dial(call, serial, 0, Instant::now());
        }
    }

    fn dial(&mut self, call: usize, serial: u64, address: usize, begun: Instant) {
        let entry = self.pool.seats.vacant_entry();
        let token = Token(FIRST_CONNECTION + entry.key());
        let peer = &self.setup.peer;
        match Connection::dial(peer, peer.addresses[address], self.poll.registry(), token, begun) {
            Ok(connection) => {
                entry.insert(Seat { connection, state: State::Opening { call, serial, address } });
                self.pool.opening += 1;
            }
            Err(failure) => self.dial_failed(call, serial, address, begun, failure),
        }
    }

    /// Tries the next address, or tells the call that it was dialled for, or when that was served already, the one that
    /// waits longest.
    fn dial_failed(&mut self, call: usize, serial: u64, address: usize, begun: Instant, failure: Failure) {
        if failure.class == Class::Connect && address + 1 < self.setup.peer.addresses.len() {
            self.dial(call, serial, address + 1, begun);
            return;
        }
        let same = |waiting: &usize| *waiting == call && self.calls[call].serial == serial;
        let at = self.pool.waiting.iter().position(same).unwrap_or(0);
        if let Some(call) = self.pool.waiting.remove(at) {
            self.failed(call, failure);
        }
    }

    /// Something happened on the connection. `closing`: the server has hung up.
    pub(super) fn on_event(&mut self, slot: usize, closing: bool) {
        let Some(seat) = self.pool.seats.get_mut(slot) else { return };
        match seat.state {
            State::Opening { call, serial, address } => {
                let opened = seat.connection.open_further(&self.setup.peer, &mut self.scratch);
                let begun = seat.connection.opening().begun;
                match opened {
                    Ok(false) => {}
                    Ok(true) => {
                        seat.state = State::Idle;
                        self.pool.opening -= 1;
                        self.hand_out(slot);
                    }
                    Err(failure) => {
                        self.close(slot);
                        self.dial_failed(call, serial, address, begun, failure);
                    }
                }
            }
            State::Idle => match seat.connection.receive(closing, &mut self.scratch) {
                // Session tickets, for example.
                Ok(Received::Nothing) if seat.connection.reusable() => {}
                // It ended, broke, or said what nobody asked for.
                _ => self.close(slot),
            },
            State::Busy { call } => {
                let flushed = seat.connection.flush();
                match (seat.connection.receive(closing, &mut self.scratch), flushed) {
                    (Ok(Received::Answer), _) => {
                        self.answered(call, slot);
                        self.give_back(slot);
                    }
                    (Err(failure), _) => self.broke(call, slot, failure),
                    (Ok(_), Err(error)) => {
                        let text = format!("the connection broke while the request was written: {error}");
                        self.broke(call, slot, Failure::http(text));
                    }
                    (Ok(received), Ok(())) => {
                        if received == Received::More {
                            self.pool.unread.push_back(slot);
                        }
                        if seat.connection.answer_begun() {
                            self.answer_begun(call);
                        }
                    }
                }
            }
        }
    }

    fn broke(&mut self, call: usize, slot: usize, failure: Failure) {
        self.close(slot);
        self.failed(call, failure);
    }

    /// The answer was taken: the connection is used again unless something speaks against it.
    fn give_back(&mut self, slot: usize) {
        let Some(seat) = self.pool.seats.get_mut(slot) else { return };
        let connection = &mut seat.connection;
        connection.rest();
        if connection.reusable() && connection.calls() < self.setup.calls_max {
            self.hand_out(slot);
        } else {
            self.close(slot);
        }
    }

    fn hand_out(&mut self, slot: usize) {
        if let Some(call) = self.pool.waiting.pop_front() {
            self.dispatch(call, slot);
        } else if self.pool.idle.len() < self.setup.idle_max
            && let Some(seat) = self.pool.seats.get_mut(slot)
        {
            seat.state = State::Idle;
            self.pool.idle.push_back((Instant::now(), slot));
        } else {
            self.close(slot);
        }
    }

    /// Closes the connection, whatever it is doing.
    pub(super) fn close(&mut self, slot: usize) {
        let Some(seat) = self.pool.seats.try_remove(slot) else { return };
        match seat.state {
            State::Opening { .. } => self.pool.opening -= 1,
            State::Idle => self.pool.idle.retain(|(_, idle)| *idle != slot),
            State::Busy { .. } => {}
        }
        seat.connection.close(&mut self.scratch);
    }

    /// Closes what was idle too long, and gives up what does not open.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((since, slot)) = self.pool.idle.front().copied()
            && now.saturating_duration_since(since) >= IDLE_LIMIT
        {
            self.close(slot);
        }
        if self.pool.opening == 0 {
            return;
        }
        let late = |(slot, seat): (usize, &Seat)| {
            let State::Opening { .. } = seat.state else { return None };
            let opening = seat.connection.opening();
            let (since, limit) = opening.connected.map_or((opening.begun, CONNECT_LIMIT), |at| (at, TLS_LIMIT));
            (now.saturating_duration_since(since) >= limit).then_some(slot)
        };
        let given_up: Vec<usize> = self.pool.seats.iter().filter_map(late).collect();
        for slot in given_up {
            self.give_up(slot);
        }
    }

    fn give_up(&mut self, slot: usize) {
        let Some(Seat { connection, state: State::Opening { call, serial, address } }) = self.pool.seats.get(slot)
        else {
            return;
        };
        let (call, serial, address, opening) = (*call, *serial, *address, connection.opening());
        let at = &self.setup.peer.at;
        let failure = if opening.connected.is_none() {
            let text = format!("{at}: no connection in {} s", CONNECT_LIMIT.as_secs());
            Failure { class: Class::Connect, text }
        } else {
            Failure { class: Class::Tls, text: format!("{at}: no TLS session in {} s", TLS_LIMIT.as_secs()) }
        };
        self.close(slot);
        self.dial_failed(call, serial, address, opening.begun, failure);
    }

    /// Closes every connection, for the end.
    pub(super) fn close_all(&mut self) {
        let slots: Vec<usize> = self.pool.seats.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.close(slot);
        }
    }
}
