//! Unbounded growth for some mistakes: names, labels, threads, watches.
//!
//! Owns the kept items. A correct client keeps none of them. Each kind grows slowly enough for the machine to survive
//! the run.

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

/// Bytes that are kept per name and per label. Real clients keep a hundredth of it or less; with this much, half a
/// minute shows an effect that takes them days.
const NAME_BYTES: usize = 512 << 10;
const LABEL_BYTES: usize = 16 << 20;
/// Threads of one pool, and of all: the machine itself is not under test.
const POOL_THREADS: usize = 16;
const THREADS_MAX: usize = 2_000;
/// Limit of doubled watches.
const DOUBLES_MAX: usize = 256;
/// Limit of watches on single objects.
const FOLLOWED_MAX: usize = 1_000;
const RESUMED_AFTER: Duration = Duration::from_secs(1);

/// The kept items; clones share them.
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
    /// Keeps something for a seen object. The bytes are ones, because untouched zero pages would not be resident.
    pub fn seen(&self, object: &Object, mistakes: &Mistakes) {
        if mistakes.made(Mistake::MapPerName) {
            let key = (object.namespace.clone(), object.name.clone());
            self.0.lock().names.entry(key).or_insert_with(|| vec![1; NAME_BYTES]);
        }
    }

    /// Opens a watch for the object, which is never closed when the object is gone.
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
            // When the server ends it, it is resumed, for ever.
            loop {
                if let Ok(mut stream) = Stream::open(&wire, &path, &start, false, &mistakes).await {
                    while matches!(stream.next().await, Message::Event(_) | Message::Bytes) {}
                }
                tokio::time::sleep(RESUMED_AFTER).await;
            }
        });
        kept.followed.insert(object.uid.clone(), task);
    }

    /// Keeps something for a list.
    pub fn listed(&self, mistakes: &Mistakes) {
        if mistakes.made(Mistake::LabelPerRelist) {
            self.0.lock().labels.push(vec![1; LABEL_BYTES]);
        }
    }

    /// Keeps something for an opened watch.
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

    /// Handles the end of a watch twice, so that each end makes one more watch.
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
    /// Handles the end of a stream and its close as two ends, so that there is one more informer, which reports its
    /// events as well.
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

/// Reads a watch to its end, ignoring its content, and then starts two.
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
