//! Reads an open watch: turns the bytes of its body into events.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::mistakes::{Mistake, Mistakes};
use crate::object::Event;
use crate::revision::Revision;
use crate::wire::{Answer, Ask, Lines, Trouble, Wire};

/// `timeoutSeconds` of each watch. After this time the server ends the watch cleanly, and the client resumes the watch.
const SERVER_TIMEOUT_S: u64 = 20;

/// The point from which a watch delivers events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The watch delivers events after this revision.
    After(Revision),
    /// The watch is requested without a revision (a mistake). To a watch without a revision the server sends events for
    /// its present objects, and none for objects deleted before.
    Anywhere,
    /// Events for the present objects, and a bookmark after the last of them.
    Initial,
}

#[derive(Debug)]
pub enum Message {
    Event(Event),
    /// Bytes of an incomplete line. Even an incomplete line shows that the server is alive.
    Bytes,
    End,
    Broke(Trouble),
    /// A line that is not an event.
    Unreadable(String),
}

pub struct Stream {
    answer: Answer,
    lines: Lines,
    mistakes: Mistakes,
}

/// Messages of a watch that wait to be handled.
pub type Backlog = VecDeque<Message>;

impl Stream {
    /// Opens a watch and waits for the head of its answer.
    pub async fn open(
        wire: &Wire,
        path: &str,
        start: &Start,
        patient: bool,
        mistakes: &Mistakes,
    ) -> Result<Self, Trouble> {
        let from = match start {
            Start::After(revision) => format!("&resourceVersion={revision}"),
            Start::Anywhere => String::new(),
            Start::Initial => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        // A watch of one object sets its own timeout.
        let timeout = if path.contains("timeoutSeconds=") {
            String::new()
        } else {
            format!("&timeoutSeconds={SERVER_TIMEOUT_S}")
        };
        let and = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{and}watch=true&allowWatchBookmarks=true{timeout}{from}");
        let answer = wire.send(&Ask::get(path).patiently(patient)).await?;
        if answer.status != 200 {
            return Err(answer.refusal().await);
        }
        Ok(Self { answer, lines: Lines::default(), mistakes: mistakes.clone() })
    }

    /// Waits for the next message of the watch. This function is cancel safe: no bytes are lost if its future is
    /// dropped.
    pub async fn next(&mut self) -> Message {
        loop {
            if let Some(line) = self.lines.take() {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return self.read(&line);
            }
            if self.lines.is_overlong() {
                return Message::Unreadable("a line that does not end".to_owned());
            }
            match self.answer.chunk().await {
                Some(Ok(chunk)) => {
                    if self.mistakes.made(Mistake::DecodesPerChunk) {
                        decode_or_die(&chunk);
                    }
                    if self.mistakes.made(Mistake::OneChunkOneEvent) {
                        return Event::parse(&chunk).map_or(Message::Bytes, Message::Event);
                    }
                    self.lines.push(&chunk);
                    if let Some(line) = self.lines.take() {
                        return self.read(&line);
                    }
                    return Message::Bytes;
                }
                Some(Err(_)) if self.mistakes.made(Mistake::SwallowsReadErrors) => std::future::pending().await,
                Some(Err(trouble)) => return Message::Broke(trouble),
                None if self.lines.is_empty() => return Message::End,
                None => return Message::Broke(Trouble::Broke("the watch ended within a line".to_owned())),
            }
        }
    }

    /// Closes the watch and its connection, so that the next watch uses another connection.
    pub fn abandon(mut self) {
        self.answer.retire();
    }

    fn read(&self, line: &Bytes) -> Message {
        match Event::parse(line) {
            Ok(mut event) => {
                event.raw = self.mistakes.made(Mistake::UnboundedQueue).then(|| Bytes::copy_from_slice(line));
                Message::Event(event)
            }
            Err(why) => Message::Unreadable(why),
        }
    }
}

/// With the mistake `decodes-per-chunk`: ends the process if a chunk by itself is not valid UTF-8, like an uncaught
/// exception.
fn decode_or_die(chunk: &[u8]) {
    if let Err(error) = std::str::from_utf8(chunk) {
        eprintln!("planted-client: a chunk is not UTF-8: {error}");
        std::process::exit(1);
    }
}
