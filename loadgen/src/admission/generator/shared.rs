//! HTTP/2: each connection carries many calls at a time, each on its own stream.
//!
//! A thread has the configured number of connections, and a call uses the connection with the fewest calls. A
//! connection accepts no further call if its server wants to end it, or if it has carried its maximum number of calls.
//! A connection that accepts no further call ends with its last call, and the next call opens a new connection. Calls
//! that begin while connections are being opened wait for them. If more calls wait than the opening connections will
//! have streams, the further calls count as overflow, because a longer queue would hide their delay.

use std::time::Instant;

use super::calls::CallSlot;
use super::pool::Seat;
use super::{Generator, Protocol};
use crate::admission::oracle;
use crate::failure::Failure;
use crate::socket::http2::{self, ConnectionState, Ended, STREAMS_UNTIL_TOLD};

impl Generator {
    /// How many further calls would get a stream, now or on connections that are not open yet.
    pub(super) fn room(&self) -> usize {
        let Protocol::Http2 { connections, .. } = self.setup.protocol else { return usize::MAX };
        let free: usize = self.current().map(|(_, connection)| self.room_on(connection)).sum();
        let missing = connections.saturating_sub(self.pool.current.len());
        (free + missing * STREAMS_UNTIL_TOLD as usize).saturating_sub(self.pool.waiting.len())
    }

    fn room_on(&self, connection: &http2::Connection) -> usize {
        connection.room().min((self.setup.calls_max - connection.calls().min(self.setup.calls_max)) as usize)
    }

    fn current(&self) -> impl Iterator<Item = (usize, &http2::Connection)> {
        self.pool.current.iter().filter_map(|slot| match self.pool.seats.get(*slot) {
            Some(Seat::Shared(connection)) => Some((*slot, &**connection)),
            _ => None,
        })
    }

    /// The number of the connection for the next call; `None` if no connection has a free stream.
    fn best(&self) -> Option<usize> {
        let with_room = self.current().filter(|(_, connection)| self.room_on(connection) > 0);
        with_room.min_by_key(|(_, connection)| connection.open_count()).map(|(slot, _)| slot)
    }

    /// Gives the call a connection, now or as soon as one is open.
    pub(super) fn acquire_shared(&mut self, call: usize, now: Instant) {
        let missing = self.missing();
        match self.best() {
            Some(slot) => self.dispatch_shared(call, slot, now),
            None => self.pool.waiting.push_back(call),
        }
        if missing {
            self.dial(call);
        }
    }

    /// Whether the thread has fewer connections than configured.
    fn missing(&self) -> bool {
        let Protocol::Http2 { connections, .. } = self.setup.protocol else { return false };
        self.pool.current.len() + self.pool.opening < connections
    }

    /// Handles a connection that could not be opened: waiting calls fail, unless another connection exists.
    pub(super) fn no_shared(&mut self, failure: &Failure) {
        if self.pool.opening > 0 || !self.pool.current.is_empty() {
            return;
        }
        while let Some(call) = self.pool.waiting.pop_front() {
            self.failed(call, failure.clone());
        }
    }

    /// Marks an opened connection as ready for several calls.
    pub(super) fn share(&mut self, slot: usize) {
        self.pool.current.push(slot);
        self.settle(slot, ConnectionState::Fine);
    }

    /// Sends the call on a new stream of the connection, which has room for it.
    fn dispatch_shared(&mut self, key: usize, slot: usize, acquired: Instant) {
        let Protocol::Http2 { heads, .. } = &self.setup.protocol else { return };
        let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot) else { return };
        let Some(call) = self.calls.get(key) else { return };
        let template = self.setup.corpus.template(call.request.template);
        let Some(head) = heads.get(template.path) else { return };
        let body = template.around(&call.request.uid);
        let stream = connection.open(key, head, body.iter().map(|part| part.len()).sum());
        let opening = connection.opening();
        // Only calls that had to wait for it include the opening.
        let opening = opening.open.filter(|open| *open > call.begun).map(|_| opening);
        if connection.retired() || connection.calls() >= self.setup.calls_max {
            self.pool.current.retain(|current| *current != slot);
        }
        self.placed(key, CallSlot { slot, stream }, acquired, opening);
        self.unwritten(slot);
    }

    /// Handles an event on the connection. If `closing` is set, the server has closed the connection.
    pub(super) fn on_shared(&mut self, slot: usize, closing: bool) {
        let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot) else { return };
        let standing = connection.receive(closing, &mut self.scratch);
        if standing == ConnectionState::More {
            self.pool.unread.push_back(slot);
        }
        self.settle(slot, standing);
    }

    /// Sends a PING to a server that was silent for a long time.
    pub(super) fn check_shared(&mut self, slot: usize, now: Instant) {
        let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot) else { return };
        let standing = connection.check(now);
        self.settle(slot, standing);
    }

    /// Takes the results of ended calls, closes ended connections, and gives free streams to waiting calls.
    fn settle(&mut self, slot: usize, standing: ConnectionState) {
        let end = Instant::now();
        let Some(Seat::Shared(connection)) = self.pool.seats.get(slot) else { return };
        if standing == ConnectionState::Over || connection.retired() {
            self.pool.current.retain(|current| *current != slot);
        }
        while let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot)
            && let Some(ended) = connection.next_ended()
        {
            match ended {
                Ended::Answer { call, place } => self.answered_shared(call, (slot, place), end),
                Ended::Failed { call, failure } => self.failed(call, failure),
                Ended::Unprocessed { call, failure } => self.send_again(call, failure),
            }
        }
        if standing == ConnectionState::Over || (self.pool.is_idle(slot) && !self.pool.current.contains(&slot)) {
            self.close(slot);
        } else {
            self.unwritten(slot);
        }
        while let Some(call) = self.pool.waiting.front().copied()
            && let Some(slot) = self.best()
        {
            self.pool.waiting.pop_front();
            self.dispatch_shared(call, slot, end);
        }
        if let Some(call) = self.pool.waiting.front().copied()
            && self.missing()
        {
            self.dial(call);
        }
    }

    fn answered_shared(&mut self, key: usize, (slot, place): (usize, usize), end: Instant) {
        let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot) else { return };
        let Some(mut call) = self.calls.try_remove(key) else { return };
        let (seen, begun) = connection.answer(place);
        call.first_byte = begun;
        let template = self.setup.corpus.template(call.request.template);
        let truth = self.setup.corpus.truth();
        self.shared.recorder.lock().received(seen.body.len());
        let judged = oracle::judge_in(truth, template, call.begun, seen, &call.request.uid);
        connection.release(place);
        self.record(&call, end, judged);
    }

    /// Remembers that the connection has unwritten data.
    pub(super) fn unwritten(&mut self, slot: usize) {
        if !self.pool.unwritten.contains(&slot) {
            self.pool.unwritten.push(slot);
        }
    }

    /// Writes the collected data of several calls, as much as the sockets accept.
    pub(super) fn write_unwritten(&mut self) {
        while let Some(slot) = self.pool.unwritten.pop() {
            let Some(Seat::Shared(connection)) = self.pool.seats.get_mut(slot) else { continue };
            let (calls, corpus) = (&self.calls, &self.setup.corpus);
            let body = |key: usize| {
                calls
                    .get(key)
                    .map_or([&[][..]; 3], |call| corpus.template(call.request.template).around(&call.request.uid))
            };
            if connection.write(body, &mut self.scratch) == ConnectionState::Over {
                self.settle(slot, ConnectionState::Over);
            }
        }
    }
}
