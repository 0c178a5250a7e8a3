//! HTTP/1.1: each connection has one call at a time, as in Go's `net/http.Transport` in kube-apiserver.
//!
//! If no connection is idle, a new connection is dialled. The call takes the new connection, or one that another call
//! has finished using, whichever comes first. Of all idle connections, a call takes the most recently used. A limited
//! number of idle connections is kept for 90 s; further connections are closed when their calls end. If a connection
//! was closed before a byte of a request was written, the request moves to another connection. A written request is
//! never sent twice.

use std::time::{Duration, Instant};

use super::calls::CallSlot;
use super::head::Digits;
use super::pool::Seat;
use super::{Generator, Protocol};
use crate::admission::oracle;
use crate::failure::Failure;
use crate::socket::http1::Received;

/// How long an idle connection is kept: `IdleConnTimeout` of Go's default transport, which kube-apiserver uses.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

impl Generator {
    /// Gives the call a connection, now or as soon as one is free.
    pub(super) fn acquire_exclusive(&mut self, call: usize, now: Instant) {
        if let Some((_, slot)) = self.pool.idle.pop_back() {
            self.dispatch_exclusive(call, slot, now);
            return;
        }
        self.pool.waiting.push_back(call);
        // Each call has at most one dial; dials of ended calls may still be in progress.
        if self.pool.opening < self.setup.in_flight_max {
            self.dial(call);
        }
    }

    /// Sends the call over a connection that was idle or has just been opened.
    fn dispatch_exclusive(&mut self, key: usize, slot: usize, acquired: Instant) {
        let Protocol::Http1 { heads, .. } = &self.setup.protocol else { return };
        let Some(Seat::Exclusive(connection, of)) = self.pool.seats.get_mut(slot) else { return };
        let Some(call) = self.calls.get(key) else { return };
        *of = Some(key);
        let opening = (connection.calls() == 0).then(|| connection.opening());
        let template = self.setup.corpus.template(call.request.template);
        let Some(head) = heads.get(template.path) else { return };
        let body = template.around(&call.request.uid);
        let length = Digits::of(body.iter().map(|part| part.len()).sum());
        let sent = connection.send(&head.around(&length, body), &mut self.scratch);
        self.placed(key, CallSlot { slot, stream: 0 }, acquired, opening);
        let Err(error) = sent else { return };
        self.close(slot);
        if error.unsent {
            self.send_again(key, error.failure);
        } else {
            self.failed(key, error.failure);
        }
    }

    /// Handles an event on the connection. If `closing` is set, the server has closed the connection.
    pub(super) fn on_exclusive(&mut self, slot: usize, closing: bool) {
        let Some(Seat::Exclusive(connection, call)) = self.pool.seats.get_mut(slot) else { return };
        let Some(call) = *call else {
            match connection.receive(closing, &mut self.scratch) {
                // Session tickets, for example.
                Ok(Received::Nothing) if connection.reusable() => {}
                // The connection ended, broke, or received unexpected data.
                _ => self.close(slot),
            }
            return;
        };
        let flushed = connection.flush();
        match (connection.receive(closing, &mut self.scratch), flushed) {
            (Ok(Received::Answer), _) => {
                let end = Instant::now();
                self.answered_exclusive(call, slot, end);
                self.give_back(slot, end);
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
                if connection.answer_begun()
                    && let Some(call) = self.calls.get_mut(call)
                {
                    call.first_byte.get_or_insert_with(Instant::now);
                }
            }
        }
    }

    fn answered_exclusive(&mut self, key: usize, slot: usize, end: Instant) {
        let Some(call) = self.calls.try_remove(key) else { return };
        let Some(Seat::Exclusive(connection, _)) = self.pool.seats.get(slot) else { return };
        let template = self.setup.corpus.template(call.request.template);
        let truth = self.setup.corpus.truth();
        let seen = connection.answer();
        self.shared.recorder.lock().received(seen.body.len());
        let judged = oracle::judge_in(truth, template, call.begun, seen, &call.request.uid);
        self.record(&call, end, judged);
    }

    fn broke(&mut self, call: usize, slot: usize, failure: Failure) {
        self.close(slot);
        self.failed(call, failure);
    }

    /// Handles the end of an answer: keeps the connection for further calls, if possible.
    fn give_back(&mut self, slot: usize, now: Instant) {
        let Some(Seat::Exclusive(connection, _)) = self.pool.seats.get_mut(slot) else { return };
        connection.rest();
        if connection.reusable() && connection.calls() < self.setup.calls_max {
            self.hand_out(slot, now);
        } else {
            self.close(slot);
        }
    }

    /// Gives the connection to the call that has waited longest, or keeps the connection for later calls.
    pub(super) fn hand_out(&mut self, slot: usize, now: Instant) {
        let Protocol::Http1 { idle_max, .. } = self.setup.protocol else { return };
        if let Some(call) = self.pool.waiting.pop_front() {
            self.dispatch_exclusive(call, slot, now);
        } else if self.pool.idle.len() < idle_max
            && let Some(Seat::Exclusive(_, call)) = self.pool.seats.get_mut(slot)
        {
            *call = None;
            self.pool.idle.push_back((now, slot));
        } else {
            self.close(slot);
        }
    }

    /// Closes connections that were idle too long.
    pub(super) fn close_idle(&mut self, now: Instant) {
        while let Some((since, slot)) = self.pool.idle.front().copied()
            && now.saturating_duration_since(since) >= IDLE_LIMIT
        {
            self.close(slot);
        }
    }
}
