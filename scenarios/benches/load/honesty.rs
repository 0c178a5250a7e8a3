//! Checks whether load generators report true latencies, against a server that holds every answer for two seconds of
//! each ten.
//!
//! The true latency is the wait of a user whose request comes at the planned time. During a freeze the true latency is
//! the rest of the freeze, otherwise next to nothing. The true latency is computed from the plan and the clock, not
//! from any measurement.

use anyhow::Result;
use serde_json::json;

use super::ours::{self, Mode};
use super::server::Server;
use super::tools::{Loop, Tool, Tools};
use crate::kit::floor::{FREEZE_MS, FREEZE_PATH, PERIOD_MS, clock_ms};
use crate::kit::report::Report;

/// Requests per second of the measurement with freezes. About four hundred requests wait for the end of a freeze, after
/// which the server answers them within some ten milliseconds.
const PER_SECOND: f64 = 200.0;
/// Maximum relative difference between a reported latency and the true latency.
const ERROR_MAX: f64 = 0.02;
/// Number of connections of load generators that send in a closed loop.
const CONNECTIONS: usize = 16;
/// Requests per second of the lateness measurement.
const LATENESS_PER_SECOND: f64 = 1000.0;
/// Largest allowed p99 of the lateness on an idle machine, in milliseconds.
const LATENESS_MAX_MS: f64 = 0.2;

/// Measures how much later than planned requests are sent, at 1,000 a second.
pub(crate) fn lateness(server: &Server, quick: bool, report: &mut Report) -> Result<()> {
    let seconds = if quick { 2.0 } else { 10.0 };
    println!("lateness at {LATENESS_PER_SECOND} requests/s for {seconds} s (p50, p99, p99.9, max):");
    for (name, poisson, http2) in [("constant", false, false), ("Poisson", true, false), ("HTTP/2", true, true)] {
        let mode = Mode::Open { per_second: LATENESS_PER_SECOND, seconds, poisson };
        let (told, cpu_s) = super::tools::ours(server, "/mutate", 1, http2, mode, 0.0)?;
        let [p50, p99, p999, max] = told.lateness_ms.map(|ms| ms * 1e3);
        println!(
            "  {name:<10}{p50:>8.0} us{p99:>8.0} us{p999:>8.0} us{max:>8.0} us   {:.1} % CPU",
            cpu_s / seconds * 100.0
        );
        let text = format!("{name}: p99 of lateness below 200 us ({p99:.0} us)");
        report.require(text, told.lateness_ms[1] < LATENESS_MAX_MS);
        report.add(&format!("lateness {name}"), json!({"ms": told.lateness_ms, "cpuS": cpu_s}));
    }
    println!();
    Ok(())
}

/// Compares each generator's reported latencies of the freezing server with the truth.
pub(crate) fn measure(server: &Server, tools: &Tools, quick: bool, report: &mut Report) -> Result<()> {
    let seconds = if quick { 10.0 } else { 20.0 };
    println!("a server that answers nothing during {FREEZE_MS} ms of each {PERIOD_MS} ms, for {seconds} s:\n");
    println!("{:<28}{:>12}{:>12}{:>12}{:>12}", "", "p99 ms", "truth", "p99.9 ms", "truth");
    for (name, poisson, http2) in
        [("longhaul, constant", false, false), ("longhaul, Poisson", true, false), ("longhaul, HTTP/2", true, true)]
    {
        // It begins a second from now, so that the process has started in time.
        let begin_ms = clock_ms()? + 1000.0;
        let mode = Mode::Open { per_second: PER_SECOND, seconds, poisson };
        let (told, _) = super::tools::ours(server, FREEZE_PATH, 1, http2, mode, begin_ms)?;
        let truth = truth(begin_ms, seconds, poisson)?;
        let [_, p99, p999, _] = told.response_ms;
        println!("{name:<28}{p99:>12.1}{:>12.1}{p999:>12.1}{:>12.1}", truth[0], truth[1]);
        for (quantile, reported, truth) in [("p99", p99, truth[0]), ("p99.9", p999, truth[1])] {
            let error = (reported / truth - 1.0).abs();
            let text = format!("{name}: {quantile} within 2 % of the truth ({:.2} %)", error * 100.0);
            report.require(text, error <= ERROR_MAX && told.errors == 0 && told.overflow == 0);
        }
        let figures =
            json!({"reportedMs": [p99, p999], "truthMs": truth, "errors": told.errors, "overflow": told.overflow});
        report.add(&format!("honesty {name}"), figures);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "10 or 20")]
    let task = Loop { path: FREEZE_PATH, http2: false, threads: 1, connections: CONNECTIONS, seconds: seconds as u32 };
    for tool in tools.present.iter().filter(|tool| **tool != Tool::Ours) {
        let run = match tools.run(*tool, server, task) {
            Ok(run) => run,
            Err(error) => {
                super::speed::failed(*tool, &error);
                continue;
            }
        };
        let p99 = run.p99_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
        let note = if *tool == Tool::H2load { "   (its maximum: it has no percentiles)" } else { "" };
        println!("{:<28}{p99:>12}{:>12}{:>12}{:>12}{note}", format!("{}, closed loop", tool.name()), "", "-", "");
        report.add(&format!("honesty {}", tool.name()), json!({"reportedMs": [run.p99_ms, null]}));
    }
    Ok(())
}

/// The true p99 and p99.9, in milliseconds, of the waits of users whose requests come at the planned times.
fn truth(begin_ms: f64, seconds: f64, poisson: bool) -> Result<[f64; 2]> {
    let plan = ours::plan(PER_SECOND, seconds, poisson, 1, false)?;
    let planned = usize::try_from(plan.total())?;
    let mut waits: Vec<f64> = plan
        .preview(planned)
        .iter()
        .map(|(offset, _)| (begin_ms + offset.as_secs_f64() * 1e3) % PERIOD_MS as f64)
        .map(|into_ms| (FREEZE_MS as f64 - into_ms).max(0.0))
        .collect();
    waits.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below the length")]
    let at = |quantile: f64| waits[((waits.len() as f64 * quantile).ceil() as usize).clamp(1, waits.len()) - 1];
    Ok([at(0.99), at(0.999)])
}
