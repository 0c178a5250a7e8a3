//! Measures rate and CPU time of every load generator by closed loops against one server, one generator after the
//! other.

use anyhow::Result;
use serde_json::json;

use super::ours::Mode;
use super::server::Server;
use super::tools::{Loop, Run, Tool, Tools, can, ours};
use crate::kit::report::{Report, median};

/// Number of connections per thread over HTTP/1.1: enough that the server always has work, and few enough that no
/// request waits long.
const CONNECTIONS: usize = 16;
/// Streams per thread over HTTP/2, on one connection.
const STREAMS: usize = 64;
const ROUNDS: usize = 3;
const SECONDS: u32 = 3;
const PATH: &str = "/mutate";

/// Numbers of sent requests at which the memory of Longhaul's load generator is read. Between these two numbers the
/// memory must not grow.
const MARKS: [u64; 2] = [1_000_000, 10_000_000];
/// Allowed growth, in bytes, of the generator's memory between the two numbers of requests.
const GROWTH_MAX_BYTES: u64 = 1 << 20;

/// Measures the highest rates on one and on two threads, over HTTP/1.1 and HTTP/2.
pub(crate) fn measure(server: &Server, tools: &Tools, quick: bool, report: &mut Report) -> Result<()> {
    let (rounds, seconds) = if quick { (1, 1) } else { (ROUNDS, SECONDS) };
    println!("highest rate, a closed loop for {seconds} s, median of {rounds}, in turn:\n");
    println!(
        "{:<12}{:>8}  {:<10}{:>12}{:>10}{:>16}{:>10}",
        "", "threads", "", "requests/s", "/ ours", "CPU us/request", "/ ours"
    );
    for http2 in [false, true] {
        for threads in [1u32, 2] {
            let each = if http2 { STREAMS } else { CONNECTIONS };
            let connections = each * threads as usize;
            let task = Loop { path: PATH, http2, threads, connections, seconds };
            let able: Vec<Tool> = tools.present.iter().copied().filter(|tool| can(*tool, http2, threads)).collect();
            let mut runs: Vec<Vec<Run>> = vec![Vec::new(); able.len()];
            for round in 0..rounds {
                for place in 0..able.len() {
                    // Each round begins with another generator, so that none always follows the same one.
                    let place = (place + round) % able.len();
                    match tools.run(able[place], server, task) {
                        Ok(run) => runs[place].push(run),
                        Err(error) if able[place] == Tool::Ours => return Err(error),
                        Err(error) => failed(able[place], &error),
                    }
                }
            }
            show(http2, threads, &able, &runs, report);
        }
    }
    Ok(())
}

fn show(http2: bool, threads: u32, able: &[Tool], runs: &[Vec<Run>], report: &mut Report) {
    let protocol = if http2 { "HTTP/2" } else { "HTTP/1.1" };
    let of = |runs: &[Run], figure: fn(&Run) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
    let medians: Vec<(Tool, f64, f64)> = able
        .iter()
        .zip(runs)
        .filter(|(_, runs)| !runs.is_empty())
        .map(|(tool, runs)| (*tool, of(runs, |run| run.per_second), of(runs, |run| run.cpu_us)))
        .collect();
    let Some((_, our_rate, our_cpu)) = medians.iter().find(|(tool, ..)| *tool == Tool::Ours).copied() else { return };
    for (tool, rate, cpu) in &medians {
        println!(
            "{:<12}{threads:>8}  {protocol:<10}{rate:>12.0}{:>10.2}{cpu:>16.1}{:>10.2}",
            tool.name(),
            rate / our_rate,
            cpu / our_cpu
        );
        // The requirements of the project's issue on its load generator.
        let (share, aim) = match (tool, http2) {
            (Tool::Wrk, false) => (1.0, "at least wrk's rate"),
            (Tool::Oha, _) => (1.0, "ahead of oha"),
            (Tool::H2load, true) => (0.5, "at least half of h2load's rate"),
            _ => continue,
        };
        let text = format!("{protocol}, {threads} thread(s): {aim} ({:.2})", our_rate / rate);
        report.require(text, our_rate >= share * rate);
    }
    println!();
    let samples = able.iter().zip(runs).map(|(tool, runs)| {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| json!({"perSecond": run.per_second, "cpuUs": run.cpu_us, "p99Ms": run.p99_ms}))
            .collect();
        (tool.name().to_owned(), runs.into())
    });
    let samples: serde_json::Map<_, serde_json::Value> = samples.collect();
    report.add(&format!("speed {protocol} {threads}"), samples);
}

/// Prints a short error of a tool that failed. The failed tool is left out of the comparison.
pub(crate) fn failed(tool: Tool, error: &anyhow::Error) {
    let text = format!("{error:#}");
    let first: String = text.chars().take(300).collect();
    eprintln!("{} is left out here: {}", tool.name(), first.replace('\n', " "));
}

/// Measures the memory of Longhaul's generator after one and after ten million requests.
pub(crate) fn memory(server: &Server, report: &mut Report) -> Result<()> {
    println!("memory of a generator process, closed loop on one thread:");
    for (protocol, http2, connections) in [("HTTP/1.1", false, CONNECTIONS), ("HTTP/2", true, STREAMS)] {
        let mode = Mode::Count { connections, marks: MARKS.to_vec() };
        let (told, _) = ours(server, PATH, 1, http2, mode, 0.0)?;
        for (mark, bytes) in MARKS.iter().zip(&told.rss_bytes) {
            println!("  {protocol:<10} after {mark:>10} requests: {:>8.2} MiB", *bytes as f64 / f64::from(1 << 20));
        }
        if let [first, last] = told.rss_bytes[..] {
            let growth = last.abs_diff(first);
            let mib = growth as f64 / f64::from(1 << 20);
            report.require(
                format!("{protocol}: memory differs by less than 1 MiB ({mib:.2} MiB)"),
                growth < GROWTH_MAX_BYTES,
            );
        }
        report.add(&format!("memory {protocol}"), json!({"requests": MARKS, "rssBytes": told.rss_bytes}));
    }
    Ok(())
}
