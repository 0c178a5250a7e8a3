//! Longhaul's load generator as a separate process, so that its CPU time and memory can be measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::{Client, Config, Interval, Load, Plan, Target};
use procfs::WithCurrentSystemInfo as _;
use serde::{Deserialize, Serialize};

/// Size of the request body that every load generator sends: 4 KiB.
pub(crate) const BODY_BYTES: usize = 4096;
const SEED: u64 = 7;
/// Maximum interval between two reads of the generator's counters; a run of a scenario reads them once a second.
const LOOK: Duration = Duration::from_millis(500);
/// Time that the generator's threads need before they can send.
const STARTING: Duration = Duration::from_millis(200);
/// Maximum wait for outstanding answers after the last request.
const DRAIN: Duration = Duration::from_secs(10);

/// The task of one process of Longhaul's load generator.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) ca_pem: String,
    pub(crate) threads: u32,
    pub(crate) http2: bool,
    pub(crate) mode: Mode,
    /// Time of the first request, in milliseconds since 1970. If this time is past, the generator starts at once.
    pub(crate) begin_ms: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Mode {
    /// A closed loop of a fixed duration, with this many connections per thread (with HTTP/2: streams).
    Saturate {
        connections: usize,
        seconds: f64,
    },
    /// A closed loop that sends as many requests as the largest of the numbers `marks`. Resident memory is read when
    /// each of these numbers of requests is reached.
    Count {
        connections: usize,
        marks: Vec<u64>,
    },
    Open {
        per_second: f64,
        seconds: f64,
        poisson: bool,
    },
}

/// The result that a process of Longhaul's load generator prints.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadResult {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) overflow: u64,
    pub(crate) seconds: f64,
    /// Response times and lateness in milliseconds at p50, p99, p99.9 and the maximum.
    pub(crate) response_ms: [f64; 4],
    pub(crate) lateness_ms: [f64; 4],
    /// Resident memory when each number of requests was reached.
    pub(crate) rss_bytes: Vec<u64>,
    pub(crate) examples: Vec<String>,
}

/// The request body that every load generator sends.
pub(crate) fn body() -> Result<Vec<u8>> {
    let plan = plan(1.0, 1.0, false, 1, false)?;
    let (_, body) = plan.preview(1).into_iter().next().context("the plan is empty")?;
    Ok(body.to_vec())
}

/// The plan of an open loop. The true latencies are computed from the planned times of this plan.
pub(crate) fn plan(per_second: f64, seconds: f64, poisson: bool, threads: u32, http2: bool) -> Result<Plan> {
    let mut config: Config = serde_json::from_value(serde_json::json!({"rate": "1/s"}))?;
    config.rate = units::Rate::per_second(per_second);
    config.arrivals = if poisson { loadgen::Arrivals::Poisson } else { loadgen::Arrivals::Constant };
    config.client = if http2 { Client::Http2 } else { Client::Apiserver };
    config.threads = threads;
    config.max_in_flight = 2_000;
    Ok(loadgen::admission::bench::plan_of_one(&config, SEED, Duration::from_secs_f64(seconds), BODY_BYTES)?)
}

/// Runs Longhaul's load generator: parses the task, sends the load and prints the result.
pub(crate) fn generate(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told = runtime.block_on(work(&task))?;
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

async fn work(task: &Task) -> Result<LoadResult> {
    let target = Target { url: task.url.clone(), ca_pem: task.ca_pem.clone(), ..Target::default() };
    let wait_ms = task.begin_ms - crate::kit::floor::clock_ms()?;
    // A plan of an hour at the highest rate is more than any closed loop uses up.
    let endless = || plan(40_000.0 * f64::from(task.threads), 3600.0, false, task.threads, task.http2);
    let mut start = Instant::now();
    let mut rss_bytes = Vec::new();
    let (load, total) = match &task.mode {
        Mode::Saturate { connections, seconds } => {
            let plan = endless()?;
            // Connecting counts, as with the other generators.
            start = Instant::now();
            let load = Load::saturate(plan, &target, *connections)?;
            let mut total = Interval::default();
            let until = start + Duration::from_secs_f64(*seconds);
            while Instant::now() < until {
                tokio::time::sleep(LOOK).await;
                total.add(&load.take());
            }
            (load, total)
        }
        Mode::Count { connections, marks } => {
            let load = Load::saturate(endless()?, &target, *connections)?;
            let mut total = Interval::default();
            for mark in marks {
                while total.counts.sent < *mark {
                    tokio::time::sleep(LOOK).await;
                    total.add(&load.take());
                }
                rss_bytes.push(procfs::process::Process::myself()?.stat()?.rss_bytes().get());
            }
            (load, total)
        }
        Mode::Open { per_second, seconds, poisson } => {
            let plan = plan(*per_second, *seconds, *poisson, task.threads, task.http2)?;
            // It begins only when everything is there: otherwise the start would count as lateness of the first
            // requests, unlike in a real load.
            let begin = (start + Duration::from_secs_f64(wait_ms.max(0.0) / 1e3)).max(Instant::now() + STARTING);
            let load = Load::start(plan, &target, begin)?;
            let mut total = Interval::default();
            let until = begin + Duration::from_secs_f64(*seconds);
            while Instant::now() < until {
                tokio::time::sleep(LOOK).await;
                total.add(&load.take());
            }
            (load, total)
        }
    };
    result(load, total, start, rss_bytes).await
}

async fn result(load: Load, mut total: Interval, start: Instant, rss_bytes: Vec<u64>) -> Result<LoadResult> {
    let seconds = start.elapsed().as_secs_f64();
    let requests = total.counts.allowed + total.counts.denied;
    total.add(&load.stop(DRAIN).await);
    if total.counts.allowed == 0 {
        bail!("no request was answered: {:?}", total.examples);
    }
    let mut response = total.response_allowed.clone();
    response.add(&total.response_denied)?;
    response.add(&total.response_error)?;
    let at = |histogram: &hdrhistogram::Histogram<u64>| {
        [0.5, 0.99, 0.999, 1.0].map(|quantile| histogram.value_at_quantile(quantile) as f64 / 1e3)
    };
    Ok(LoadResult {
        requests: if total.closed_loop { requests } else { total.counts.allowed + total.counts.denied },
        errors: total.errors() + total.counts.wrong_verdicts,
        overflow: total.counts.overflow,
        seconds,
        response_ms: at(&response),
        lateness_ms: at(&total.lateness),
        rss_bytes,
        examples: total.examples,
    })
}
