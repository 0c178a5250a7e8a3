//! HTTP/1.1 on a channel, with one call at a time.

mod answer;
mod chunked;

use std::io;

use super::channel::{Broken, Came, Channel, Scratch, SendError};
use super::{Opening, WholeAnswer};
use crate::failure::Failure;
use answer::Reader;

/// An open connection, with or without a call.
pub(crate) struct Connection {
    channel: Channel,
    reader: Reader,
    calls: u32,
}

/// The result of [`Connection::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// No complete answer has come yet.
    Nothing,
    /// The expected answer is complete.
    Answer,
    /// The server closed the connection while no answer was expected.
    Closed,
    /// More data is available, but the caller serves other connections first.
    More,
}

impl Connection {
    /// A connection on a newly opened channel.
    pub(crate) fn new(mut channel: Channel, scratch: &mut Scratch) -> Result<Self, Failure> {
        let mut reader = Reader::new();
        channel.receive_early(scratch, |data| reader.feed(data))?;
        Ok(Self { channel, reader, calls: 0 })
    }

    pub(crate) fn opening(&self) -> Opening {
        self.channel.opening()
    }

    /// Number of requests that were sent over the connection.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether another request may use the connection after the latest answer.
    pub(crate) fn reusable(&self) -> bool {
        // A server that answered before it had the whole request would take the rest for the next one.
        let sent = self.channel.backlog() == 0;
        sent && self.channel.usable() && self.reader.keep() && !self.channel.in_record()
    }

    /// Whether the first byte of the answer has come.
    pub(crate) fn answer_begun(&self) -> bool {
        self.reader.begun()
    }

    /// Whether the head of the answer has come, but not its whole body.
    pub(crate) fn in_body(&self) -> bool {
        self.reader.in_body()
    }

    /// The complete answer, after the result [`Received::Answer`].
    pub(crate) fn answer(&self) -> WholeAnswer<'_> {
        self.reader.seen()
    }

    /// Sends the bytes of `parts` as one request, and expects an answer.
    pub(crate) fn send(&mut self, parts: &[&[u8]], scratch: &mut Scratch) -> Result<(), SendError> {
        self.reader.expect();
        self.calls += 1;
        self.channel.send(parts, scratch)
    }

    /// Writes as much of the request as the socket accepts.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.channel.flush()
    }

    /// Reads available data of the answer. If `closing` is set, the server has closed the connection, so reading goes
    /// on to the end.
    pub(crate) fn receive(&mut self, closing: bool, scratch: &mut Scratch) -> Result<Received, Failure> {
        match self.channel.receive(closing, scratch, |data| self.reader.feed(data)) {
            Ok(Came::All) if self.reader.done() => Ok(Received::Answer),
            Ok(Came::All) => Ok(Received::Nothing),
            Ok(Came::More) => Ok(Received::More),
            Ok(Came::End) => self.ended(),
            Err(Broken::Tcp(_)) if self.reader.done() => self.ended(),
            Err(Broken::Tcp(error)) if self.in_body() => Err(Failure::http(format!("the body broke off: {error}"))),
            Err(Broken::Tcp(error)) => Err(Failure::http(format!("the connection broke before an answer: {error}"))),
            Err(Broken::Failed(failure)) => Err(failure),
        }
    }

    /// Called after the answer was processed: no further answer is expected.
    pub(crate) fn rest(&mut self) {
        self.reader.rest();
    }

    /// Sends a closing alert, if the socket accepts it at once.
    pub(crate) fn close(self, scratch: &mut Scratch) {
        self.channel.close(scratch);
    }

    fn ended(&mut self) -> Result<Received, Failure> {
        if self.channel.in_record() && self.in_body() {
            return Err(Failure::http("the body broke off: the connection ended in a TLS record".to_owned()));
        }
        self.reader.end()?;
        Ok(if self.reader.done() { Received::Answer } else { Received::Closed })
    }
}

#[cfg(test)]
mod tests;
