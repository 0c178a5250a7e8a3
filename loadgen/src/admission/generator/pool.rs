//! The connections of a thread, of either protocol: dialled, opened, given up, closed.
//!
//! Open connections are handled in `exclusive.rs` (HTTP/1.1) and `shared.rs` (HTTP/2).

use std::collections::VecDeque;
use std::time::Instant;

use mio::Token;
use slab::Slab;

use super::calls::Place;
use super::{FIRST_CONNECTION, Generator, Protocol};
use crate::failure::{Awaited, Class, Failure};
use crate::socket::{Channel, http1, http2};
use crate::wire::{CONNECT_LIMIT, TLS_LIMIT};

#[derive(Default)]
pub(super) struct Pool {
    pub(super) seats: Slab<Seat>,
    /// HTTP/1.1: connections without a call, least recently used first.
    pub(super) idle: VecDeque<(Instant, usize)>,
    /// HTTP/2: connections that take calls, in the order in which they were opened.
    pub(super) current: Vec<usize>,
    /// HTTP/2: connections with unwritten data.
    pub(super) unwritten: Vec<usize>,
    /// Calls without a connection, longest wait first.
    pub(super) waiting: VecDeque<usize>,
    /// Connections with more data than one turn read.
    pub(super) unread: VecDeque<usize>,
    pub(super) opening: usize,
}

/// One connection and its use.
pub(super) enum Seat {
    Opening(Box<Opening>),
    /// With its call, if it has one.
    Exclusive(Box<http1::Connection>, Option<usize>),
    Shared(Box<http2::Connection>),
    /// Only while an opening connection becomes an open one.
    Changing,
}

/// Dialled for a call, which another connection may have served by the time this one is open.
pub(super) struct Opening {
    channel: Channel,
    call: usize,
    serial: u64,
    address: usize,
}

impl Pool {
    /// Whether no call is on the connection.
    pub(super) fn is_idle(&self, slot: usize) -> bool {
        self.seats.get(slot).is_some_and(|seat| match seat {
            Seat::Opening(_) | Seat::Changing => false,
            Seat::Exclusive(_, call) => call.is_none(),
            Seat::Shared(connection) => connection.open_count() == 0,
        })
    }
}

impl Generator {
    /// Finds a connection for the call, now or later.
    pub(super) fn acquire(&mut self, call: usize, now: Instant) {
        match self.setup.protocol {
            Protocol::Http1 { .. } => self.acquire_exclusive(call, now),
            Protocol::Http2 { .. } => self.acquire_shared(call, now),
        }
    }

    pub(super) fn dial(&mut self, call: usize) {
        let Some(serial) = self.calls.get(call).map(|call| call.serial) else { return };
        self.dial_address(call, serial, 0, Instant::now());
    }

    fn dial_address(&mut self, call: usize, serial: u64, address: usize, begun: Instant) {
        let entry = self.pool.seats.vacant_entry();
        let token = Token(FIRST_CONNECTION + entry.key());
        let peer = &self.setup.peer;
        match Channel::dial(peer, peer.addresses[address], self.poll.registry(), token, begun) {
            Ok(channel) => {
                entry.insert(Seat::Opening(Box::new(Opening { channel, call, serial, address })));
                self.pool.opening += 1;
            }
            Err(failure) => self.dial_failed(call, serial, address, begun, failure),
        }
    }

    /// Tries the next address, or fails the calls that wait for the connection.
    fn dial_failed(&mut self, call: usize, serial: u64, address: usize, begun: Instant, failure: Failure) {
        if failure.class == Class::Connect && address + 1 < self.setup.peer.addresses.len() {
            self.dial_address(call, serial, address + 1, begun);
            return;
        }
        if let Protocol::Http2 { .. } = self.setup.protocol {
            self.no_shared(&failure);
            return;
        }
        // The call that the connection was dialled for, or if that was served already, the one that has waited longest.
        let same = |waiting: &usize| *waiting == call && self.calls[call].serial == serial;
        let at = self.pool.waiting.iter().position(same).unwrap_or(0);
        if let Some(call) = self.pool.waiting.remove(at) {
            self.failed(call, failure);
        }
    }

    /// Handles an event on the connection. `closing`: the server has hung up.
    pub(super) fn on_event(&mut self, slot: usize, closing: bool) {
        match self.pool.seats.get(slot) {
            None | Some(Seat::Changing) => {}
            Some(Seat::Opening(_)) => self.open_further(slot),
            Some(Seat::Exclusive(..)) => self.on_exclusive(slot, closing),
            Some(Seat::Shared(_)) => self.on_shared(slot, closing),
        }
    }

