//! Runs the measurements one after the other, each alternating between the mock and the real server.
//!
//! This module defines the amounts of load, and subtracts from each figure the cost of work that the figure does not
//! name. The cost of an event is the difference between equal writes with and without watchers. The CPU of a server
//! without requests is subtracted from every CPU figure.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::figures::Figure;
use super::load::{Write, Writers};
use super::watchers::{Wanted, Watchers};
use crate::kit::apiserver::ApiServer;
use crate::kit::report::Samples;

/// Number of objects that are updated one after the other.
pub(crate) const OBJECTS: usize = 160;
/// The namespaces of the benchmark: one for updates and watches, and two for lists.
pub(crate) const BUSY: &str = "bench-busy";
const LISTED: [&str; 2] = ["bench-listed-small", "bench-listed-large"];
/// Wait after a server's start, because a real server uses CPU for this time without any request.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);
const IDLE_FOR: Duration = Duration::from_secs(2);
/// After watchers are closed, a server's CPU is checked up to 60 times, for 50 ms each, until it is below 2 % of a
/// processor.
const CLEARING_LOOKS: usize = 60;
const CLEARING_LOOK: Duration = Duration::from_millis(50);
const CLEARED_SHARE: f64 = 0.02;

const WATCHERS_FOR_MEMORY: usize = 1000;
const WRITES_FOR_MEMORY: usize = 200;

/// Each measurement of events: number of watchers, and number of writes per sample.
const EVENTS: [(usize, usize); 2] = [(MANY, 200), (100, 1000)];
/// The largest number of watchers that a real server is measured with.
pub(crate) const MANY: usize = 1000;

const CROWD_WRITES: usize = 100;

/// A measurement that can run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Measurement {
    /// Measures the memory of watchers, and the cost of events for the largest number of watchers.
    Watchers,
    /// Measures the cost of creates and lists, and the memory of objects.
    Lists,
    /// Measures the cost of updates, and of events for 100 and for 1,000 watchers.
    Events,
    /// Measures the highest rate of updates of one kind, with one watcher. Like all `scale-…`, this measurement runs
    /// only if `--only` names it.
    ScaleUpdates,
    /// Measures the memory of 18,000 open watches, and the time until all have received one change.
    ScaleWatches,
    /// Measures the memory of 100,000 objects of 10 KiB, and the delay of other reads during the first list of all
    /// objects.
    ScaleObjects,
    /// Measures the delay of watchers while another watch is never read.
    ScaleReader,
}

/// The amount of work: sizes, rounds and durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// The only measurement to run; `None` for all.
    pub only: Option<Measurement>,
    /// Number of samples of each figure that is measured repeatedly.
    pub rounds: usize,
    /// Number of objects in each of the two lists.
    pub list_objects: &'static [usize],
    /// Divisor of every number of writes, to shorten the benchmark.
    pub divisor: usize,
    /// Number of watchers in the measurement that runs only on the mock.
    pub crowd: usize,
    /// Number of objects of 10 KiB in `scale-objects`.
    pub objects: usize,
    /// Length of each timed measurement of a `scale-…`.
    pub window: Duration,
}

impl Effort {
    fn has(self, part: Measurement) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// A server, its connections, and the figures measured so far.
pub(crate) struct Subject {
    pub server: ApiServer,
    pub figures: Samples<Figure>,
    pub busy: Writers,
    /// CPU time of the server without requests, in microseconds per second.
    pub idle_us_per_s: f64,
    /// Factor for the number of requests: the mock is so cheap that it needs more requests for the same precision.
    work: usize,
}

pub(crate) struct Meter {
    cpu_us: f64,
    at: Instant,
}

impl Subject {
    /// Opens connections and warms the server up.
    pub async fn new(server: ApiServer, work: usize) -> Result<Self> {
        let mut figures = Samples::none();
        figures.add(Figure::RestMemory, server.measured()?.rss_mib()?);
        let mut busy = Writers::open(&server.endpoint, BUSY).await?;
        busy.flat_out(Write::Create, OBJECTS, OBJECTS).await?;
        busy.flat_out(Write::Update, OBJECTS, 1000).await?;
        tokio::time::sleep(SETTLING).await;
        let (cpu_us, at) = (server.measured()?.cpu_us()?, Instant::now());
        tokio::time::sleep(IDLE_FOR).await;
        let idle_us_per_s = (server.measured()?.cpu_us()? - cpu_us) / at.elapsed().as_secs_f64();
        Ok(Self { server, figures, busy, idle_us_per_s, work })
    }

