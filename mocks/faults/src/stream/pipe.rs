//! The chain of effects between a watch's log and its bytes.
//!
//! Owns the order of effects, their timers, and pieces that are sent with pauses. A stream without effects has no
//! chain. Memory is bounded: one item enters the chain at a time, and no item enters while an effect is full or bytes
//! wait to be sent.

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

/// An item that passes through the effects of a stream.
#[derive(Debug)]
pub enum Item {
    Event(EventLine),
    Bookmark {
        revision: u64,
        /// Whether the bookmark closes the initial events.
        closes: bool,
        line: Bytes,
    },
    /// Bytes that an effect has joined or split, so that they are no single lines.
    Block(Block),
    /// An event that a fault withholds.
    Withheld {
        revision: u64,
        by: FaultId,
    },
    Over(Ending),
}

#[derive(Debug)]
pub struct EventLine {
    pub change: Change,
    pub revision: u64,
    /// Whether the event belongs to the state with which the watch began.
    pub initial: bool,
    /// The event's line as it is sent.
    pub line: Bytes,
    /// If set, no further event up to this revision follows: a client that has this event has all events up to the
    /// revision.
    pub through: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Block {
    pub bytes: Bytes,
    /// The revision and the line of each event in the block.
    pub events: Vec<(u64, Bytes)>,
    pub through: Option<u64>,
    /// If set, the block is sent in pieces of this many bytes, with this pause after each.
    pub pieces: Option<(usize, Duration)>,
}

/// The data and functions that an effect may use during a call.
pub struct Flow<'a> {
    pub now: Instant,
    pub stream: &'a Arc<Stream>,
    pub bookmarks: bool,
    /// Makes the line of a bookmark at a revision; `true` makes the bookmark that closes the initial events.
    pub bookmark: &'a dyn Fn(u64, bool) -> Bytes,
}

/// The order of effects in the chain: effects that change events come before effects that only change how bytes are
/// sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Events,
    Merges,
    Holds,
    Slices,
}

pub trait Effect: Send + std::fmt::Debug {
    /// The position of this effect among the effects of a watch.
    fn rank(&self) -> Rank {
        Rank::Events
    }
    /// Handles an item. Adds to `out`, in order, the items that go on to the next effect.
    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>);
    /// Handles the passing of time and the end of the fault.
    fn tick(&mut self, _flow: &Flow<'_>, _out: &mut Vec<Item>) {}
    /// The time at which the effect must be called again.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Whether the effect holds as many items as it can.
    fn is_full(&self) -> bool {
        false
    }
    /// Whether the effect holds no item and will never hold one again.
    fn is_done(&self) -> bool;
}

/// The chain of effects of one stream.
#[derive(Debug)]
pub struct Pipe {
    effects: Vec<Box<dyn Effect>>,
    out: VecDeque<Item>,
    pauses_until: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Item {
    /// Converts an item into a block of bytes; an item without bytes is returned as the error.
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

    /// Whether the chain holds no item and has no effects left.
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

    /// Puts one item into the first effect.
    pub fn feed(&mut self, item: Item, flow: &Flow<'_>) {
        self.run(0, vec![item], flow);
    }

    /// The next item that leaves the chain; `Ready(None)` means that another item may enter. While the result is
    /// pending, the chain's timer wakes `cx`.
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

    /// Sets the timer to the earliest time at which an effect must be called or a piece must be sent.
    fn wait(&mut self, cx: &mut Context<'_>) {
        let due = self.effects.iter().filter_map(|effect| effect.due()).chain(self.pauses_until).min();
        if let Some(due) = due {
            self.timer.as_mut().reset(due);
            if self.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
    }

    /// Takes the first piece of a block that is sent in pieces, and keeps the rest for later.
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