    fn open_further(&mut self, slot: usize) {
        let Some(Seat::Opening(opening)) = self.pool.seats.get_mut(slot) else { return };
        match opening.channel.open_further(&self.setup.peer, &mut self.scratch) {
            Ok(false) => {}
            Ok(true) => self.opened(slot),
            Err(failure) => self.give_up(slot, failure),
        }
    }

    /// The TLS handshake is complete: now the protocol begins.
    fn opened(&mut self, slot: usize) {
        let Some(seat) = self.pool.seats.get_mut(slot) else { return };
        let Seat::Opening(opening) = std::mem::replace(seat, Seat::Changing) else { return };
        self.pool.opening -= 1;
        let Opening { channel, call, serial, address } = *opening;
        let begun = channel.opening().begun;
        let opened = match self.setup.protocol {
            Protocol::Http1 { .. } => http1::Connection::new(channel, &mut self.scratch).map(|connection| {
                *seat = Seat::Exclusive(Box::new(connection), None);
            }),
            Protocol::Http2 { .. } => http2::Connection::new(channel, &mut self.scratch).map(|connection| {
                *seat = Seat::Shared(Box::new(connection));
            }),
        };
        match (opened, &self.setup.protocol) {
            (Ok(()), Protocol::Http1 { .. }) => self.hand_out(slot, Instant::now()),
            (Ok(()), Protocol::Http2 { .. }) => self.share(slot),
            (Err(failure), _) => {
                self.close(slot);
                self.dial_failed(call, serial, address, begun, failure);
            }
        }
    }

    /// Gives up a connection that does not open.
    fn give_up(&mut self, slot: usize, failure: Failure) {
        let Some(Seat::Opening(opening)) = self.pool.seats.get(slot) else { return };
        let (call, serial, address) = (opening.call, opening.serial, opening.address);
        let begun = opening.channel.opening().begun;
        self.close(slot);
        self.dial_failed(call, serial, address, begun, failure);
    }

    /// Takes a timed-out call out of its place; returns the step that it was waiting for.
    pub(super) fn withdraw(&mut self, place: Place) -> Awaited {
        match self.pool.seats.get_mut(place.slot) {
            Some(Seat::Shared(connection)) => {
                let awaited = connection.cancel(place.stream);
                self.unwritten(place.slot);
                awaited
            }
            Some(Seat::Exclusive(connection, _)) => {
                let awaited = if connection.in_body() { Awaited::Body } else { Awaited::Head };
                self.close(place.slot);
                awaited
            }
            _ => Awaited::Connection,
        }
    }

    /// Closes the connection in any state.
    pub(super) fn close(&mut self, slot: usize) {
        match self.pool.seats.try_remove(slot) {
            None | Some(Seat::Changing) => {}
            Some(Seat::Opening(opening)) => {
                self.pool.opening -= 1;
                opening.channel.close(&mut self.scratch);
            }
            Some(Seat::Exclusive(connection, call)) => {
                if call.is_none() {
                    self.pool.idle.retain(|(_, idle)| *idle != slot);
                }
                connection.close(&mut self.scratch);
            }
            Some(Seat::Shared(connection)) => {
                self.pool.current.retain(|current| *current != slot);
                self.pool.unwritten.retain(|unwritten| *unwritten != slot);
                connection.close(&mut self.scratch);
            }
        }
    }

    /// Checks connections without events.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.close_idle(now);
        if matches!(self.setup.protocol, Protocol::Http1 { .. }) && self.pool.opening == 0 {
            return;
        }
        // By number, because checking one may close it.
        for slot in 0..self.pool.seats.capacity() {
            match self.pool.seats.get(slot) {
                Some(Seat::Opening(_)) => self.sweep_opening(slot, now),
                Some(Seat::Shared(_)) => self.check_shared(slot, now),
                _ => {}
            }
        }
    }

    fn sweep_opening(&mut self, slot: usize, now: Instant) {
        let Some(Seat::Opening(opening)) = self.pool.seats.get(slot) else { return };
        let times = opening.channel.opening();
        let (since, limit, class, what) = match times.connected {
            None => (times.begun, CONNECT_LIMIT, Class::Connect, "connection"),
            Some(connected) => (connected, TLS_LIMIT, Class::Tls, "TLS session"),
        };
        if now.saturating_duration_since(since) >= limit {
            let text = format!("{}: no {what} in {} s", self.setup.peer.at, limit.as_secs());
            self.give_up(slot, Failure { class, text });
        }
    }

    /// Closes every connection, for the end.
    pub(super) fn close_all(&mut self) {
        let slots: Vec<usize> = self.pool.seats.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.close(slot);
        }
    }
}
