//! One measurement: sends a plan from start to end, reads the counts every second, and ends early after a signal.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use loadgen::admission::{Interval, Load, Plan};

use super::Job;
use super::hlog::Log;
use super::live::line;
use crate::live::Live;
use crate::signals::Signals;

/// Time between the start of the threads and the first request, so that the threads are ready in time.
const LEAD: Duration = Duration::from_millis(200);
/// Interval of reading the counts and of writing the progress line and the `.hlog` file.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// If the pacing thread has not ended this long after the last planned request, the thread counts as stuck.
pub(crate) const PACING_LIMIT: Duration = Duration::from_mins(1);
/// Time in addition to the timeout of calls, so that a busy machine can notice the timeout.
const DRAIN_GRACE: Duration = Duration::from_secs(1);
/// Drain time after an interrupt, shorter than the longest timeout.
pub(crate) const DRAIN_INTERRUPTED: Duration = Duration::from_secs(2);

pub(crate) const STUCK: &str = "the pacing thread has stopped before the plan was over";

/// The outputs of a running load: progress line, log, signals.
pub(crate) struct Watch {
    pub(crate) live: Live,
    pub(crate) log: Option<Log>,
    /// The reason why the log ended before the measurement, if it did.
    pub(crate) log_ended: Option<String>,
    pub(crate) signals: Signals,
    /// Start of this measurement on the time axis of the `.hlog` file; above 0 if the file has earlier measurements.
    pub(crate) log_offset: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Every planned request was sent or counted as not sent.
    Whole,
    Interrupted(&'static str),
    Broken(String),
    /// A Pod of a worker was removed. The figures of the other workers are right, but some planned requests were not
    /// sent.
    Lost(String),
}

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) total: Interval,
    /// Time from the first planned request until the last planned request was handled.
    pub(crate) lasted: Duration,
    pub(crate) ended: Ended,
}

/// Sends the plan. On error, nothing was sent.
pub(crate) async fn measure(job: &Job, plan: Plan, watch: &mut Watch) -> Result<Measured> {
    let (whole, length) = (plan.total(), plan.length());
    let begin = Instant::now() + LEAD;
    let load = Load::start(plan, &job.to.target(), begin).context("failed to start the load")?;
    let mut run = Run::new(begin, length);
    let ended = loop {
        let next = begin + EVERY * (run.ticks() + 1);
        // A plan of half a second must not take a whole second.
        let next =
            if begin + length > Instant::now() { next.min(begin + length) } else { next.min(Instant::now() + EVERY) };
        tokio::select! {
            signal = watch.signals.next() => break Ended::Interrupted(signal),
            () = tokio::time::sleep_until(next.into()) => {}
        }
        let newest = load.take();
        run.tell(&newest, watch);
        if run.total.counts.planned + load.planned_now() >= whole {
            break Ended::Whole;
        }
        if begin.elapsed() > length + PACING_LIMIT {
            break Ended::Broken(STUCK.to_owned());
        }
    };
    let lasted = begin.elapsed().min(length);
    let rest = tokio::select! {
        rest = load.stop(drain(job, ended == Ended::Whole)) => rest,
        _ = watch.signals.next() => abort(),
    };
    run.tell(&rest, watch);
    Ok(Measured { total: run.total, lasted, ended })
}

/// Longest wait for open calls after the last planned request.
pub(crate) fn drain(job: &Job, whole: bool) -> Duration {
    if whole { job.config.timeout.0 + DRAIN_GRACE } else { DRAIN_INTERRUPTED }
}

/// Ends the process at once: after a second interrupt, or after an interrupt while only the last calls are awaited.
pub(crate) fn abort() -> ! {
    crate::out::err!("longhaul: stopped at once, without a result");
    std::process::exit(reports::exit::ABORTED.into())
}

/// State of a measurement between two readings of the counts.
pub(crate) struct Run {
    begin: Instant,
    length: Duration,
    pub(crate) total: Interval,
    told_ms: u64,
}

impl Run {
    pub(crate) fn new(begin: Instant, length: Duration) -> Self {
        Self { begin, length, total: Interval::default(), told_ms: 0 }
    }

    fn ticks(&self) -> u32 {
        u32::try_from(self.begin.elapsed().as_secs()).unwrap_or(u32::MAX - 1)
    }

    fn tell(&mut self, newest: &Interval, watch: &mut Watch) {
        let span = (self.told_ms, millis(self.begin.elapsed()));
        self.tell_at(newest, span, watch);
    }

    /// Adds an interval between these milliseconds, and passes the interval to all outputs.
    pub(crate) fn tell_at(&mut self, newest: &Interval, (start_ms, end_ms): (u64, u64), watch: &mut Watch) {
        self.total.add(newest);
        self.told_ms = end_ms;
        watch.write(start_ms, end_ms, newest);
        let (now, length) = (self.begin.elapsed(), self.length);
        watch.live.show(now, length, || line(now, length, &self.total, newest));
    }
}

impl Watch {
    /// Writes the `.hlog` file. If the write fails, as on a full disk, the measurement continues, because it may
    /// already have taken hours.
    fn write(&mut self, start_ms: u64, end_ms: u64, newest: &Interval) {
        let Some(log) = &mut self.log else { return };
        let offset_ms = millis(self.log_offset);
        if let Err(error) = log.append(offset_ms + start_ms, offset_ms + end_ms, newest) {
            let at_s = (offset_ms + start_ms) as f64 / 1e3;
            let why = format!("the .hlog ends {at_s:.0} s after its start: {}", chain(&error));
            self.live.say(&format!("longhaul: {why}; the measurement goes on"));
            (self.log, self.log_ended) = (None, Some(why));
        }
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
