//! HTTP/2 on a channel (RFC 9113): many calls at a time, each on a stream of its own.
//!
//! [`Connection::open`] collects requests and [`Connection::write`] sends them, so that calls that are due at the same
//! time share a write. Request bodies stay with the caller until windows let them through.

mod flow;
mod frame;
mod hpack;
mod patience;
mod request;
mod session;
mod settings;
mod streams;

/// The single frames, for clients that write them by hand.
pub(crate) mod raw {
    pub(crate) use super::frame::{
        Code, Cutter, Fault, Frame, PAYLOAD_MAX_BYTES, PREFACE, data, headers, pong, settings, settings_acknowledged,
    };
    pub(crate) use super::request::{METHOD_POST, SCHEME_HTTPS, number};
}

use std::time::Instant;

use super::channel::{Broken, Came, Channel, Scratch};
use super::{Opening, Seen};
use crate::failure::{Awaited, Failure};
use session::Session;

pub(crate) use request::Head;
pub(crate) use session::Ended;
pub(crate) use settings::STREAMS_UNTIL_TOLD;

/// An open connection.
pub(crate) struct Connection {
    channel: Channel,
    session: Session,
    calls: u32,
}

/// The state of a connection after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Fine,
    /// There is more to read, but another connection has its turn.
    More,
    /// The connection has ended, and so have its calls: [`Connection::next_ended`] has their results.
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

    /// Calls that were begun on it.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Calls in flight.
    pub(crate) fn open_count(&self) -> usize {
        self.session.open_count()
    }

    /// Further calls that the server allows now, as far as known.
    pub(crate) fn room(&self) -> usize {
        self.session.streams_max().saturating_sub(self.session.open_count())
    }

    /// Whether it takes no further calls.
    pub(crate) fn retired(&self) -> bool {
        self.session.retired() || !self.channel.usable()
    }

    /// Begins a call with a body of this length; returns the stream's number. There must be room.
    pub(crate) fn open(&mut self, call: usize, head: &Head, length: usize) -> u32 {
        self.calls += 1;
        self.session.open(call, head, length)
    }

    /// Ends a call without a waiter, and returns the step that it was waiting for. The connection goes on.
    pub(crate) fn cancel(&mut self, stream: u32) -> Awaited {
        self.session.cancel(stream)
    }

    /// Writes as much as the socket takes. `body` has the bodies of calls.
    pub(crate) fn write<'b>(&mut self, body: impl Fn(usize) -> [&'b [u8]; 3], scratch: &mut Scratch) -> Standing {
        loop {
            // No more data is added while the server does not read.
            if self.channel.backlog() == 0 {
                self.session.fill(&body);
            }
            if self.session.out().is_empty() {
                return Standing::Fine;
            }
            if let Err(error) = self.channel.send(&[self.session.out()], scratch) {
                self.session.fail_all(&error.failure, error.unsent);
                return Standing::Over;
            }
            self.session.written(self.channel.backlog() == 0);
        }
    }

    /// Reads available data. `closing`: the server has hung up, so reading goes on to the end.
    pub(crate) fn receive(&mut self, closing: bool, scratch: &mut Scratch) -> Standing {
        let flushed = self.channel.flush();
        let (now, session) = (Instant::now(), &mut self.session);
        let why = match self.channel.receive(closing, scratch, |data| session.feed(data, now)) {
            Ok(came) => match (came, flushed) {
                (Came::End, _) => Failure::http("the server closed it".to_owned()),
                (_, Err(error)) => Failure::http(error.to_string()),
                (Came::More, Ok(())) => return Standing::More,
                (Came::All, Ok(())) => return Standing::Fine,
            },
            Err(Broken::Tcp(error)) => Failure::http(error.to_string()),
            Err(Broken::Failed(failure)) => failure,
        };
        self.session.fail_all(&why, false);
        Standing::Over
    }

    /// The next result of a call, if there is one.
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        self.session.next_ended()
    }

    /// The answer at a place that [`Ended::Answer`] named, and the time of its start.
    pub(crate) fn answer(&self, place: usize) -> (Seen<'_>, Option<Instant>) {
        self.session.answer(place)
    }

    /// The answer has been processed.
    pub(crate) fn release(&mut self, place: usize) {
        self.session.release(place);
    }

    /// Pings a server that was silent for long.
    pub(crate) fn check(&mut self, now: Instant) -> Standing {
        match self.session.check(now) {
            Ok(()) => Standing::Fine,
            Err(why) => {
                self.session.fail_all(&Failure::http(why.to_owned()), false);
                Standing::Over
            }
        }
    }

    /// Sends GOAWAY and a closing alert, if that is possible at once.
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
