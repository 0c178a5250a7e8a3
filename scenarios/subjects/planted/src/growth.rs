//! Growth without end when a mistake says so: names, labels, threads, watches.
//!
//! Owns what is kept. A correct client keeps none of it. Each kind is slow enough for its machine to survive the run.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::mistakes::{Mistake, Mistakes};
use crate::object::Object;
use crate::watch::{Message, Start, Stream};
use crate::wire::Wire;

/// Bytes that are kept for one name, and for one label. Real clients keep a hundredth of it or less; this much shows within half a
/// minute what takes them days.
const NAME_BYTES: usize = 512 << 10;
const LABEL_BYTES: usize = 16 << 20;
/// Threads of one pool, and of all: the machine is not what is tested.
const POOL_THREADS: usize = 16;
const THREADS_MAX: usize = 2_000;
/// Doubling stops here.
const DOUBLES_MAX: usize = 256;
/// So do watches of single objects.
const FOLLOWED_MAX: usize = 1_000;
const RESUMED_AFTER: Duration = Duration::from_secs(1);

/// The kept things; clones share them.
#[derive(Clone, Default)]
pub struct Growth(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    names: BTreeMap<(Arc<str>, Arc<str>), Vec<u8>>,
    labels: Vec<Vec<u8>>,
    threads: Vec<std::thread::JoinHandle<()>>,
    doubles: JoinSet<()>,
    twins: JoinSet<()>,
    followed: BTreeMap<Arc<str>, JoinSet<()>>,
}

impl Growth {
    /// An object was seen. Ones, not zeros: untouched pages would not be resident.
    pub fn seen(&self, object: &Object, mistakes: &Mistakes) {
        if mistakes.made(Mistake::MapPerName) {
            let key = (object.namespace.clone(), object.name.clone());
            self.0.lock().names.entry(key).or_insert_with(|| vec![1; NAME_BYTES]);
        }
    }

    /// A watch for each object, which nobody closes when the object is gone.
    pub fn follow(&self, object: &Object, wire: &Wire, path: &str, mistakes: &Mistakes) {
        if !mistakes.made(Mistake::WatchPerObject) {
            return;
        }
        let mut kept = self.0.lock();
        if kept.followed.len() >= FOLLOWED_MAX || kept.followed.contains_key(&object.uid) {
            return;
        }
        let (wire, mistakes, name) = (wire.clone(), mistakes.clone(), object.name.clone());
        let start = Start::After(object.revision.clone());
        let path = format!("{path}?fieldSelector=metadata.name%3D{name}&timeoutSeconds=3600");
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Resumed when the server ends it, for ever.
            loop {
                if let Ok(mut stream) = Stream::open(&wire, &path, &start, false, &mistakes).await {
                    while matches!(stream.next().await, Message::Event(_) | Message::Bytes) {}
                }
                tokio::time::sleep(RESUMED_AFTER).await;
            }
        });
        kept.followed.insert(object.uid.clone(), task);
    }

    /// A list was made.
    pub fn listed(&self, mistakes: &Mistakes) {
        if mistakes.made(Mistake::LabelPerRelist) {
            self.0.lock().labels.push(vec![1; LABEL_BYTES]);
        }
    }

    /// A watch was opened.
    pub fn watched(&self, mistakes: &Mistakes) {
        if !mistakes.made(Mistake::ThreadsPerWatch) {
            return;
        }
        let mut kept = self.0.lock();
        while kept.threads.len() < THREADS_MAX {
            kept.threads.push(std::thread::spawn(std::thread::park));
            if kept.threads.len().is_multiple_of(POOL_THREADS) {
                break;
            }
        }
    }

    /// A watch is over: its end is handled twice, so there is one more watch for each that ends.
    pub fn double(&self, wire: &Wire, path: &str, start: &Start, mistakes: &Mistakes) {
        if !mistakes.made(Mistake::DoubleReconnect) {
            return;
        }
        let mut kept = self.0.lock();
        while kept.doubles.try_join_next().is_some() {}
        if kept.doubles.len() < DOUBLES_MAX {
            let double = follow(self.clone(), wire.clone(), path.to_owned(), start.clone(), mistakes.clone());
            kept.doubles.spawn(double);
        }
    }
}

impl Growth {
    /// A watch is over, and both of its ends are taken for one: so there is one more informer, which tells what it hears as well.
    pub fn twin(&self, mistakes: &Mistakes, twin: impl FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>>) {
        if !mistakes.made(Mistake::BothEndsReconnect) {
            return;
        }
        let mut kept = self.0.lock();
        if kept.twins.len() < DOUBLES_MAX {
            kept.twins.spawn(twin());
        }
    }
}

/// Reads a watch to its end, whatever it says, and is replaced by two.
fn follow(
    growth: Growth,
    wire: Wire,
    path: String,
    start: Start,
    mistakes: Mistakes,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if let Ok(mut stream) = Stream::open(&wire, &path, &start, false, &mistakes).await {
            while matches!(stream.next().await, Message::Event(_) | Message::Bytes) {}
        }
        growth.double(&wire, &path, &start, &mistakes);
        growth.double(&wire, &path, &start, &mistakes);
    })
}
