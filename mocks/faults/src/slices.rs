//! `split` and `slow-drip`: the bytes of a stream are sent in small pieces with pauses. Each piece is flushed
//! separately: as a chunk of HTTP/1.1, a DATA frame of HTTP/2, a TLS record. A hit of `split` is one event that is sent
//! in pieces; a hit of `slow-drip` is one slow stream. Bytes that fit into one piece are sent normally and are no hit.

use std::sync::Arc;
use std::time::Duration;

use units::{Bytes, Span, Throughput};

use super::settings::{keys, not_zero};
use super::stream::pipe::Rank;
use super::{ActiveFault, Behaviour, Effect, Fault, Flow, Item, Name, PlayedRow, Row, Scene, Stream};

keys! {
    pub struct SplitKeys {
        bytes "bytes": Bytes = ("1B", "the size of a piece"),
        pause "pause": Span = ("1ms", "after each piece"),
    }
}

keys! {
    pub struct DripKeys {
        rate "rate": Throughput = ("100B/s", ""),
    }
}

pub(super) const SPLIT: PlayedRow =
    Row::watches("split", "Every event goes out in small pieces, each with a flush of its own.")
        .takes::<SplitKeys>()
        .refuses(|fault| not_zero("bytes", fault.keys::<SplitKeys>().bytes.is_some_and(|bytes| bytes.0 == 0)))
        .sees("each event is sent in pieces, each with a flush of its own")
        .hit("an event")
        .played(|_| Box::new(Slices));

pub(super) const SLOW_DRIP: PlayedRow =
    Row::watches("slow-drip", "The bytes of a watch are sent slowly, a few at a time.")
        .takes::<DripKeys>()
        .refuses(|fault| not_zero("rate", fault.keys::<DripKeys>().rate.is_some_and(|rate| rate.bytes_per_second == 0)))
        .sees("bytes arrive at this rate")
        .hit("a watch")
        .played(|_| Box::new(Slices));

/// The default size of a piece of `split`, in bytes.
const PIECE_BYTES: u64 = 1;
const PAUSE: Duration = Duration::from_millis(1);
/// The default rate of `slow-drip`, in bytes a second.
const RATE: u64 = 100;
/// Number of pieces that `slow-drip` sends in a second, if the rate in bytes is at least as high.
const DRIPS_PER_SECOND: u64 = 20;

#[derive(Debug)]
pub(super) struct Slices;

impl Behaviour for Slices {
    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let drips = scene.fault.name == Name::SlowDrip;
        let (size, pause) = if drips { dripping(scene.fault) } else { splitting(scene.fault) };
        stream.attach(Box::new(Slicing { active: scene.active.clone(), drips, struck: false, size, pause }));
    }
}

fn splitting(fault: &Fault) -> (usize, Duration) {
    let bytes = fault.keys::<SplitKeys>().bytes.map_or(PIECE_BYTES, |bytes| bytes.0);
    (usize::try_from(bytes).unwrap_or(usize::MAX), fault.keys::<SplitKeys>().pause.map_or(PAUSE, |pause| pause.0))
}

fn dripping(fault: &Fault) -> (usize, Duration) {
    let rate = fault.keys::<DripKeys>().rate.map_or(RATE, |rate| rate.bytes_per_second).max(1);
    let size = (rate / DRIPS_PER_SECOND).max(1);
    (usize::try_from(size).unwrap_or(usize::MAX), Duration::from_secs(size) / u32::try_from(rate).unwrap_or(u32::MAX))
}

#[derive(Debug)]
struct Slicing {
    active: ActiveFault,
    drips: bool,
    struck: bool,
    size: usize,
    pause: Duration,
}

impl Effect for Slicing {
    fn rank(&self) -> Rank {
        Rank::Slices
    }

    fn pass(&mut self, item: Item, flow: &Flow<'_>, out: &mut Vec<Item>) {
        let how = if self.drips { "drips" } else { "gets an event in pieces" };
        let detail = || format!("{} {how} of {} bytes", flow.stream.describe(), self.size);
        let holds_event = match &item {
            Item::Event(event) => event.line.len() > self.size,
            Item::Block(block) => block.bytes.len() > self.size,
            _ => false,
        };
        let cuts = match (self.drips, self.struck) {
            (true, true) => !self.active.is_over(),
            _ => holds_event && self.active.strike(detail),
        };
        if !cuts {
            out.push(item);
            return;
        }
        self.struck = true;
        match item.into_block() {
            Ok(mut block) => {
                block.pieces = Some((self.size, self.pause));
                out.push(Item::Block(block));
            }
            Err(other) => out.push(other),
        }
    }

    fn is_done(&self) -> bool {
        self.active.is_over()
    }
}
