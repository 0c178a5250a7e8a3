//! HTTP/2 on a channel (RFC 9113): many calls at the same time, each on its own stream.
//!
//! [`Connection::open`] collects requests and [`Connection::write`] sends them, so that calls that begin together share
//! a write. The caller stores request bodies until flow-control windows allow their sending.

mod flow;
mod frame;
mod hpack;
mod patience;
mod request;
mod session;
mod settings;
mod streams;

/// Functions for single frames, for clients that write frames by hand.
pub(crate) mod raw {
    pub(crate) use super::frame::{
        Code, Cutter, Fault, Frame, PAYLOAD_MAX_BYTES, PREFACE, data, headers, pong, settings, settings_acknowledged,
    };
    pub(crate) use super::request::{METHOD_POST, SCHEME_HTTPS, number};
}

use std::time::Instant;

use super::channel::{Broken, Came, Channel, Scratch};
use super::{Opening, WholeAnswer};
use crate::failure::{Awaited, Failure};
use session::Session;

pub(crate) use request::Head;
pub(crate) use session::Ended;
pub(crate) use settings::STREAMS_UNTIL_TOLD;

pub(crate) struct Connection {
    channel: Channel,
    session: Session,
    calls: u32,
}

/// The state of a connection after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Fine,
    /// More data is available, but the caller serves other connections first.
    More,
    /// The connection and its calls have ended; [`Connection::next_ended`] returns the results of the calls.
    Over,
}

impl Connection {
    /// A connection on a newly opened channel; the first write sends the preface.
    pub(crate) fn new(mut channel: Channel, scratch: &mut Scratch) -> Result<Self, Failure> {
        channel.reserve();
        let now = Instant::now();
        let mut session = Session::new(now);
        channel.receive_early(scratch, |data| session.feed(data, now))?;
        Ok(Self { channel, session, calls: 0 })
    }

    pub(crate) fn opening(&self) -> Opening {
        self.channel.opening()
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn open_count(&self) -> usize {
        self.session.open_count()
    }

    /// Number of further calls that the server allows now, as far as known.
    pub(crate) fn room(&self) -> usize {
        self.session.streams_max().saturating_sub(self.session.open_count())
    }

    /// Whether the connection accepts no further calls.
    pub(crate) fn retired(&self) -> bool {
        self.session.retired() || !self.channel.usable()
    }

    /// Begins a call with a body of this length; returns the number of its stream. The connection must have room for a
    /// call.
    pub(crate) fn open(&mut self, call: usize, head: &Head, length: usize) -> u32 {
        self.calls += 1;
        self.session.open(call, head, length)
    }

    /// Ends a call whose result is not needed any more, and returns the phase in which the call was. The connection
    /// continues.
    pub(crate) fn cancel(&mut self, stream: u32) -> Awaited {
        self.session.cancel(stream)
    }

    /// Writes as much as the socket accepts. `body` returns the body of a call by its number.
    pub(crate) fn write<'b>(
        &mut self,
        body: impl Fn(usize) -> [&'b [u8]; 3],
        scratch: &mut Scratch,
    ) -> ConnectionState {
        loop {
            // No more data is added while the server does not read.
            if self.channel.backlog() == 0 {
                self.session.fill(&body);
            }
            if self.session.out().is_empty() {
                return ConnectionState::Fine;
            }
            if let Err(error) = self.channel.send(&[self.session.out()], scratch) {
                self.session.fail_all(&error.failure, error.unsent);
                return ConnectionState::Over;
            }
            self.session.written(self.channel.backlog() == 0);
        }
    }

    /// Reads available data of all answers. If `closing` is set, the server has closed the connection, so reading goes
    /// on to the end.
    pub(crate) fn receive(&mut self, closing: bool, scratch: &mut Scratch) -> ConnectionState {
        let flushed = self.channel.flush();
        let (now, session) = (Instant::now(), &mut self.session);
        let why = match self.channel.receive(closing, scratch, |data| session.feed(data, now)) {
            Ok(came) => match (came, flushed) {
                (Came::End, _) => Failure::http("the server closed it".to_owned()),
                (_, Err(error)) => Failure::http(error.to_string()),
                (Came::More, Ok(())) => return ConnectionState::More,
                (Came::All, Ok(())) => return ConnectionState::Fine,
            },
            Err(Broken::Tcp(error)) => Failure::http(error.to_string()),
            Err(Broken::Failed(failure)) => failure,
        };
        self.session.fail_all(&why, false);
        ConnectionState::Over
    }

    /// The next result of a call, if one is known.
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        self.session.next_ended()
    }

    /// The answer with the index from [`Ended::Answer`], and the time of its first byte.
    pub(crate) fn answer(&self, place: usize) -> (WholeAnswer<'_>, Option<Instant>) {
        self.session.answer(place)
    }

    /// Frees an answer after it was processed.
    pub(crate) fn release(&mut self, place: usize) {
        self.session.release(place);
    }

    /// Sends a PING to a server that was silent for a long time.
    pub(crate) fn check(&mut self, now: Instant) -> ConnectionState {
        match self.session.check(now) {
            Ok(()) => ConnectionState::Fine,
            Err(why) => {
                self.session.fail_all(&Failure::http(why.to_owned()), false);
                ConnectionState::Over
            }
        }
    }

    /// Sends GOAWAY and a closing alert, if the socket accepts them at once.
    pub(crate) fn close(mut self, scratch: &mut Scratch) {
        if self.channel.backlog() == 0 {
            // If the server broke a rule, the GOAWAY with that fault waits to be written instead.
            if !self.session.at_fault() {
                self.session.say_goodbye();
            }
            // The server may have closed already, which is harmless now.
            let _ = self.channel.send(&[self.session.out()], scratch);
        }
        self.channel.close(scratch);
    }
}
