//! The client's side of an HTTP/2 connection (RFC 9113): received frames, sent frames, and the result of each call.
//! Pure: no I/O.
//!
//! Time is an argument of functions, and no I/O happens in this module, so a test can imitate any server. A violation
//! of HTTP/2 by the server ends the connection; an error in one answer ends only its stream.

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
use crate::socket::WholeAnswer;

/// The receive window of a connection, in bytes: after this many bytes of all streams the server must wait.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// The initial flow-control window of a connection, in bytes (RFC 9113, section 6.9.2).
const WINDOW_AT_FIRST_BYTES: u32 = 65_535;
/// Maximum number of bytes of an answer's head, as with HTTP/1.1. Go's client accepts 10 MiB; no webhook sends nearly
/// as much.
const HEAD_MAX_BYTES: usize = 512 << 10;
/// The size in bytes up to which frames of several calls share one write. With larger writes the first call would wait
/// for the last.
const WRITE_BYTES: usize = 64 << 10;
/// How long a server may be silent before a PING is sent, which detects a dead connection (Kubernetes:
/// `HTTP2_READ_IDLE_TIMEOUT_SECONDS`, `HTTP2_PING_TIMEOUT_SECONDS`).
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
const ID_MAX: u32 = (1 << 31) - 1;

#[derive(Debug)]
pub(crate) enum Ended {
    /// The answer of the call is complete, and is stored under this index until it is released.
    Answer {
        call: usize,
        place: usize,
    },
    Failed {
        call: usize,
        failure: Failure,
    },
    /// The server has certainly not processed the call, so the call may be sent again.
    Unprocessed {
        call: usize,
        failure: Failure,
    },
}

/// The state of an HTTP/2 connection.
#[derive(Debug)]
pub(super) struct Session {
    cutter: Cutter,
    decoder: Decoder,
    peer: Peer,
    /// Whether the server's first frame has come, which must be SETTINGS.
    welcomed: bool,
    streams: Streams,
    next_id: u32,
    /// The number of the first stream whose request was not passed to the socket.
    unwritten: u32,
    form: Form,
    allowance: Allowance,
    grant: Grant,
    /// Streams with data that their own flow-control window allows; the stream that has waited longest is first.
    sending: VecDeque<u32>,
    /// Bytes of frames that wait to be written.
    out: Vec<u8>,
    /// Bytes of replies to the server since all output was last written.
    replies: usize,
    patience: Patience,
    /// Whether the server has violated the protocol.
    at_fault: bool,
    /// The stream of a header block whose end has not come, and whether that block ends the stream.
    continued: Option<(u32, bool)>,
    block: Vec<u8>,
    head: hpack::Head,
    ended: VecDeque<Ended>,
    /// The server's message in its GOAWAY.
    farewell: Option<String>,
    heard: Instant,
    pinged: Option<Instant>,
}

impl Session {
    /// A session, whose first output is the client's preface.
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

    /// The number of simultaneous streams that the server allows, as far as known.
    pub(super) fn streams_max(&self) -> usize {
        self.peer.streams_max as usize
    }

    /// Whether the connection accepts no further calls: the server wants to end it, or all stream numbers are used.
    pub(super) fn retired(&self) -> bool {
        self.farewell.is_some() || self.next_id > ID_MAX
    }

    /// Opens a stream for a call. The connection must have room for a call.
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

    /// Ends a stream whose result is not needed any more, and returns the phase in which its call was.
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

    /// Appends as much of the requests' bodies to the output as flow-control windows and the size of a write allow.
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

    /// The bytes of frames that wait to be written.
    pub(super) fn out(&self) -> &[u8] {
        &self.out
    }

    /// Called after the socket accepted the frames. If `all` is set, every byte of the output was written.
    pub(super) fn written(&mut self, all: bool) {
        self.out.clear();
        self.unwritten = self.next_id;
        if all {
            self.replies = 0;
        }
    }

    /// Processes data that the server sent. A violation of HTTP/2 ends the connection, and the server gets the reason.
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

    /// Whether the server has violated the protocol and gets the reason.
    pub(super) fn at_fault(&self) -> bool {
        self.at_fault
    }

    /// Appends a GOAWAY to the output.
    pub(super) fn say_goodbye(&mut self) {
        frame::go_away(Code::NO_ERROR, &mut self.out);
    }

    /// Ends the connection and every call. Calls whose frames were never written may be sent again.
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

    /// The next result of a call, in the order in which results became known.
    pub(super) fn next_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// The answer with this index, and the time of its first byte.
    pub(super) fn answer(&self, place: usize) -> (WholeAnswer<'_>, Option<Instant>) {
        let Stream { head, body, begun, .. } = self.streams.at(place);
        let content_type = Some(&head.content_type[..]).filter(|text| !text.is_empty());
        let status = head.status.unwrap_or(0);
        (WholeAnswer { status, content_type, coding: head.coding, body }, *begun)
    }

    /// Frees an answer after it was processed.
    pub(super) fn release(&mut self, place: usize) {
        self.streams.release(place);
    }

    /// Sends a PING to a server that was silent for a long time. An error means that the server did not answer a PING.
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

/// Appends `length` bytes of the three `parts` to `out`, from the position `from` on. `parts` must contain as many
/// bytes.
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
