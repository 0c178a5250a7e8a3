//! `truncated-line`: half of an event's line is sent, then a newline; the stream continues with the next event. A hit
//! is one truncated line.

use std::sync::Arc;

use bytes::BytesMut;

use super::stream::pipe::Block;
use super::{ActiveFault, Behaviour, Effect, Flow, Item, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow = Row::watches(
    "truncated-line",
    "Half of an event's line is sent, then a newline; the stream goes on with the next event.",
)
.once()
.sees("half a line and a newline are sent, then the next event")
.hit("a line")
.played(|_| Box::new(TruncatedLine));

#[derive(Debug)]
pub(super) struct TruncatedLine;

impl Behaviour for TruncatedLine {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        stream.attach(Box::new(Truncating { active: scene.active.clone() }));
    }
}

#[derive(Debug)]
struct Truncating {
    active: ActiveFault,
}

impl Effect for Truncating {
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let detail = |revision| format!("line of revision {revision} truncated on {}", flow.stream.describe());
        match item {
            Item::Event(event) if !event.initial && self.active.strike(|| detail(event.revision)) => {
                let mut bytes = BytesMut::from(&event.line[..event.line.len() / 2]);
                bytes.extend_from_slice(b"\n");
                out.push(Item::Withheld { revision: event.revision, by: self.active.id() });
                out.push(Item::Block(Block { bytes: bytes.freeze(), ..Block::default() }));
            }
            other => out.push(other),
        }
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}
