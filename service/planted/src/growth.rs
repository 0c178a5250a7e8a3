//! Planted bugs that keep memory, files or threads without need.
//!
//! The process has one store for everything that the active bug keeps. All memory in the store is filled with a value
//! other than zero, because zeroed memory would stay unmapped and show no growth. The number of files and threads is
//! limited, so that a judge ends the run before the machine reaches a limit.

use std::collections::{LinkedList, VecDeque};
use std::fs::File;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use service_watch::Metrics as Watches;
use tokio::time::sleep;

use super::Bug;

const KIB: usize = 1024;
/// Number of bytes that the bug `large-cache` keeps per review. The bug keeps the memory of [`CACHED_MAX`] reviews,
/// which fills 32 MiB.
const CACHED_BYTES: usize = 4 * KIB;
const CACHED_MAX: usize = 8192;
/// Number of bytes that the bug `saw-tooth` keeps per review. After [`TOOTH_MAX`] reviews, the bug frees all 16 MiB.
const TOOTH_BYTES: usize = 16 * KIB;
const TOOTH_MAX: usize = 1024;
/// Number of the review at which the bug `step` allocates its memory. `STEP_BYTES` is the size of this memory.
const STEP_AT: u64 = 5000;
const STEP_BYTES: usize = 32 * KIB * KIB;
const REVIEWS_A_FILE: u64 = 50;
const FILES_MAX: usize = 4096;
const REVIEWS_A_THREAD: u64 = 500;
const THREADS_MAX: usize = 256;
const SLOW_FROM_OBJECTS: usize = 250;
pub(super) const SLOW_BY: Duration = Duration::from_millis(20);

/// Number of stack bytes per review in the bug `outside-the-heap`. `FRAMES_MAX` is the number of reviews and
/// `STACK_BYTES` the size of the whole stack. Unoptimized builds have larger stack frames.
const FRAME_BYTES: usize = 4 * KIB;
const FRAMES_MAX: usize = 64 * KIB;
const STACK_BYTES: usize = KIB * KIB * KIB;

/// Time between two reads of the watch counters.
const LOOK: Duration = Duration::from_millis(250);

/// The events at which a planted bug may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A review was decided.
    Review {
        denied: bool,
    },
    /// An object was added.
    Object,
    /// A stream of a watch has ended.
    Reconnect,
    List,
}

static HOARD: Mutex<Hoard> = Mutex::new(Hoard::new());

struct Hoard {
    /// The memory that the bug keeps, as a list of blocks. A vector as store would double its size at times, but no
    /// leak grows in such steps.
    #[expect(clippy::linkedlist, reason = "nothing else grows by one block at a time")]
    blocks: LinkedList<Box<[u8]>>,
    cache: VecDeque<Box<[u8]>>,
    tooth: Vec<Box<[u8]>>,
    objects: usize,
    files: Vec<File>,
    threads: usize,
    /// The channel to a thread that uses one more stack frame per message.
    deeper: Option<Sender<()>>,
    reviews: u64,
}

/// Runs the action of `bug` for the event `moment`.
pub fn at(bug: Bug, moment: Moment) {
    HOARD.lock().at(bug, moment);
}

/// Reads the watch metrics of a role again and again, and keeps memory as `bug` demands, until dropped.
pub async fn follow(bug: Bug, watches: Watches) {
    let registry = counted(watches);
    let mut before = [0; 3];
    loop {
        sleep(LOOK).await;
        let now = read(&registry);
        for ((moment, now), before) in
            [Moment::Object, Moment::List, Moment::Reconnect].into_iter().zip(now).zip(before)
        {
            (before..now).for_each(|_| at(bug, moment));
        }
        before = now;
    }
}

fn counted(watches: Watches) -> Registry {
    let mut registry = Registry::default();
    registry.register("events", "", watches.events);
    registry.register("lists", "", watches.relists);
    registry.register("streams", "", watches.streams);
    registry
}

/// The total numbers of added objects, of lists and of ended streams. The policies of packages do not count as objects.
fn read(registry: &Registry) -> [u64; 3] {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, registry);
    let sum = |name: &str, part: &str| {
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(part) && !line.contains("networkpolicies"));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    };
    [sum("events_total{", "kind=\"added\""), sum("lists_total{", ""), sum("streams_total{", "")]
}

/// Whether the bug `slow-after-250-objects` has seen enough objects to slow reviews down.
pub(super) fn has_many_objects() -> bool {
    HOARD.lock().objects >= SLOW_FROM_OBJECTS
}

impl Hoard {
    const fn new() -> Self {
        Self {
            blocks: LinkedList::new(),
            cache: VecDeque::new(),
            tooth: Vec::new(),
            objects: 0,
            files: Vec::new(),
            threads: 0,
            deeper: None,
            reviews: 0,
        }
    }

