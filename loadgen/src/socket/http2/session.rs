//! The client's side of one HTTP/2 connection (RFC 9113): frames in, frames out, the result of each call. Pure.
//!
//! Time is an argument and no I/O happens here, so that a test can play any behaviour of a server. A violation by the
//! server ends the connection; a fault of one answer ends only its stream.

mod incoming;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::flow::{Allowance, Grant};
use super::frame::{self, Code, Cutter, Fault, PAYLOAD_MAX_BYTES};
use super::hpack::{self, Decoder};
use super::patience::Patience;
use super::request::{self, Form, Length};
use super::settings::{self, Peer, STREAMS_UNTIL_TOLD};
use super::streams::{Stream, Streams, WINDOW_BYTES};
use crate::failure::{Awaited, Class, Failure};
use crate::socket::Seen;

/// The receive window of a connection: bytes of all streams together before the server has to wait.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The window of a connection until it is changed (RFC 9113, section 6.9.2).
const WINDOW_AT_FIRST_BYTES: u32 = 65_535;
/// The largest head of an answer, as with HTTP/1.1. Go's client takes 10 MiB; no webhook's comes near this.
const HEAD_MAX_BYTES: usize = 512 << 10;
/// Frames of several calls share one write up to this size: beyond it the first would wait for the last.
const WRITE_BYTES: usize = 64 << 10;
/// A dead connection is noticed by these pings (Kubernetes: `HTTP2_READ_IDLE_TIMEOUT_SECONDS`, `HTTP2_PING_TIMEOUT_SECONDS`).
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
/// The highest number of a stream.
const ID_MAX: u32 = (1 << 31) - 1;

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Its answer is complete: it stays at this place until it is released.
    Answer {
        call: usize,
        place: usize,
    },
    Failed {
        call: usize,
        failure: Failure,
    },
    /// The server has not acted on it and says so, or has never seen it: it may be sent again.
    Unprocessed {
        call: usize,
        failure: Failure,
    },
}

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Session {
    cutter: Cutter,
    decoder: Decoder,
    peer: Peer,
    /// Whether the server's first frame has come, which must be SETTINGS.
    welcomed: bool,
    streams: Streams,
    next_id: u32,
    /// Streams from this number on have not been passed to the connection.
    unwritten: u32,
    form: Form,
    allowance: Allowance,
    grant: Grant,
    /// Streams with data that their own window lets through, longest wait first.
    sending: VecDeque<u32>,
    /// Frames to be written.
    out: Vec<u8>,
    /// Bytes of replies to the server since everything was written.
    replies: usize,
    patience: Patience,
    /// Whether the server has broken a rule.
    at_fault: bool,
    /// An incomplete header block: its stream, and whether it ends that stream.
    continued: Option<(u32, bool)>,
    block: Vec<u8>,
    head: hpack::Head,
    ended: VecDeque<Ended>,
    /// The server's message when it began to end the connection.
    farewell: Option<String>,
    heard: Instant,
    pinged: Option<Instant>,
}

impl Session {
    /// Begins with the client's preface.
    pub(super) fn new(now: Instant) -> Self {
        let mut out = Vec::with_capacity(WRITE_BYTES + 2 * PAYLOAD_MAX_BYTES);
        out.extend_from_slice(frame::PREFACE);
        let head_max = u32::try_from(HEAD_MAX_BYTES).unwrap_or(u32::MAX);
        let own = [
            (settings::ENABLE_PUSH, 0),
            (settings::INITIAL_WINDOW_SIZE, WINDOW_BYTES),
            (settings::MAX_HEADER_LIST_SIZE, head_max),
        ];
        frame::settings(&own, &mut out);
        frame::window_update(0, CONNECTION_WINDOW_BYTES - WINDOW_AT_FIRST_BYTES, &mut out);
        Self {
            cutter: Cutter::new(),
            decoder: Decoder::new(),
            peer: Peer::default(),
            welcomed: false,
            streams: Streams::default(),
            next_id: 1,
            unwritten: 1,
            form: Form::Literal,
            allowance: Allowance::new(WINDOW_AT_FIRST_BYTES),
            grant: Grant::new(CONNECTION_WINDOW_BYTES),
            sending: VecDeque::with_capacity(STREAMS_UNTIL_TOLD as usize),
            out,
            replies: 0,
            patience: Patience::new(now),
            at_fault: false,
            continued: None,
            block: Vec::new(),
            head: hpack::Head::default(),
            ended: VecDeque::with_capacity(STREAMS_UNTIL_TOLD as usize),
            farewell: None,
            heard: now,
            pinged: None,
        }
    }

    pub(super) fn open_count(&self) -> usize {
        self.streams.open_count()
    }

    /// Streams that the server allows at once, as far as known.
    pub(super) fn streams_max(&self) -> usize {
        self.peer.streams_max as usize
    }

    /// Whether the connection takes no further calls: the server wants to end it, or its numbers are used up.
    pub(super) fn retired(&self) -> bool {
        self.farewell.is_some() || self.next_id > ID_MAX
    }

    /// Opens a stream for a call. There must be room for it.
    pub(super) fn open(&mut self, call: usize, head: &request::Head, length: usize) -> u32 {
        let id = self.next_id;
        self.next_id += 2;
        if self.welcomed {
            self.form = head.form_after(self.form, self.peer.table_bytes as usize);
        }
        frame::headers(&[head.block(self.form), Length::of(length).field()], id, length == 0, &mut self.out);
        self.patience.sent();
        if self.form == Form::Teaching {
            self.form = Form::Taught;
        }
        let stream = self.streams.open(id, call, length, self.peer.window_bytes);
        if length > 0 {
            stream.queued = true;
            self.sending.push_back(id);
        }
        id
    }

