//! Workers that send load during a run. The run reads the workers' counts like counts of load from its own process.
//!
//! Owns the measured intervals that the run has not read yet, and the end of the workers. An interval is complete when
//! each worker has sent its counts, which takes a second or two.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use loadgen::admission::{Interval, Plan};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::coordinate::{SILENCE_LIMIT, Sending, longest};
use super::gather::Workers;
use super::merge::Sum;
use crate::load::Job;
use crate::load::measure::{self, Ended};

/// If less than this time of the plan is left at a stop, the plan is sent to its end, and open calls get their full
/// timeout.
const NEARLY: Duration = Duration::from_secs(2);

pub(crate) struct Beside {
    told: Arc<Mutex<WorkerReports>>,
    stop: Arc<Notify>,
    /// The time at which the last request is planned, and the time at which every call has ended.
    planned: Instant,
    over: Instant,
    ends: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct WorkerReports {
    /// Counts since the last call of [`Beside::take`].
    interval: Interval,
    gone: Option<Gone>,
}

/// The reason why less than the planned load is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gone {
    /// A worker's Pod was removed.
    Lost(String),
    Broken(String),
}

/// Workers that have received their shares of the plan.
pub(crate) struct Assigned {
    workers: Workers,
    length: Duration,
    drain: Duration,
    longest: Duration,
}

impl Assigned {
    /// Gives each worker its share of the plan and waits until all workers have made their payloads.
    pub(crate) async fn new(job: &Job, plan: &Plan, mut workers: Workers) -> Result<Self> {
        workers.assign(job, plan).await?;
        Ok(Self { workers, length: job.length(), drain: measure::drain(job, true), longest: longest(job) })
    }

    /// Lets all workers begin at the same time. Returns the planned time of the first request.
    pub(crate) async fn begin(self) -> Result<(Beside, Instant)> {
        let Self { mut workers, length, drain, longest } = self;
        let sending = Sending::begin(&mut workers, longest).await?;
        let begin = sending.begin;
        let planned = begin + length;
        let over = planned + drain;
        let (told, stop) = (Arc::new(Mutex::new(WorkerReports::default())), Arc::new(Notify::new()));
        let ends = tokio::spawn(follow(sending, Arc::clone(&told), Arc::clone(&stop), workers));
        Ok((Beside { told, stop, planned, over, ends: AbortOnDropHandle::new(ends) }, begin))
    }
}

impl Beside {
    /// The counts since the last call of this function.
    pub(crate) fn take(&self) -> Interval {
        std::mem::take(&mut self.told.lock().interval)
    }

    /// Takes the reason why less than the planned load is sent; a second call returns `None`.
    pub(crate) fn take_gone(&self) -> Option<Gone> {
        self.told.lock().gone.take()
    }

    /// Ends the workers. Returns the last counts, and the reason if these counts are incomplete. Open calls get their
    /// full timeout, unless much of the plan is left.
    pub(crate) async fn stop(self) -> (Interval, Option<Gone>) {
        let now = Instant::now();
        let limit = if now + NEARLY > self.planned {
            self.over.saturating_duration_since(now)
        } else {
            self.stop.notify_one();
            measure::DRAIN_INTERRUPTED
        };
        // A worker that does not end in time is killed with the task.
        let ended = tokio::time::timeout(limit + SILENCE_LIMIT, self.ends).await.is_ok();
        let mut told = self.told.lock();
        let hang = || Gone::Broken("the workers do not end".to_owned());
        let gone = told.gone.take().or_else(|| (!ended).then(hang));
        (std::mem::take(&mut told.interval), gone)
    }
}

/// Adds the workers' intervals until the last message, then ends the workers.
async fn follow(mut sending: Sending, told: Arc<Mutex<WorkerReports>>, stop: Arc<Notify>, workers: Workers) {
    let add = |Sum { interval, .. }: Sum| told.lock().interval.add(&interval);
    let gone = loop {
        if sending.is_over() {
            break None;
        }
        tokio::select! {
            heard = sending.hear() => match sending.add(heard) {
                Ok(whole) => whole.into_iter().for_each(add),
                Err(Ended::Lost(why)) => break Some(Gone::Lost(why)),
                Err(Ended::Broken(why)) => break Some(Gone::Broken(why)),
                Err(Ended::Whole | Ended::Interrupted(_)) => break None,
            },
            () = stop.notified() => sending.stop().await,
        }
    };
    let (rest, ended) = sending.end().await;
    rest.into_iter().for_each(add);
    told.lock().gone = gone;
    drop(ended);
    // Dropping the workers blocks, because a command removes their Job.
    let _ = tokio::task::spawn_blocking(move || drop(workers)).await;
}
