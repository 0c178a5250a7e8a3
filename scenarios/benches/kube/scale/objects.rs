//! Measures the memory of many large objects, and whether the first list of all these objects delays other requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hyper::Method;

use crate::kit::client::Endpoint;
use crate::kube::figures::Figure;
use crate::kube::load::{Write, Writers};
use crate::kube::measure::{BUSY, SETTLING, Subject};

/// Size in bytes of each request body that creates an object.
pub(super) const BYTES: usize = 10 << 10;
const NAMESPACE: &str = "bench-large";
/// Duration of the small reads without a simultaneous list.
const ALONE: Duration = Duration::from_secs(3);
/// Interval between two small reads.
const EVERY: Duration = Duration::from_millis(5);

/// Creates the objects and lists them once.
pub(super) async fn measure(subject: &mut Subject, count: usize) -> Result<()> {
    let mut writers = Writers::open(&subject.server.endpoint, NAMESPACE).await?.of(BYTES);
    writers.flat_out(Write::Create, count, count).await?;
    tokio::time::sleep(SETTLING).await;
    let rss_bytes = subject.server.measured()?.rss_bytes()?;
    let reader = Reader::start(&subject.server.endpoint).await?;
    tokio::time::sleep(ALONE).await;
    subject.figures.add(Figure::ReadAlone, reader.stop().await?);
    let reader = Reader::start(&subject.server.endpoint).await?;
    let (took, size) = writers.list().await?;
    let longest_ms = reader.stop().await?;
    anyhow::ensure!(size > count * BYTES, "a list of {count} objects has only {size} bytes");
    subject.figures.add(Figure::ReadBeside(count), longest_ms);
    subject.figures.add(Figure::ListTime(count), took.as_secs_f64() * 1e3);
    subject.figures.add(Figure::ObjectsMemory(count), rss_bytes / size as f64);
    Ok(())
}

/// Reads one small object again and again, on a thread that other work in this process does not delay.
struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<f64>>,
}

impl Reader {
    /// Starts the thread, and waits for the first answer.
    async fn start(to: &Endpoint) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, begins) = tokio::sync::oneshot::channel();
        let (to, stops) = (to.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || runtime.block_on(read(&to, &stops, ready)));
        // A failed reader reports its error when it is stopped.
        let _ = begins.await;
        Ok(Self { stop, thread })
    }

    /// Stops reading. Returns the longest time of a read, in milliseconds.
    async fn stop(self) -> Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        tokio::task::spawn_blocking(|| self.thread.join()).await?.expect("reading does not panic")
    }
}

async fn read(to: &Endpoint, stop: &AtomicBool, ready: tokio::sync::oneshot::Sender<()>) -> Result<f64> {
    let path = format!("/api/v1/namespaces/{BUSY}/configmaps/object-000000");
    let mut client = to.connect().await?;
    client.call(Method::GET, &path, "").await?;
    let _ = ready.send(());
    let mut turns = tokio::time::interval(EVERY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        turns.tick().await;
        let begun = Instant::now();
        client.call(Method::GET, &path, "").await.context("a small read")?;
        longest = longest.max(begun.elapsed());
    }
    Ok(longest.as_secs_f64() * 1e3)
}
