//! `hold-buffer`: no bytes of a watch are sent until a buffer is full or the stream ends, as through a proxy's buffer.
//! With `headers` the head of the answer waits too. A hit is one buffer in which an event had to wait.

use std::sync::Arc;

use units::Bytes;

use super::settings::{keys, not_zero};
use super::stream::pipe::{Block, Rank};
use super::{
    ActiveFault, Behaviour, Effect, Error, Flow, Injection, Item, PlayedRow, RequestFacts, Row, Scene, Stream,
};

keys! {
    pub struct Keys {
        bytes "bytes": Bytes = ("4KiB", "the size of the buffer"),
        headers "headers": bool = ("false", "the headers are buffered too"),
    }
}

pub(super) const ROW: PlayedRow =
    Row::watches("hold-buffer", "Nothing is sent before so many bytes are there, as through a proxy's buffer.")
        .takes::<Keys>()
        .refuses(|fault| match fault.keys::<Keys>().bytes {
            Some(bytes) if bytes > BYTES_MAX => {
                let (given, instead) = (format!("more than {BYTES_MAX}"), "no proxy has a buffer as large as that");
                Err(Error::Value { key: "bytes", given, instead })
            }
            bytes => not_zero("bytes", bytes == Some(Bytes(0))),
        })
        .sees("nothing is sent before the buffer is full; with `headers` not even the headers")
        .hit("a buffer with an event in it")
        .played(|_| Box::new(HoldBuffer));

/// The largest buffer, and so the memory that one stream may take.
const BYTES_MAX: Bytes = Bytes(16 * 1024 * 1024);
/// The default size of the buffer: one memory page, as in proxies.
const BYTES: u64 = 4096;

#[derive(Debug)]
pub(super) struct HoldBuffer;

impl Behaviour for HoldBuffer {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if scene.fault.keys::<Keys>().headers == Some(true) && !scene.spent() {
            injection.holds_head = true;
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let bytes =
            usize::try_from(scene.fault.keys::<Keys>().bytes.map_or(BYTES, |bytes| bytes.0)).unwrap_or(usize::MAX);
        stream.attach(Box::new(Holding { active: scene.active.clone(), bytes, held: Vec::new(), held_bytes: 0 }));
    }
}

#[derive(Debug)]
struct Holding {
    active: ActiveFault,
    bytes: usize,
    held: Vec<Block>,
    held_bytes: usize,
}

impl Holding {
    fn flush(&mut self, out: &mut Vec<Item>) {
        self.held_bytes = 0;
        let block = Block::together(std::mem::take(&mut self.held));
        if !block.bytes.is_empty() {
            out.push(Item::Block(block));
        }
    }
}

impl Effect for Holding {
    fn rank(&self) -> Rank {
        Rank::Holds
    }

    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        if self.held.is_empty() && !self.active.may() {
            out.push(item);
            return;
        }
        match item.into_block() {
            Ok(block) => {
                let begins = self.held.iter().all(|block| block.events.is_empty()) && !block.events.is_empty();
                self.held_bytes += block.bytes.len();
                self.held.push(block);
                if self.held_bytes >= self.bytes {
                    self.flush(out);
                } else if begins {
                    let bytes = self.bytes;
                    self.active.strike(|| format!("{} waits for {bytes} bytes to be there", flow.stream.describe()));
                }
            }
            Err(other) => {
                self.flush(out);
                out.push(other);
            }
        }
    }

    fn tick(&mut self, _flow: &Flow<'_>, out: &mut Vec<Item>) {
        if self.active.is_over() {
            self.flush(out);
        }
    }

    fn is_done(&self) -> bool {
        self.active.is_over() && self.held.is_empty()
    }
}
