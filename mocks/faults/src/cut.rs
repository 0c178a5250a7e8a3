//! `watch-reset`, `watch-end`, `watch-eof` and `error-event`: each matching watch ends. The faults apply to watches
//! that are open when the fault begins, and to later watches. With `afterEvents`, a fault applies to a watch that has
//! sent that many events. A hit is one ended watch.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::reason_of;
use super::settings::keys;
use super::{
    ActiveFault, Behaviour, Code, Effect, Ending, Error, Fault, Flow, Http2Code, Item, Name, PlayedRow, Row, Scene,
    Stream, Then, WatchState,
};

keys! {
    pub struct ResetKeys {
        code "code": Code = ("`internal-error`", "HTTP/2"),
    }
}

keys! {
    pub struct EofKeys {
        mid_line "midLine": bool = ("false", "half a line is sent first; needs an event while the fault is armed"),
    }
}

keys! {
    pub struct ErrorEventKeys {
        code "code": Code = ("410", ""),
        reason "reason": String = ("the one that belongs to the code", ""),
        then "then": Then = ("`end`", "`end` or `hold`"),
    }
}

pub(super) const WATCH_RESET: PlayedRow =
    Row::watches("watch-reset", "The connection of each open watch is reset (RST; `RST_STREAM` on HTTP/2).")
        .takes::<ResetKeys>()
        .instant()
        .refuses(|fault| needs_a_word(fault.keys::<ResetKeys>().code))
        .sees("the connection is reset (RST); on HTTP/2 only the stream (RST_STREAM with this code)")
        .hit("a watch")
        .played(|fault| Box::new(Cut::new(fault)));

pub(super) const WATCH_END: PlayedRow =
    Row::watches("watch-end", "Watches end cleanly: the last chunk on HTTP/1.1, `END_STREAM` on HTTP/2.")
        .instant()
        .sees("the stream ends cleanly: last chunk, or END_STREAM")
        .hit("a watch")
        .played(|fault| Box::new(Cut::new(fault)));

pub(super) const WATCH_EOF: PlayedRow = Row::watches(
    "watch-eof",
    "The connection of a watch ends with FIN in the middle of the body, without TLS `close_notify`.",
)
.takes::<EofKeys>()
.instant()
.sees("the whole connection ends with FIN in the middle of the body, without TLS close_notify")
.hit("a watch")
.played(|fault| Box::new(Cut::new(fault)));

pub(super) const ERROR_EVENT: PlayedRow = Row::watches(
    "error-event",
    "An `ERROR` event with a `Status` in the stream; the stream then ends or stays open without a byte.",
)
.takes::<ErrorEventKeys>()
.instant()
.refuses(needs_a_status)
.sees("an `ERROR` event with a Status, then the end or silence")
.hit("a watch")
.played(|fault| Box::new(Cut::new(fault)));

/// The default code of `error-event`, which is the most frequent code in real watches.
const CODE: u16 = 410;

#[derive(Debug)]
pub(super) struct Cut {
    how: How,
    words: &'static str,
}

#[derive(Debug)]
enum How {
    Ending(Ending),
    /// Sends an `ERROR` event, after which the stream is silent or ends.
    Error {
        line: Bytes,
        holds: bool,
    },
    /// Ends the stream in the middle of the next event's line.
    MidLine,
}

impl Cut {
    pub(crate) fn new(fault: &Fault) -> Self {
        let (how, words) = match fault.name {
            Name::WatchEnd => (How::Ending(Ending::Clean), "ended"),
            Name::WatchEof if fault.keys::<EofKeys>().mid_line == Some(true) => {
                (How::MidLine, "closed in the middle of a line")
            }
            Name::WatchEof => (How::Ending(Ending::Eof), "closed without an end"),
            Name::ErrorEvent => {
                let holds = fault.keys::<ErrorEventKeys>().then == Some(Then::Hold);
                let words = if holds { "sent an error and nothing more" } else { "sent an error and ended" };
                (How::Error { line: error_line(fault), holds }, words)
            }
            _ => (How::Ending(Ending::Reset(reset_code(fault))), "reset"),
        };
        Self { how, words }
    }
}

impl Behaviour for Cut {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let ending = match &self.how {
            How::MidLine => return stream.attach(Box::new(MidLine { active: scene.active.clone() })),
            How::Ending(ending) => ending.clone(),
            How::Error { line, holds } => Ending::Error { line: line.clone(), hold: holds.then(|| scene.active.id()) },
        };
        if !scene.spent() && scene.chance() && stream.decide(WatchState::Over(ending)) {
            scene.hit(format!("{} {}", stream.describe(), self.words));
        }
    }
}

/// Sends half of the next event's line and closes the connection.
#[derive(Debug)]
struct MidLine {
    active: ActiveFault,
}

impl Effect for MidLine {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let cut = |revision| format!("{} closed within the line of revision {revision}", flow.stream.describe());
        match item {
            Item::Event(event) if self.active.strike(|| cut(event.revision)) => {
                let bytes = event.line.slice(..event.line.len() / 2);
                out.push(Item::Withheld { revision: event.revision, by: self.active.id() });
                out.push(Item::Block(super::stream::pipe::Block { bytes, ..Default::default() }));
                out.push(Item::Over(Ending::Eof));
            }
            other => out.push(other),
        }
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}

fn reset_code(fault: &Fault) -> Http2Code {
    match fault.keys::<ResetKeys>().code {
        Some(Code::Http2(code)) => code,
        _ => Http2Code::InternalError,
    }
}

/// The `Status` of an `ERROR` event (Kubernetes API concepts, "Efficient detection of changes").
fn error_line(fault: &Fault) -> Bytes {
    let keys = fault.keys::<ErrorEventKeys>();
    let code = match keys.code {
        Some(Code::Status(code)) => code,
        _ => CODE,
    };
    let reason = keys.reason.unwrap_or_else(|| reason_of(code).to_owned());
    let message = if code == CODE { "too old resource version" } else { "the watch failed" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}

/// Refuses an HTTP status: an HTTP/2 error code, which is a word, is required.
pub(super) fn needs_a_word(code: Option<Code>) -> Result<(), Error> {
    match code {
        Some(Code::Status(status)) => {
            let instead = "write an HTTP/2 error, for example `internal-error`";
            Err(Error::Value { key: "code", given: status.to_string(), instead })
        }
        _ => Ok(()),
    }
}

/// Refuses an HTTP/2 error code, which is a word: an HTTP status is required.
fn needs_a_status(fault: &Fault) -> Result<(), Error> {
    let wrong = |given, instead| Err(Error::Value { key: "code", given, instead });
    match fault.keys::<ErrorEventKeys>().code {
        Some(Code::Http2(_)) => wrong("a word".to_owned(), "write the status as a number, for example `410`"),
        Some(Code::Status(status)) if !(400..=599).contains(&status) => {
            wrong(status.to_string(), "write the status of an error, 400 to 599")
        }
        _ => Ok(()),
    }
}