    fn at(&mut self, bug: Bug, moment: Moment) {
        self.reviews += u64::from(matches!(moment, Moment::Review { .. }));
        self.objects += usize::from(moment == Moment::Object);
        match (bug, moment) {
            (Bug::Leak64PerRequest, Moment::Review { .. }) | (Bug::Leak64PerObject, Moment::Object) => self.keep(64),
            (Bug::Leak1kPerRequest, Moment::Review { .. }) | (Bug::Leak1kPerObject, Moment::Object) => self.keep(KIB),
            (Bug::LeakPerDenial, Moment::Review { denied: true }) => self.keep(16 * KIB),
            (Bug::LeakPerReconnect, Moment::Reconnect) | (Bug::LeakPerRelist, Moment::List) => self.keep(256 * KIB),
            (Bug::LeakPerObject, Moment::Object) => self.keep(512 * KIB),
            (Bug::LargeCache, Moment::Review { .. }) => {
                self.cache.push_back(block(CACHED_BYTES));
                if self.cache.len() > CACHED_MAX {
                    self.cache.pop_front();
                }
            }
            (Bug::SawTooth, Moment::Review { .. }) => {
                self.tooth.push(block(TOOTH_BYTES));
                if self.tooth.len() >= TOOTH_MAX {
                    self.tooth = Vec::new();
                }
            }
            (Bug::Step, Moment::Review { .. }) if self.reviews == STEP_AT => self.keep(STEP_BYTES),
            (Bug::DescriptorLeak, Moment::Review { .. }) if self.reviews.is_multiple_of(REVIEWS_A_FILE) => {
                self.files.extend(File::open("/dev/null").ok().filter(|_| self.files.len() < FILES_MAX));
            }
            (Bug::ThreadLeak, Moment::Review { .. })
                if self.reviews.is_multiple_of(REVIEWS_A_THREAD) && self.threads < THREADS_MAX =>
            {
                self.threads += 1;
                std::thread::spawn(std::thread::park);
            }
            (Bug::OutsideTheHeap, Moment::Review { .. }) => {
                // Without the thread there is no receiver.
                let _ = self.deeper.get_or_insert_with(descent).send(());
            }
            _ => {}
        }
    }

    fn keep(&mut self, bytes: usize) {
        self.blocks.push_back(block(bytes));
    }
}

/// Starts a thread that uses one more stack frame per message. The stack memory that the thread keeps is outside every
/// allocator.
fn descent() -> Sender<()> {
    let (sender, messages) = mpsc::channel();
    // Without the thread nothing is planted, which the run shows.
    let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || descend(&messages, FRAMES_MAX));
    sender
}

#[inline(never)]
fn descend(messages: &Receiver<()>, frames: usize) {
    if frames == 0 {
        // It waits here and keeps all frames above.
        while messages.recv().is_ok() {}
    } else if messages.recv().is_ok() {
        let frame = std::hint::black_box([0xA5_u8; FRAME_BYTES]);
        descend(messages, frames - 1);
        std::hint::black_box(&frame);
    }
}

fn block(bytes: usize) -> Box<[u8]> {
    vec![0xA5; bytes].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEW: Moment = Moment::Review { denied: false };

    fn kept(bug: Bug, moments: &[Moment]) -> usize {
        let mut hoard = Hoard::new();
        for moment in moments {
            hoard.at(bug, *moment);
        }
        hoard.blocks.iter().map(|block| block.len()).sum()
    }

    /// The memory that a bug keeps grows at the bug's own events and at no other events.
    #[test]
    fn each_leak_has_its_cause() {
        let moments = [
            REVIEW,
            Moment::Review { denied: true },
            Moment::Object,
            Moment::Object,
            Moment::Reconnect,
            Moment::List,
            Moment::List,
        ];
        for (bug, bytes) in [
            (Bug::Leak64PerRequest, 128),
            (Bug::Leak1kPerRequest, 2 * KIB),
            (Bug::LeakPerDenial, 16 * KIB),
            (Bug::Leak64PerObject, 128),
            (Bug::Leak1kPerObject, 2 * KIB),
            (Bug::LeakPerObject, KIB * KIB),
            (Bug::LeakPerReconnect, 256 * KIB),
            (Bug::LeakPerRelist, 512 * KIB),
            (Bug::MissedDelete, 0),
            (Bug::Step, 0),
        ] {
            assert_eq!(kept(bug, &moments), bytes, "{}", bug.name());
        }
    }

    #[test]
    fn what_is_no_leak_has_an_end() {
        let mut hoard = Hoard::new();
        for _ in 0..CACHED_MAX + 10 {
            hoard.at(Bug::LargeCache, REVIEW);
        }
        assert_eq!(hoard.cache.len(), CACHED_MAX);
        let mut hoard = Hoard::new();
        let heights: Vec<usize> = (0..3 * TOOTH_MAX)
            .map(|_| {
                hoard.at(Bug::SawTooth, REVIEW);
                hoard.tooth.len()
            })
            .collect();
        assert_eq!(heights.iter().max(), Some(&(TOOTH_MAX - 1)));
        assert_eq!(heights.iter().filter(|height| **height == 0).count(), 3);
        let reviews = vec![REVIEW; usize::try_from(STEP_AT).unwrap() + 5];
        assert_eq!(kept(Bug::Step, &reviews), STEP_BYTES, "once");
    }

    /// The thread uses no more stack than its limit, and the process survives the thread's end.
    #[test]
    fn a_stack_is_filled_to_its_bound() {
        let mut hoard = Hoard::new();
        for _ in 0..FRAMES_MAX + 10 {
            hoard.at(Bug::OutsideTheHeap, REVIEW);
        }
        assert!(hoard.blocks.is_empty() && hoard.deeper.is_some());
    }

    #[test]
    fn files_and_threads_are_counted() {
        let mut hoard = Hoard::new();
        for _ in 0..1000 {
            hoard.at(Bug::DescriptorLeak, REVIEW);
        }
        assert_eq!((hoard.files.len(), hoard.threads), (20, 0));
        let mut hoard = Hoard::new();
        for _ in 0..1000 {
            hoard.at(Bug::ThreadLeak, REVIEW);
        }
        assert_eq!((hoard.files.len(), hoard.threads), (0, 2));
    }
}
