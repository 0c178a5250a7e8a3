//! Measures the resident memory of the service with many busy connections, and after these connections are closed.

use std::time::Duration;

use anyhow::Result;
use loadgen::admission::{Config, Load};
use serde_json::json;

use crate::admission::subject::{Subject, World};
use crate::kit::report::Report;

/// Each measurement: number of connections, and the service's allowed resident memory in MiB with these connections.
const STEPS: [(usize, f64); 2] = [(100, 30.0), (1000, 60.0)];
/// Limit of open files of the benchmark and of the webhook. Each connection needs one open file in both processes;
/// about 200 are for other files.
pub(crate) const DESCRIPTORS: u64 = 1200;
/// Duration of the load with each number of connections.
const AT_WORK: Duration = Duration::from_secs(4);
/// Wait between closing the connections and reading the remaining memory.
const AFTERWARDS: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);
const DRAIN: Duration = Duration::from_secs(10);
const SEED: u64 = 7;

pub(crate) async fn measure(world: &World, subjects: &[Subject], report: &mut Report) -> Result<()> {
    println!("\nresident memory in MiB, a closed loop over so many connections, Pod with one image:");
    println!("{:<10}{:>12}{:>10}{:>10}{:>12}", "", "connections", "before", "highest", "afterwards");
    for subject in subjects {
        for (connections, most_mib) in STEPS {
            let before = subject.measured().rss_mib()?;
            let config: Config = serde_json::from_value(json!({"rate": "40000/s"}))?;
            let plan =
                loadgen::admission::bench::plan_of_pod(&config, SEED, Duration::from_hours(1), world.images(1), false)?;
            let load = Load::saturate(plan, &subject.target, connections)?;
            let mut highest = before;
            for _ in 0..AT_WORK.as_millis() / LOOK.as_millis() {
                tokio::time::sleep(LOOK).await;
                highest = highest.max(subject.measured().rss_mib()?);
            }
            let interval = load.stop(DRAIN).await;
            anyhow::ensure!(interval.counts.allowed > 0, "no answer: {:?}", interval.examples);
            tokio::time::sleep(AFTERWARDS).await;
            let after = subject.measured().rss_mib()?;
            println!("{:<10}{connections:>12}{before:>10.1}{highest:>10.1}{after:>12.1}", subject.name);
            if subject.pins {
                let text = format!("{connections} connections: below {most_mib} MiB ({highest:.1})");
                report.require(text, highest < most_mib);
            }
            let key = format!("memory of {} with {connections} connections", subject.name);
            report.add(&key, json!({"beforeMib": before, "highestMib": highest, "afterwardsMib": after}));
        }
    }
    Ok(())
}