    pub fn meter(&self) -> Result<Meter> {
        Ok(Meter { cpu_us: self.server.measured()?.cpu_us()?, at: Instant::now() })
    }

    /// CPU time that the server has spent on requests since `since`, in microseconds.
    pub fn spent_us(&self, since: &Meter) -> Result<f64> {
        let idle = self.idle_us_per_s * since.at.elapsed().as_secs_f64();
        Ok((self.server.measured()?.cpu_us()? - since.cpu_us - idle).max(0.0))
    }

    /// Creates the objects of a list, and measures the cost of a create request and of a stored object. Returns the
    /// connections that can list these objects.
    async fn fill(&mut self, namespace: &'static str, objects: usize) -> Result<Writers> {
        let mut writers = Writers::open(&self.server.endpoint, namespace).await?;
        let (meter, rss) = (self.meter()?, self.server.measured()?.rss_bytes()?);
        writers.flat_out(Write::Create, objects, objects).await?;
        self.figures.add(Figure::CreateCpu, self.spent_us(&meter)? / objects as f64);
        let grown = (self.server.measured()?.rss_bytes()? - rss) / objects as f64;
        self.figures.add(Figure::ObjectMemory(objects), grown / 1024.0);
        Ok(writers)
    }

    async fn list(&mut self, writers: &mut Writers, objects: usize) -> Result<()> {
        let meter = self.meter()?;
        let (took, size) = writers.list().await?;
        anyhow::ensure!(size > objects * 1024, "a list of {objects} objects has only {size} bytes");
        self.figures.add(Figure::ListTime(objects), took.as_secs_f64() * 1e3);
        self.figures.add(Figure::ListCpu(objects), self.spent_us(&meter)? / 1e3);
        Ok(())
    }

    /// Measures the cost of an event with this many watchers. Returns the CPU time of the same number of updates
    /// without watchers, measured before and after the measurement with watchers.
    async fn events(&mut self, watchers: usize, writes: usize) -> Result<[f64; 2]> {
        let before = self.window(writes).await?;
        let mut crowd = self.watchers(watchers).await?;
        let meter = self.meter()?;
        self.busy.flat_out(Write::Update, OBJECTS, writes).await?;
        let expected = (watchers * writes) as u64;
        let delivered = crowd.delivered(expected).await?;
        let spent = self.spent_us(&meter)?;
        self.figures.add(Figure::LoadMemory(watchers), self.server.measured()?.rss_mib()?);
        crowd.close().await;
        anyhow::ensure!(delivered >= expected, "{delivered} of {expected} events came to {watchers} watchers");
        self.clear_away().await?;
        // The mean of before and after, so that a drift of the machine does not count as events.
        let after = self.window(writes).await?;
        self.figures.add(Figure::EventCpu(watchers), (spent - f64::midpoint(before, after)) / delivered as f64);
        Ok([before, after])
    }

    /// Waits until the server has cleaned up closed watches, so that their cost does not count in the next measurement.
    async fn clear_away(&self) -> Result<()> {
        for _ in 0..CLEARING_LOOKS {
            let meter = self.meter()?;
            tokio::time::sleep(CLEARING_LOOK).await;
            if self.spent_us(&meter)? < CLEARING_LOOK.as_secs_f64() * 1e6 * CLEARED_SHARE {
                break;
            }
        }
        Ok(())
    }

    /// CPU time of `writes` updates without watchers. This CPU time alone is too short to compute the cost of one
    /// update.
    async fn window(&mut self, writes: usize) -> Result<f64> {
        let meter = self.meter()?;
        self.busy.flat_out(Write::Update, OBJECTS, writes).await?;
        self.figures.add(Figure::UpdateRate, writes as f64 / meter.at.elapsed().as_secs_f64());
        self.spent_us(&meter)
    }

