//! Mistakes by which the client keeps more and more names, labels, threads or watches.
//!
//! The correct client keeps nothing in this module. Each mistake keeps data so slowly that the machine has enough
//! memory for a run.

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

/// Bytes kept for each name or label. Real clients keep a hundredth of that or less. With this size, a run of half a
/// minute shows an effect that takes days in real clients.
const NAME_BYTES: usize = 512 << 10;
const LABEL_BYTES: usize = 16 << 20;
/// Number of threads in one pool; the next constant is the limit of all threads, which protects the machine.
const POOL_THREADS: usize = 16;
const THREADS_MAX: usize = 2_000;
/// Maximum number of additional watches that `double-reconnect` opens.
const DOUBLES_MAX: usize = 256;
/// Maximum number of watches that each follow a single object.
const FOLLOWED_MAX: usize = 1_000;
const RESUMED_AFTER: Duration = Duration::from_secs(1);

/// All data that mistakes keep. Clones of this value share the data.
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
    /// Keeps bytes for an object, if such a mistake is switched on. The bytes have the value 1, because untouched zero
    /// pages would not be resident.
    pub fn seen(&self, object: &Object, mistakes: &Mistakes) {
        if mistakes.made(Mistake::MapPerName) {
            let key = (object.namespace.clone(), object.name.clone());
            self.0.lock().names.entry(key).or_insert_with(|| vec![1; NAME_BYTES]);
        }
    }

    /// Opens a watch for a single object and never closes it, even if the object is gone.
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

    /// Keeps bytes for a list, if such a mistake is switched on.
    pub fn listed(&self, mistakes: &Mistakes) {
        if mistakes.made(Mistake::LabelPerRelist) {
            self.0.lock().labels.push(vec![1; LABEL_BYTES]);
        }
    }

    /// Keeps threads for an opened watch, if such a mistake is switched on.
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

    /// Opens two watches at the end of a watch, so that each end of a watch leaves one more watch.
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
    /// Treats the end of a stream and the closing of its connection as two ends. At each end one more informer starts,
    /// and reports its events as well.
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

/// Reads a watch to its end without using the content, and then starts two watches.
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
