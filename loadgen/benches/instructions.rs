//! Instructions that one request costs the generator outside the sockets, counted by callgrind.
//!
//! Times vary with the machine and what else it does; instruction counts hardly do, so that a change of a few per cent
//! shows. This program runs itself under valgrind, once with [`TIMES`] repetitions of a step and once with twice as many: the
//! difference is what the repetitions cost, without start and plan.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use loadgen::admission::{Config, Image, Plan};
use loadgen::bench::Call;

/// Enough that what happens once in a while is spread evenly; few enough for seconds under callgrind.
const TIMES: u64 = 2_000;

/// A part of a request's way.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Plan, u64),
}

const STEPS: [Step; 6] = [
    Step {
        name: "plan",
        what: "when, which review, which uid",
        run: |plan, times| {
            black_box(loadgen::bench::requests(plan).take(usize::try_from(times).unwrap_or(usize::MAX)).count());
        },
    },
    Step {
        name: "splice",
        what: "the body in three parts round its uid, nothing copied",
        run: |plan, times| {
            each(Call::to_patch(plan), times, |call| {
                black_box(call.splice());
            });
        },
    },
    Step {
        name: "http2-frames",
        what: "the call into frames, the answer out of them",
        run: |plan, times| each(Call::to_patch(plan), times, |call| assert!(call.frames(), "an answer arrives")),
    },
    Step {
        name: "judge",
        what: "a right answer with a patch",
        run: |plan, times| each(Call::to_patch(plan), times, |call| black_box(call.judge())),
    },
    Step {
        name: "judge-unchanged",
        what: "a right answer without a patch",
        run: |plan, times| each(Call::to_leave(plan), times, |call| black_box(call.judge())),
    },
    Step {
        name: "record",
        what: "an answered call, in all its histograms",
        run: |plan, times| {
            let mut us = 0;
            each(Call::to_patch(plan), times, |call| {
                us = (us + 37) % 100_000;
                call.record(Duration::from_micros(us));
            });
        },
    },
];

fn each<T>(call: Option<Call>, times: u64, mut step: impl FnMut(&mut Call) -> T) {
    let mut call = call.expect("the usual mix has such a review");
    for _ in 0..times {
        step(&mut call);
    }
}

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    if let Some(name) = arguments.next() {
        let step = STEPS.iter().find(|step| step.name == name).with_context(|| format!("no step `{name}`"))?;
        let times = arguments.next().context("how many times?")?.parse().context("how many times?")?;
        (step.run)(&plan()?, times);
        return Ok(ExitCode::SUCCESS);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: needs valgrind (Debian: `apt-get install valgrind`)");
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan()?;
    let bytes = Call::to_patch(&plan).map_or(0, |call| call.splice().iter().map(|part| part.len()).sum::<usize>());
    print!("{}", plan.describe());
    println!("instructions for one request, without sockets (body of {bytes} bytes):");
    let mut sum = 0;
    for step in &STEPS {
        let (once, twice) = (counted(step.name, TIMES)?, counted(step.name, 2 * TIMES)?);
        let each = twice.saturating_sub(once) / TIMES;
        println!("{each:>10}  {:<16} {}", step.name, step.what);
        if !matches!(step.name, "judge-unchanged" | "http2-frames") {
            sum += each;
        }
    }
    println!("{sum:>10}  a request over HTTP/1.1 whose answer has a patch");
    Ok(ExitCode::SUCCESS)
}

/// Instructions of a whole run of this program with so many repetitions.
fn counted(step: &str, times: u64) -> Result<u64> {
    let own = std::env::current_exe().context("find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([step, &times.to_string()])
        .output()
        .context("start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind ended with {}:\n{text}", output.status);
    }
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = line.with_context(|| format!("valgrind counted nothing:\n{text}"))?;
    count.trim().parse().with_context(|| format!("valgrind's count `{count}` is no number"))
}

fn plan() -> Result<Plan> {
    let image = |name: &str, c: char| {
        let digest = format!("sha256:{}", c.to_string().repeat(64));
        Image::new(format!("registry.test:5000/shop/{name}:1"), Some(digest))
    };
    let config: Config = serde_json::from_str(r#"{"rate": "1000/s"}"#).context("read the configuration")?;
    Plan::build(&config, 7, Duration::from_mins(1), &[image("cart", 'a'), image("ledger", 'b')]).context("plan")
}
