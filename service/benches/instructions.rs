//! Counts the instructions of a review with cached images, without sockets, under callgrind.
//!
//! Times vary with the load of the machine; instruction counts hardly do, so they show a change of a few per cent. This
//! program starts itself under valgrind twice: with [`TIMES`] repetitions of the measured code, and with twice as many.
//! The difference of the two counts is the cost of the additional repetitions, without start and warm-up.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use service_admission::bench::{Webhook, patch, pod, review, walk};

/// Repetitions of the measured code in the first run: enough that rare events affect each run equally, but few enough
/// for a run of seconds under callgrind.
const TIMES: u64 = 2_000;
/// Numbers of images in the measured Pods.
const SIZES: [usize; 2] = [1, 8];
const STEPS: &[(&str, &str)] = &[
    ("walk", "the images of the object and where they are"),
    ("patch", "the patch that pins them"),
    ("review", "the body of a request into the body of its answer, all steps, the cache warm"),
    #[cfg(feature = "verify")]
    ("verified", "the same, with images that must be signed, their verdicts remembered"),
];

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    if let Some(name) = arguments.next() {
        let images = arguments.next().context("how many images?")?.parse()?;
        let times = arguments.next().context("how many times?")?.parse()?;
        repeat(&name, images, times)?;
        return Ok(ExitCode::SUCCESS);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: needs valgrind (Debian: `apt-get install valgrind`)");
        return Ok(ExitCode::SUCCESS);
    }
    for images in SIZES {
        println!("instructions, Pod with {images} image(s), a review of {} bytes:", review(&pod(images)).len());
        for &(name, what) in STEPS {
            let (once, twice) = (counted(name, images, TIMES)?, counted(name, images, 2 * TIMES)?);
            println!("{:>10}  {name:<8} {what}", twice.saturating_sub(once) / TIMES);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn repeat(name: &str, images: usize, times: u64) -> Result<()> {
    let object = pod(images);
    let text = object.to_string();
    match name {
        "walk" => (0..times).for_each(|_| drop(black_box(walk(black_box(&text))))),
        "patch" => {
            let sites = walk(&text);
            (0..times).for_each(|_| drop(black_box(patch(black_box(&sites)))));
        }
        "review" | "verified" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            #[cfg(feature = "verify")]
            let webhook = if name == "verified" { Webhook::verifying() } else { Webhook::new() };
            #[cfg(not(feature = "verify"))]
            let webhook = Webhook::new();
            let body = review(&object);
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(webhook.answer(body.clone()).await);
                }
            });
        }
        other => bail!("no step `{other}`"),
    }
    Ok(())
}

/// Number of instructions of a whole run of this program with `times` repetitions of `step`.
fn counted(step: &str, images: usize, times: u64) -> Result<u64> {
    let own = std::env::current_exe().context("find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([step, &images.to_string(), &times.to_string()])
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