    /// Ends a stream without a waiter; returns the step that its call was waiting for.
    pub(super) fn cancel(&mut self, id: u32) -> Awaited {
        let Some(place) = self.streams.end(id) else { return Awaited::Head };
        let stream = self.streams.at(place);
        let awaited = match stream.begun {
            Some(_) => Awaited::Body,
            None if stream.sent < stream.length => Awaited::Window,
            None => Awaited::Head,
        };
        self.streams.release(place);
        frame::reset(id, Code::CANCEL, &mut self.out);
        awaited
    }

    /// Appends as much of the requests' bodies to the other frames as windows and one write allow.
    pub(super) fn fill<'b>(&mut self, body: impl Fn(usize) -> [&'b [u8]; 3]) {
        while self.out.len() < WRITE_BYTES
            && let Some(&id) = self.sending.front()
        {
            let Some(stream) = self.streams.find(id) else {
                self.sending.pop_front();
                continue;
            };
            let left = stream.length - stream.sent;
            let allowed = stream.allowance.bytes().min(PAYLOAD_MAX_BYTES);
            let length = left.min(allowed).min(self.allowance.bytes());
            if length == 0 && allowed > 0 {
                // The connection's window is used up.
                return;
            }
            if length > 0 {
                frame::data(length, id, length == left, &mut self.out);
                self.patience.sent();
                append(body(stream.call), stream.sent, length, &mut self.out);
                stream.sent += length;
                stream.allowance.spend(length);
                self.allowance.spend(length);
            }
            // A stream whose own window is used up comes back when that window grows.
            if length == left || length == 0 {
                stream.queued = false;
                self.sending.pop_front();
            }
        }
    }

    /// Frames that wait to be written.
    pub(super) fn out(&self) -> &[u8] {
        &self.out
    }

    /// The connection has taken the frames; `all`: and no earlier ones wait.
    pub(super) fn written(&mut self, all: bool) {
        self.out.clear();
        self.unwritten = self.next_id;
        if all {
            self.replies = 0;
        }
    }

    /// Processes received data. A fault ends the connection, and the server gets the reason.
    pub(super) fn feed(&mut self, data: &[u8], now: Instant) -> Result<(), Failure> {
        self.heard = now;
        let mut cutter = std::mem::take(&mut self.cutter);
        let fed = cutter.feed(data, |frame| self.on_frame(frame, now));
        self.cutter = cutter;
        fed.map_err(|fault| {
            self.at_fault = true;
            frame::go_away(fault.code, &mut self.out);
            let Fault { code, text } = fault;
            if self.welcomed {
                Failure::http(format!("the server does not keep to HTTP/2: {text} ({code})"))
            } else {
                Failure::http(format!("what came is no HTTP/2: {text}"))
            }
        })
    }

    /// Whether the server has broken a rule; then it gets the reason.
    pub(super) fn at_fault(&self) -> bool {
        self.at_fault
    }

    /// Announces the end of the connection.
    pub(super) fn say_goodbye(&mut self) {
        frame::go_away(Code::NO_ERROR, &mut self.out);
    }

    /// The connection has ended, and with it every call. Calls whose frames were never written may be sent again.
    pub(super) fn fail_all(&mut self, why: &Failure, unwritten_may_go: bool) {
        let because = self.farewell.as_ref().map(|farewell| format!(" ({farewell})")).unwrap_or_default();
        while let Some((id, stream)) = self.streams.oldest() {
            let stage =
                if stream.begun.is_some() { "the body broke off" } else { "the connection broke before an answer" };
            let failure = match why.class {
                Class::HttpError => Failure::http(format!("{stage}: {}{because}", why.text)),
                _ => why.clone(),
            };
            self.end_unanswered(id, failure, unwritten_may_go && id >= self.unwritten);
        }
    }

    /// The results of calls, in the order in which they were known.
    pub(super) fn next_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// The answer at a place, and the time of its start.
    pub(super) fn answer(&self, place: usize) -> (Seen<'_>, Option<Instant>) {
        let Stream { head, body, begun, .. } = self.streams.at(place);
        let content_type = Some(&head.content_type[..]).filter(|text| !text.is_empty());
        let status = head.status.unwrap_or(0);
        (Seen { status, content_type, coding: head.coding, body }, *begun)
    }

    /// The answer has been processed.
    pub(super) fn release(&mut self, place: usize) {
        self.streams.release(place);
    }

    /// Pings a server that was silent for long. An error means that it did not answer.
    pub(super) fn check(&mut self, now: Instant) -> Result<(), &'static str> {
        match self.pinged {
            Some(since) if now.saturating_duration_since(since) >= PING_LIMIT => {
                return Err("no answer to a PING in 15 s");
            }
            None if now.saturating_duration_since(self.heard) >= PING_AFTER => {
                frame::ping(&mut self.out);
                self.pinged = Some(now);
            }
            _ => {}
        }
        Ok(())
    }

    fn end_unanswered(&mut self, id: u32, failure: Failure, unprocessed: bool) {
        let Some(place) = self.streams.end(id) else { return };
        let call = self.streams.at(place).call;
        self.streams.release(place);
        self.ended.push_back(if unprocessed {
            Ended::Unprocessed { call, failure }
        } else {
            Ended::Failed { call, failure }
        });
    }
}

/// Appends this many bytes of the parts, from the given place on. There must be that many.
fn append(parts: [&[u8]; 3], mut from: usize, mut length: usize, out: &mut Vec<u8>) {
    for part in parts {
        let rest = part.get(from..).unwrap_or_default();
        from = from.saturating_sub(part.len());
        let now = &rest[..rest.len().min(length)];
        out.extend_from_slice(now);
        length -= now.len();
    }
}

#[cfg(test)]
mod tests;
