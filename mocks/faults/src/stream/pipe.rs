//! The pipe between a watch's log and its bytes: small effects, one behind the other.
//!
//! Owns the order of effects, their timers, and pieces that are sent with pauses. A stream without effects has no pipe.
//! The content is bounded: one item goes in at a time, and none while an effect is full or bytes wait to be sent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use facts::Change;
use tokio::time::{Instant, Sleep};

use super::{Ending, Stream};
use crate::FaultId;

/// An item in the pipe.
#[derive(Debug)]
pub enum Item {
    Event(EventLine),
    Bookmark {
        revision: u64,
        /// Whether the bookmark closes the initial events.
        closes: bool,
        line: Bytes,
    },
    /// Bytes that are not one line any more.
    Block(Block),
    /// An event that a fault withholds.
    Withheld {
        /// The revision of the event.
        revision: u64,
        by: FaultId,
    },
    /// The end of the stream.
    Over(Ending),
}

#[derive(Debug)]
pub struct EventLine {
    pub change: Change,
    pub revision: u64,
    /// Whether the event is part of the state with which the watch began.
    pub initial: bool,
    /// The line as it goes on the wire.
    pub line: Bytes,
    /// If set, the client has everything up to this revision once it has the event.
    pub through: Option<u64>,
}

/// Bytes for the wire.
#[derive(Debug, Default)]
pub struct Block {
    pub bytes: Bytes,
    /// The revision and the line of each event inside.
    pub events: Vec<(u64, Bytes)>,
    pub through: Option<u64>,
    /// Sent in pieces of this many bytes, with a pause after each.
    pub pieces: Option<(usize, Duration)>,
}

/// The tools of an effect during a call.
pub struct Flow<'a> {
    pub now: Instant,
    pub stream: &'a Arc<Stream>,
    /// Whether the client asked for bookmarks.
    pub bookmarks: bool,
    /// Makes the line of a bookmark; `true` for the one that closes the initial events.
    pub bookmark: &'a dyn Fn(u64, bool) -> Bytes,
}

/// The position of an effect: those that change events come before those that only change how bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Events,
    Merges,
    Holds,
    Slices,
}

/// The effect of one fault on one stream.
pub trait Effect: Send + std::fmt::Debug {
    /// The position among the effects of a watch.
    fn rank(&self) -> Rank {
        Rank::Events
    }
    /// Handles an item; items that go on are pushed to `out`, in order.
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>);
    /// Time has passed, or the fault has ended.
    fn tick(&mut self, _flow: &Flow<'_>, _out: &mut Vec<Item>) {}
    /// When the effect wants to be called again.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Whether the effect can hold no more.
    fn is_full(&self) -> bool {
        false
    }
    /// Whether the effect holds nothing and never will again.
    fn is_done(&self) -> bool;
}

/// The effects of one stream.
#[derive(Debug)]
pub struct Pipe {
    effects: Vec<Box<dyn Effect>>,
    out: VecDeque<Item>,
    pauses_until: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Item {
    /// The item as bytes for the wire; the item itself if it has none.
    pub fn into_block(self) -> Result<Block, Self> {
        match self {
            Self::Event(event) => Ok(Block {
                bytes: event.line.clone(),
                events: vec![(event.revision, event.line)],
                through: event.through,
                pieces: None,
            }),
            Self::Bookmark { revision, line, .. } => {
                Ok(Block { bytes: line, events: Vec::new(), through: Some(revision), pieces: None })
            }
            Self::Block(block) => Ok(block),
            other @ (Self::Withheld { .. } | Self::Over(_)) => Err(other),
        }
    }
}

impl Block {
    /// Several blocks as one.
    pub fn together(blocks: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = Self::default();
        let mut bytes = BytesMut::new();
        for block in blocks {
            bytes.extend_from_slice(&block.bytes);
            whole.events.extend(block.events);
            whole.through = whole.through.max(block.through);
        }
        Self { bytes: bytes.freeze(), ..whole }
    }
}

impl Default for Pipe {
    fn default() -> Self {
        Self::new()
    }
}

impl Pipe {
    pub fn new() -> Self {
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { effects: Vec::new(), out: VecDeque::new(), pauses_until: None, timer }
    }

    /// Inserts an effect at the position of its rank.
    pub fn add(&mut self, effect: Box<dyn Effect>) {
        let place = self.effects.partition_point(|known| known.rank() <= effect.rank());
        self.effects.insert(place, effect);
    }

    /// Whether the pipe is empty and has no effects left.
    pub fn is_done(&mut self) -> bool {
        if self.effects.iter().any(|effect| effect.is_done()) {
            self.effects.retain(|effect| !effect.is_done());
        }
        self.effects.is_empty() && self.out.is_empty() && self.pauses_until.is_none()
    }

    /// Calls every effect with the current time.
    pub fn tick(&mut self, flow: &Flow<'_>) {
        for index in 0..self.effects.len() {
            let mut items = Vec::new();
            self.effects[index].tick(flow, &mut items);
            self.run(index + 1, items, flow);
        }
    }

    /// Puts one item in.
    pub fn feed(&mut self, item: Item, flow: &Flow<'_>) {
        self.run(0, vec![item], flow);
    }

    /// The next item that comes out; `Ready(None)` means that an item may be fed. While pending, the pipe's own timer
    /// wakes `cx`.
    pub fn next(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let paused = self.pauses_until.is_some_and(|until| now < until);
        if !paused {
            self.pauses_until = None;
            match self.out.pop_front() {
                Some(Item::Block(block)) => return Poll::Ready(Some(Item::Block(self.slice(block, now)))),
                Some(item) => return Poll::Ready(Some(item)),
                None => {}
            }
        }
        self.wait(cx);
        if paused || self.effects.iter().any(|effect| effect.is_full()) { Poll::Pending } else { Poll::Ready(None) }
    }

    /// Arms the timer for the next due effect or piece.
    fn wait(&mut self, cx: &mut Context<'_>) {
        let due = self.effects.iter().filter_map(|effect| effect.due()).chain(self.pauses_until).min();
        if let Some(due) = due {
            self.timer.as_mut().reset(due);
            if self.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
    }

    /// The first piece of a block that is sent in pieces; the rest waits in front.
    fn slice(&mut self, mut block: Block, now: Instant) -> Block {
        let Some((size, pause)) = block.pieces else { return block };
        self.pauses_until = Some(now + pause);
        if block.bytes.len() <= size {
            return block;
        }
        let piece = Block { bytes: block.bytes.split_to(size), ..Block::default() };
        self.out.push_front(Item::Block(block));
        piece
    }

    fn run(&mut self, from: usize, mut items: Vec<Item>, flow: &Flow<'_>) {
        for effect in &mut self.effects[from..] {
            if items.is_empty() {
                return;
            }
            let mut next = Vec::with_capacity(items.len());
            for item in items {
                effect.pass(item, flow, &mut next);
            }
            items = next;
        }
        self.out.extend(items);
    }
}
