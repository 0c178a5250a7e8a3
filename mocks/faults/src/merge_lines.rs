//! `merge-lines`: several events are sent as one chunk of bytes. If fewer events than `events` happen within a second,
//! the chunk has fewer events. A hit is one chunk with more than one event.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::settings::{keys, not_zero};
use super::stream::pipe::{Block, Rank};
use super::{ActiveFault, Behaviour, Effect, Flow, Item, PlayedRow, Row, Scene, Stream};

keys! {
    pub struct Keys {
        events "events": u64 = ("3", ""),
    }
}

pub(super) const ROW: PlayedRow = Row::watches("merge-lines", "Several events go out as one piece.")
    .takes::<Keys>()
    .refuses(|fault| not_zero("events", fault.keys::<Keys>().events == Some(0)))
    .sees("several events, or those of a second, are sent in one piece")
    .hit("a piece of two or more events")
    .played(|_| Box::new(MergeLines));

/// The default number of events in a chunk.
const EVENTS: u64 = 3;
/// How long events wait for further events before their chunk is sent.
const WAITS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct MergeLines;

impl Behaviour for MergeLines {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let events = usize::try_from(scene.fault.keys::<Keys>().events.unwrap_or(EVENTS)).unwrap_or(usize::MAX);
        stream.attach(Box::new(Merging { active: scene.active.clone(), events, held: Vec::new(), due: None }));
    }
}

#[derive(Debug)]
struct Merging {
    active: ActiveFault,
    events: usize,
    held: Vec<Block>,
    due: Option<Instant>,
}

impl Merging {
    fn flush(&mut self, flow: &Flow<'_>, out: &mut Vec<Item>) {
        self.due = None;
        let block = Block::together(std::mem::take(&mut self.held));
        let events = block.events.len();
        if events > 1 {
            self.active.hit(|| format!("{events} events in one piece on {}", flow.stream.describe()));
        }
        if !block.bytes.is_empty() {
            out.push(Item::Block(block));
        }
    }
}

impl Effect for Merging {
    fn rank(&self) -> Rank {
        Rank::Merges
    }

    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if self.held.is_empty() && !self.active.may() {
            out.push(item);
            return;
        }
        match item.into_block() {
            Ok(block) => {
                self.held.push(block);
                self.due.get_or_insert(flow.now + WAITS);
                let held: usize = self.held.iter().map(|block| block.events.len()).sum();
                if held >= self.events {
                    self.flush(flow, out);
                }
            }
            Err(other) => {
                self.flush(flow, out);
                out.push(other);
            }
        }
    }

    fn tick(&mut self, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if self.due.is_some_and(|due| due <= flow.now || self.active.is_over()) {
            self.flush(flow, out);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn is_done(&self) -> bool {
        self.active.is_over() && self.held.is_empty()
    }
}