    /// Measures the memory of idle watchers, and then of watchers that received events. The server must have just
    /// started, because otherwise it reuses freed memory.
    async fn watcher_memory(&mut self, count: usize) -> Result<()> {
        let rss = self.server.measured()?.rss_bytes()?;
        let mut crowd = self.watchers(count).await?;
        let idle = (self.server.measured()?.rss_bytes()? - rss) / count as f64;
        self.figures.add(Figure::IdleMemory(count), idle / 1024.0);
        self.busy.flat_out(Write::Update, OBJECTS, WRITES_FOR_MEMORY).await?;
        let expected = (count * WRITES_FOR_MEMORY) as u64;
        let delivered = crowd.delivered(expected).await?;
        anyhow::ensure!(delivered >= expected, "{delivered} of {expected} events came to {count} watchers");
        let grown = (self.server.measured()?.rss_bytes()? - rss) / count as f64;
        self.figures.add(Figure::WatcherMemory(count), grown / 1024.0);
        crowd.close().await;
        Ok(())
    }

    async fn watchers(&self, count: usize) -> Result<Watchers> {
        Watchers::open(&self.server.endpoint, BUSY, Wanted { count, ..Wanted::default() }).await
    }
}

/// Measures the memory of watchers on freshly started servers. Only the mock, which is first, is measured with
/// [`Effort::crowd`] watchers.
pub(crate) async fn fresh(subjects: &mut [Subject], effort: Effort) -> Result<()> {
    if !effort.has(Measurement::Watchers) {
        return Ok(());
    }
    for subject in &mut *subjects {
        say(subject, &format!("memory of {WATCHERS_FOR_MEMORY} watchers"));
        let measured = subject.watcher_memory(WATCHERS_FOR_MEMORY).await;
        allow(subject, measured)?;
    }
    if let Some(mock) = subjects.first_mut() {
        for round in 1..=effort.rounds {
            say(mock, &format!("{} watchers, round {round} of {}", effort.crowd, effort.rounds));
            mock.events(effort.crowd, CROWD_WRITES).await.context("the crowd on the mock")?;
        }
    }
    Ok(())
}

/// Runs all measurements that need no freshly started server, on all servers in turn.
pub(crate) async fn all(subjects: &mut [Subject], effort: Effort) -> Result<()> {
    if effort.has(Measurement::Lists) {
        lists(subjects, effort).await?;
    }
    if effort.has(Measurement::Events) {
        events(subjects, effort).await?;
    }
    Ok(())
}

async fn events(subjects: &mut [Subject], effort: Effort) -> Result<()> {
    for (watchers, writes) in EVENTS {
        for round in 1..=effort.rounds {
            for subject in &mut *subjects {
                say(subject, &format!("{watchers} watchers, round {round} of {}", effort.rounds));
                let writes = (writes * subject.work / effort.divisor).max(50);
                let outcome = subject.events(watchers, writes).await.map(|windows| {
                    for spent in windows {
                        subject.figures.add(Figure::UpdateCpu, spent / writes as f64);
                    }
                });
                allow(subject, outcome)?;
            }
        }
    }
    Ok(())
}

async fn lists(subjects: &mut [Subject], effort: Effort) -> Result<()> {
    for (namespace, &objects) in LISTED.into_iter().zip(effort.list_objects) {
        let mut connections = Vec::new();
        for subject in &mut *subjects {
            say(subject, &format!("{objects} objects"));
            connections.push(subject.fill(namespace, objects).await?);
        }
        for _ in 0..effort.rounds + 2 {
            for (subject, writers) in subjects.iter_mut().zip(&mut connections) {
                subject.list(writers, objects).await?;
            }
        }
    }
    Ok(())
}

/// Ignores an error of a real server, which ends watches that it considers too slow: only one sample is lost. For the
/// mock, which must not end any watch, returns the error.
pub(crate) fn allow(subject: &Subject, outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if !subject.server.is_mock() => say(subject, &format!("left out: {error:#}")),
        outcome => outcome.with_context(|| format!("on the {}", subject.server.name))?,
    }
    Ok(())
}

pub(crate) fn say(subject: &Subject, what: &str) {
    eprintln!("{:>4}: {what}", subject.server.name);
}
