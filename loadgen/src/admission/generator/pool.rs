//! The connections of a thread for HTTP/1.1 and HTTP/2: dialling, opening, giving up, closing.
//!
//! `exclusive.rs` (HTTP/1.1) and `shared.rs` (HTTP/2) handle open connections.

use std::collections::VecDeque;
use std::time::Instant;

use mio::Token;
use slab::Slab;

use super::calls::CallSlot;
use super::{FIRST_CONNECTION, Generator, Protocol};
use crate::failure::{Awaited, Class, Failure};
use crate::socket::{Channel, http1, http2};
use crate::wire::{CONNECT_LIMIT, TLS_LIMIT};

#[derive(Default)]
pub(super) struct Pool {
    pub(super) seats: Slab<Seat>,
    /// HTTP/1.1: connections without a call, least recently used first.
    pub(super) idle: VecDeque<(Instant, usize)>,
    /// HTTP/2: connections that accept further calls, in the order in which they were opened.
    pub(super) current: Vec<usize>,
    /// HTTP/2: connections with unwritten data.
    pub(super) unwritten: Vec<usize>,
    /// Calls without a connection; the call that has waited longest is first.
    pub(super) waiting: VecDeque<usize>,
    /// Connections with more data than one loop of the thread reads.
    pub(super) unread: VecDeque<usize>,
    pub(super) opening: usize,
}

pub(super) enum Seat {
    Opening(Box<Opening>),
    /// An HTTP/1.1 connection with its call, if it has one.
    Exclusive(Box<http1::Connection>, Option<usize>),
    Shared(Box<http2::Connection>),
    /// A state that lasts only while an opened connection becomes a usable one.
    Changing,
}

/// A connection that is being opened for a call. A connection that became free may serve that call first.
pub(super) struct Opening {
    channel: Channel,
    call: usize,
    serial: u64,
    address: usize,
}

impl Pool {
    pub(super) fn is_idle(&self, slot: usize) -> bool {
        self.seats.get(slot).is_some_and(|seat| match seat {
            Seat::Opening(_) | Seat::Changing => false,
            Seat::Exclusive(_, call) => call.is_none(),
            Seat::Shared(connection) => connection.open_count() == 0,
        })
    }
}

impl Generator {
    /// Gives the call a connection, now or as soon as one is free.
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

    /// Tries the next address of the target, or fails the calls that wait for the connection.
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

    /// Handles an event on the connection. If `closing` is set, the server has closed the connection.
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

    /// Handles the end of the TLS handshake: the protocol on the connection begins.
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

    /// Gives up a connection that could not be opened, and handles the calls that waited for it.
    fn give_up(&mut self, slot: usize, failure: Failure) {
        let Some(Seat::Opening(opening)) = self.pool.seats.get(slot) else { return };
        let (call, serial, address) = (opening.call, opening.serial, opening.address);
        let begun = opening.channel.opening().begun;
        self.close(slot);
        self.dial_failed(call, serial, address, begun, failure);
    }

    /// Removes a timed-out call from its connection, and returns the phase in which the call was.
    pub(super) fn withdraw(&mut self, place: CallSlot) -> Awaited {
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

    /// Closes the connection, whatever its state is.
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

    /// Checks idle and opening connections, for which the poll may report no event.
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

    /// Closes every connection at the end of the load.
    pub(super) fn close_all(&mut self) {
        let slots: Vec<usize> = self.pool.seats.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.close(slot);
        }
    }
}
