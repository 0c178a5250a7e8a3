//! The streams of a connection: open streams, their progress, and their buffers, which are used again. Pure: no I/O.

use std::collections::VecDeque;
use std::time::Instant;

use super::flow::{Allowance, Grant};
use super::frame::Code;
use super::hpack::Head;
use crate::failure::{Failure, MOST_BODY_BYTES};

/// The receive window of a stream, large enough for a body of the largest size and its end.
pub(super) const WINDOW_BYTES: u32 = 5 << 20;
/// The largest buffer that is kept after an answer; larger ones are freed.
const KEPT_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Stream {
    pub call: usize,
    pub allowance: Allowance,
    pub grant: Grant,
    /// The length of the request's body, and the number of bytes that were written.
    pub length: usize,
    pub sent: usize,
    /// Whether the stream is in the queue of streams that can send data.
    pub queued: bool,
    /// The head of the answer; its status is set after the head has come.
    pub head: Head,
    pub body: Vec<u8>,
    /// The time at which the head came.
    pub begun: Option<Instant>,
}

/// Why a stream cannot continue: the code that the server gets, and the failure of the call.
pub(super) type Broken = (Code, Failure);

impl Stream {
    fn new() -> Self {
        Self {
            call: 0,
            allowance: Allowance::new(0),
            grant: Grant::new(WINDOW_BYTES),
            length: 0,
            sent: 0,
            queued: false,
            head: Head::default(),
            body: Vec::new(),
            begun: None,
        }
    }

    /// Handles a header block, and returns true if it ended the answer.
    pub(super) fn on_head(&mut self, head: &Head, end: bool, now: Instant) -> Result<bool, Broken> {
        if self.begun.is_some() {
            // Trailers, which are ignored.
            return if end { self.ended() } else { Err(malformed("headers came in the middle of its body")) };
        }
        let status = head.status.ok_or_else(|| malformed("it has no :status"))?;
        if status == 101 {
            return Err(malformed("the server switches to another protocol, which HTTP/2 does not have"));
        }
        // An interim answer: the real one follows (RFC 9110, section 15.2).
        if status < 200 {
            return if end { Err(malformed("it is an interim answer and ends")) } else { Ok(false) };
        }
        if let Some(bytes) = head.length.filter(|bytes| *bytes > MOST_BODY_BYTES as u64) {
            return Err((Code::CANCEL, Failure::body_too_large(Some(bytes))));
        }
        self.begun = Some(now);
        (self.head.status, self.head.length, self.head.coding) = (head.status, head.length, head.coding);
        self.head.content_type.extend_from_slice(&head.content_type);
        if end { self.ended() } else { Ok(false) }
    }

    /// Handles data of the body, and returns true if it ended the answer.
    pub(super) fn on_data(&mut self, data: &[u8], end: bool) -> Result<bool, Broken> {
        if self.begun.is_none() {
            return Err(malformed("its body came before its head"));
        }
        if self.body.len() + data.len() > MOST_BODY_BYTES {
            return Err((Code::CANCEL, Failure::body_too_large(None)));
        }
        self.body.extend_from_slice(data);
        if end { self.ended() } else { Ok(false) }
    }

    /// Checks the end of an answer. A body must have its announced length (RFC 9113, section 8.1.1), except where no
    /// body is allowed.
    fn ended(&self) -> Result<bool, Broken> {
        let bodiless = matches!(self.head.status, Some(204 | 304));
        match self.head.length {
            Some(length) if !bodiless && length != self.body.len() as u64 => {
                let text = format!("the body broke off: {} bytes of {length} came", self.body.len());
                Err((Code::PROTOCOL_ERROR, Failure::http(text)))
            }
            _ => Ok(true),
        }
    }
}

fn malformed(why: &str) -> Broken {
    (Code::PROTOCOL_ERROR, Failure::http(format!("the answer is malformed: {why}")))
}

/// All streams of a connection. An open stream is found by its number; later its answer is found by its index until it
/// was processed.
#[derive(Debug, Default)]
pub(super) struct Streams {
    places: Vec<Stream>,
    free: Vec<usize>,
    /// Number and index of each open stream, sorted by number.
    open: VecDeque<(u32, usize)>,
}

impl Streams {
    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Opens a stream. The number of a new stream must be higher than all earlier numbers.
    pub(super) fn open(&mut self, id: u32, call: usize, length: usize, allowance: u32) -> &mut Stream {
        debug_assert!(self.open.back().is_none_or(|(last, _)| *last < id));
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Stream::new());
            self.places.len() - 1
        });
        self.open.push_back((id, place));
        let stream = &mut self.places[place];
        (stream.call, stream.length, stream.sent, stream.queued, stream.begun) = (call, length, 0, false, None);
        (stream.allowance, stream.grant) = (Allowance::new(allowance), Grant::new(WINDOW_BYTES));
        stream.head.clear();
        stream.body.clear();
        stream.body.shrink_to(KEPT_BYTES);
        stream
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut Stream> {
        let at = self.open.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.places.get_mut(self.open[at].1)
    }

    /// Ends a stream, which keeps its index until [`Streams::release`].
    pub(super) fn end(&mut self, id: u32) -> Option<usize> {
        let at = self.open.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.open.remove(at).map(|(_, place)| place)
    }

    pub(super) fn at(&self, place: usize) -> &Stream {
        &self.places[place]
    }

    pub(super) fn release(&mut self, place: usize) {
        self.free.push(place);
    }

    pub(super) fn newest(&self) -> Option<(u32, &Stream)> {
        self.open.back().map(|(id, place)| (*id, &self.places[*place]))
    }

    pub(super) fn oldest(&self) -> Option<(u32, &Stream)> {
        self.open.front().map(|(id, place)| (*id, &self.places[*place]))
    }

    /// Calls `act` for every open stream with its number, oldest first.
    pub(super) fn each_open(&mut self, mut act: impl FnMut(u32, &mut Stream)) {
        for (id, place) in &self.open {
            act(*id, &mut self.places[*place]);
        }
    }
}
