//! The life of a call of the generator: begun, placed on a connection, answered, failed or timed out. The generator
//! counts each call once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use slab::Slab;

use super::{Generator, plan};
use crate::admission::answers::{Answer, Tells};
use crate::admission::interval::{Phases, Times};
use crate::admission::oracle;
use crate::failure::{Awaited, Failure, timed_out};
use crate::open_loop::Due;
use crate::socket::Opening;

/// Maximum number of times that a request is sent. A request is sent again if its connection was closed before a byte
/// was written, or if the server says that it did not process the request.
const TRIES: u32 = 4;

pub(super) struct Call {
    /// A number that distinguishes the call from a later call with the same key.
    pub(super) serial: u64,
    pub(super) place: Option<CallSlot>,
    planned: Instant,
    pub(super) begun: Instant,
    pub(super) request: plan::Request,
    tries: u32,
    /// When the call got its connection, and how the connection was opened, if it was opened for a call at that moment.
    acquired: Option<(Instant, Option<Opening>)>,
    pub(super) first_byte: Option<Instant>,
}

/// The connection, and for HTTP/2 the stream, of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallSlot {
    pub(super) slot: usize,
    /// The number of the HTTP/2 stream.
    pub(super) stream: u32,
}

impl Generator {
    /// Begins a call at once, or counts its request as overflow.
    pub(super) fn begin(&mut self, due: &Due<plan::Request>, begun: Instant) {
        if self.calls.len() >= self.setup.in_flight_max || self.room() == 0 {
            self.shared.counts.overflow_one();
            return;
        }
        self.shared.recorder.lock().sent(begun.saturating_duration_since(due.planned));
        let serial = self.next_serial;
        self.next_serial += 1;
        let call = self.calls.insert(Call {
            serial,
            place: None,
            planned: due.planned,
            begun,
            request: due.item,
            tries: 0,
            acquired: None,
            first_byte: None,
        });
        self.deadlines.push(begun + self.setup.timeout, call, serial, &self.calls);
        self.acquire(call, begun);
    }

    /// Records that the call got its connection at `acquired`. `opening` is set if the connection was opened at that
    /// moment.
    pub(super) fn placed(&mut self, key: usize, place: CallSlot, acquired: Instant, opening: Option<Opening>) {
        if let Some(call) = self.calls.get_mut(key) {
            if call.tries > 0 {
                self.shared.recorder.lock().sent_again();
            }
            call.tries += 1;
            call.place = Some(place);
            call.acquired = Some((acquired, opening));
        }
    }

    /// Sends the call again if its server did not process it and its number of tries allows that.
    pub(super) fn send_again(&mut self, key: usize, failure: Failure) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.tries < TRIES {
            call.place = None;
            self.acquire(key, Instant::now());
        } else {
            self.failed(key, failure);
        }
    }

    /// Handles a call that ended without an answer and is no longer on a connection.
    pub(super) fn failed(&mut self, key: usize, failure: Failure) {
        let Some(call) = self.calls.try_remove(key) else { return };
        self.record(&call, Instant::now(), Err(failure));
    }

    pub(super) fn record(&mut self, call: &Call, end: Instant, outcome: Result<oracle::Judgement, Failure>) {
        let times = Times { phases: call.phases(end), service: end.saturating_duration_since(call.begun) };
        if let Some(answers) = self.setup.corpus.answers().get() {
            let template = self.setup.corpus.template(call.request.template);
            let allowed = outcome.as_ref().ok().filter(|judgement| !judgement.unavailable || !template.updates);
            let allowed = allowed.map(|judgement| judgement.allowed);
            let tells = Tells::of(template, allowed);
            answers.answered(&Answer { uid: &call.request.uid, label: &template.label, allowed, tells });
        }
        let mut recorder = self.shared.recorder.lock();
        match outcome {
            Ok(judgement) => recorder.answered(times, call.request.template, judgement),
            Err(failure) => recorder.failed(times, call.request.template, failure),
        }
    }

    /// Ends the calls whose timeout has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(key) = self.deadlines.expired(now, &self.calls) {
            let awaited = if let Some(place) = self.calls[key].place {
                self.withdraw(place)
            } else {
                self.pool.waiting.retain(|waiting| *waiting != key);
                Awaited::Connection
            };
            self.failed(key, timed_out(self.setup.timeout, awaited));
        }
    }
}

impl Call {
    fn phases(&self, end: Instant) -> Phases {
        let Some((acquired, opening)) = self.acquired else {
            return Phases { queue: end.saturating_duration_since(self.planned), ..Phases::default() };
        };
        let (mut connect, mut tls) = (Duration::ZERO, Duration::ZERO);
        if let Some(Opening { begun, connected: Some(connected), open: Some(open) }) = opening {
            connect = connected.saturating_duration_since(begun.max(self.planned));
            tls = open.saturating_duration_since(connected.max(self.planned));
        }
        let first_byte = self.first_byte.unwrap_or(end);
        Phases {
            queue: acquired.saturating_duration_since(self.planned).saturating_sub(connect + tls),
            connect,
            tls,
            wait: first_byte.saturating_duration_since(acquired),
            body: end.saturating_duration_since(first_byte),
        }
    }
}

/// The deadlines of calls in the order in which the calls began. All calls have the same timeout, so the deadlines are
/// in order. Entries of ended calls are skipped, and are removed before the list has to grow.
#[derive(Debug)]
pub(super) struct Deadlines(VecDeque<(Instant, usize, u64)>);

impl Default for Deadlines {
    fn default() -> Self {
        Self(VecDeque::with_capacity(Self::ROOM))
    }
}

impl Deadlines {
    /// The initial capacity of the list of deadlines. The list grows only if more than half of it is used.
    const ROOM: usize = 128;

    fn push(&mut self, at: Instant, key: usize, serial: u64, calls: &Slab<Call>) {
        let room = self.0.capacity();
        if self.0.len() == room {
            self.0.retain(|(_, key, serial)| is(calls, *key, *serial));
            if self.0.len() > room / 2 {
                self.0.reserve(room);
            }
        }
        self.0.push_back((at, key, serial));
    }

    pub(super) fn next(&mut self, calls: &Slab<Call>) -> Option<Instant> {
        while let Some((at, key, serial)) = self.0.front() {
            if is(calls, *key, *serial) {
                return Some(*at);
            }
            self.0.pop_front();
        }
        None
    }

    fn expired(&mut self, now: Instant, calls: &Slab<Call>) -> Option<usize> {
        self.next(calls).filter(|at| *at <= now)?;
        self.0.pop_front().map(|(_, key, _)| key)
    }
}

fn is(calls: &Slab<Call>, key: usize, serial: u64) -> bool {
    calls.get(key).is_some_and(|call| call.serial == serial)
}

#[cfg(test)]
mod tests;
