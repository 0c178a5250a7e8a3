//! HTTP/2 on a channel (RFC 9113): many calls at a time, each on a stream of its own.
//!
//! What is sent is put together by [`Connection::open`] and goes out with [`Connection::write`], so that calls that are due
//! at the same time share a write. Request bodies stay where they are until windows let them through.

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

/// How a connection stands after something happened on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Fine,
    /// There is more to read, and it is somebody else's turn.
    More,
    /// It is over, and so are its calls: [`Connection::next_ended`] tells how.
    Over,
}

impl Connection {
    /// On a channel that has just been opened; the preface goes out with the first write.
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

    /// Calls under way.
    pub(crate) fn open_count(&self) -> usize {
        self.session.open_count()
    }

    /// Further calls that the server allows now, as far as is known.
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

    /// Ends a call that nobody waits for any more, and says what it was waiting for. The connection goes on.
    pub(crate) fn cancel(&mut self, stream: u32) -> Awaited {
        self.session.cancel(stream)
    }

    /// Writes what there is to write, as far as that goes. `body` has the bodies of calls.
    pub(crate) fn write<'b>(&mut self, body: impl Fn(usize) -> [&'b [u8]; 3], scratch: &mut Scratch) -> Standing {
        loop {
            // What the server does not read is not made more.
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

    /// Reads what has come. `closing`: the server has hung up, so reading goes on to the end.
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

    /// What became of calls since the last look.
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        self.session.next_ended()
    }

    /// The answer at a place that [`Ended::Answer`] named, and when it began.
    pub(crate) fn answer(&self, place: usize) -> (Seen<'_>, Option<Instant>) {
        self.session.answer(place)
    }

    /// The answer has been looked at.
    pub(crate) fn release(&mut self, place: usize) {
        self.session.release(place);
    }

    /// Asks a server that was silent for long whether it is there.
    pub(crate) fn check(&mut self, now: Instant) -> Standing {
        match self.session.check(now) {
            Ok(()) => Standing::Fine,
            Err(why) => {
                self.session.fail_all(&Failure::http(why.to_owned()), false);
                Standing::Over
            }
        }
    }

    /// Says good-bye, when that can be done at once.
    pub(crate) fn close(mut self, scratch: &mut Scratch) {
        if self.channel.backlog() == 0 {
            // Where the server broke a rule it is told that instead, which waits to be written.
            if !self.session.at_fault() {
                self.session.say_goodbye();
            }
            // The server may be gone, which is all the same now.
            let _ = self.channel.send(&[self.session.out()], scratch);
        }
        self.channel.close(scratch);
    }
}
