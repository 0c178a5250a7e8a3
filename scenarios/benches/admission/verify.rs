//! The cost of verifying signatures: `cargo xtask bench admission --verify`.
//!
//! Each measurement starts a new service, so that the caches are empty. The benchmark's registry counts its requests.

mod controller;
mod cosign;
mod signed;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use hyper::Method;
use loadgen::admission::{Config, Image, Load, Plan};
use mock_registry::{Form, Signing};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::admission::measure::{self, Effort};
use crate::admission::subject::{PATH, Subject, World};
use crate::kit::client::Client;
use crate::kit::cores::Cores;
use crate::kit::report::{Report, median};
use signed::Signed;

/// Number of images of one kind that are reviewed one after the other, to measure registry requests and time of each
/// verification.
const IN_TURN: usize = 20;
/// To measure the rate of verifications: number of images of one kind that are reviewed at the same time, and number of
/// connections.
const AT_ONCE: (usize, usize) = (120, 16);
/// Limit of registry requests for the first verification of an image that is signed by a key. This limit also holds for
/// the sum of 500 simultaneous reviews of one image.
const REQUESTS_MAX: u64 = 4;
/// Number of simultaneous reviews of one image.
const PARALLEL: usize = 500;
/// Delay of each registry answer during simultaneous reviews, so that all reviews arrive before the first answer.
const LATE: &str = "200ms";
/// Number of reviews of cached images, none of which may cause a registry request.
const WARM: usize = 1000;
/// Reviews per second during the memory measurement, and the allowed resident memory in MiB.
const MEMORY_PER_SECOND: f64 = 300.0;
const MEMORY_MAX_MIB: f64 = 40.0;
/// Number of images in the memory measurement. The service has none of these images in its caches.
const MEMORY_IMAGES: usize = 300;
const LOOK: Duration = Duration::from_millis(50);
const DRAIN: Duration = Duration::from_secs(10);
const SEED: u64 = 7;
/// Maximum ratio of the processor time for an unsigned image to the processor time for the most expensive signature by
/// a key. The ratio is not 1, because two equal measurements differ by up to a factor of 1.1.
const UNSIGNED_MAX: f64 = 1.1;

/// The kinds of images that are verified with empty caches, with their names in the printed table.
const KINDS: [(&str, Signing); 5] = [
    ("key, tag", Signing::Release(Form::Tag)),
    ("key, bundle", Signing::Release(Form::Bundle)),
    ("keyless, tag", Signing::Keyless(Form::Tag)),
    ("keyless, bundle", Signing::Keyless(Form::Bundle)),
    ("unsigned", Signing::Unsigned),
];

/// The cost of verifying one kind of image with empty caches.
struct Cold {
    signing: Signing,
    requests: u64,
    cpu_us: f64,
}

/// Runs all measurements of verification.
pub(crate) async fn measure(world: &World, cores: &Cores, effort: Effort, report: &mut Report) -> Result<()> {
    let signed = Signed::start(world).await?;
    let subject = signed.service(world, cores, &json!({})).await?;
    println!(
        "\ncold, one image a review: {IN_TURN} in turn, then {} at once over {} connections:",
        AT_ONCE.0, AT_ONCE.1
    );
    println!("{:<18}{:>10}{:>12}{:>14}{:>16}", "", "requests", "p50 ms", "per second", "CPU us/review");
    let mut all = Vec::new();
    for (name, signing) in KINDS {
        all.push(cold(&signed, &subject, name, signing, report).await.with_context(|| format!("cold, {name}"))?);
    }
    judge(&all, report);
    parallel(&signed, &subject, report).await.context("one image at once")?;
    warm(world, &signed, &subject, effort, report).await.context("warm")?;
    drop(subject);
    memory(world, cores, &signed, effort, report).await.context("memory")?;
    cosign::measure(world, &signed, report)?;
    controller::measure(cores, &signed, report)
}

/// Measures images of one kind with empty caches.
async fn cold(signed: &Signed, subject: &Subject, name: &str, signing: Signing, report: &mut Report) -> Result<Cold> {
    let wanted = signing != Signing::Unsigned;
    let images = signed.of(signing);
    ensure!(images.len() > IN_TURN + 1, "there are {} images", images.len());
    let (in_turn, at_once) = images.split_at(IN_TURN);
    let mut caller = subject.endpoint()?.connect().await?;
    let (mut requests, mut times) = (0, Vec::new());
    for image in in_turn {
        let before = signed.requests();
        let begun = Instant::now();
        let allowed = allows(&mut caller, review(image)?).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        requests = requests.max(signed.requests() - before);
        ensure!(allowed == wanted, "{} was answered wrongly", image.reference);
    }
    let at_once = &at_once[..at_once.len().min(AT_ONCE.0)];
    let mut tasks = JoinSet::new();
    let mut callers = Vec::new();
    for _ in 0..AT_ONCE.1 {
        callers.push(subject.endpoint()?.connect().await?);
    }
    let (cpu_us, begun) = (subject.measured().cpu_us()?, Instant::now());
    for (number, mut caller) in callers.into_iter().enumerate() {
        let share = at_once.iter().skip(number).step_by(AT_ONCE.1).map(review).collect::<Result<Vec<_>>>()?;
        tasks.spawn(async move {
            for body in share {
                ensure!(allows(&mut caller, body).await? == wanted, "a wrong answer");
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_us = (subject.measured().cpu_us()? - cpu_us) / at_once.len() as f64;
    let (per_second, p50) = (at_once.len() as f64 / seconds, median(&times));
    println!("{name:<18}{requests:>10}{p50:>12.2}{per_second:>14.0}{cpu_us:>16.0}");
    let figures = json!({"requests": requests, "p50Ms": p50, "perSecond": per_second, "cpuUs": cpu_us});
    report.add(&format!("cold, {name}"), figures);
    Ok(Cold { signing, requests, cpu_us })
}

fn judge(all: &[Cold], report: &mut Report) {
    let with_key = |cold: &&Cold| matches!(cold.signing, Signing::Release(_));
    let requests = all.iter().filter(with_key).map(|cold| cold.requests).max().unwrap_or(0);
    report.require(
        format!("cold, by a key: at most {REQUESTS_MAX} requests to the registry ({requests})"),
        (1..=REQUESTS_MAX).contains(&requests),
    );
    let cpu_us = all.iter().filter(with_key).map(|cold| cold.cpu_us).fold(0.0, f64::max);
    let unsigned = all.iter().filter(|cold| cold.signing == Signing::Unsigned);
    for unsigned in unsigned {
        let times = unsigned.cpu_us / cpu_us;
        let text = format!(
            "unsigned images cost no more than signed ones ({} requests, {times:.2} times the processor time)",
            unsigned.requests
        );
        report.require(text, unsigned.requests <= requests && times <= UNSIGNED_MAX);
    }
}

/// Measures many simultaneous reviews of one uncached image from a slow registry.
async fn parallel(signed: &Signed, subject: &Subject, report: &mut Report) -> Result<()> {
    let image = signed.of(Signing::Second(Form::Tag)).pop().context("there is no such image")?;
    let plan = of_one(&image, PARALLEL as f64, Duration::from_secs(1))?;
    let planned = plan.total();
    let slow = signed.slow(LATE)?;
    let (before, begun) = (signed.requests(), Instant::now());
    let load = Load::saturate(plan, &subject.target, PARALLEL)?;
    let mut answered = 0;
    while answered < planned {
        ensure!(begun.elapsed() < DRAIN, "{answered} of {planned} answers after {DRAIN:?}");
        tokio::time::sleep(LOOK).await;
        let interval = load.take();
        ensure!(interval.errors() == 0 && interval.counts.denied == 0, "{:?}", interval.examples);
        answered += interval.counts.allowed;
    }
    let took = begun.elapsed();
    drop(slow);
    let requests = signed.requests() - before;
    println!(
        "\n{answered} reviews of one image at once, a registry that is {LATE} late: {requests} requests, {:.2} s",
        took.as_secs_f64()
    );
    report.add("parallel", json!({"reviews": answered, "requests": requests, "seconds": took.as_secs_f64()}));
    report.require(
        format!("{PARALLEL} parallel reviews of one image: at most {REQUESTS_MAX} requests ({requests})"),
        (1..=REQUESTS_MAX).contains(&requests),
    );
    Ok(())
}

/// Measures reviews of cached images: rate, processor time and latency.
async fn warm(world: &World, signed: &Signed, subject: &Subject, effort: Effort, report: &mut Report) -> Result<()> {
    let image = signed.of(Signing::Release(Form::Tag)).pop().context("there is no such image")?;
    let mut caller = subject.endpoint()?.connect().await?;
    ensure!(allows(&mut caller, review(&image)?).await?, "{} was refused", image.reference);
    let before = signed.requests();
    for _ in 0..WARM {
        ensure!(allows(&mut caller, review(&image)?).await?, "{} was refused", image.reference);
    }
    let requests = signed.requests() - before;
    report.require(format!("warm: no request to the registry in {WARM} reviews ({requests})"), requests == 0);
    let images = [image];
    measure::is_right(subject, &images).await?;
    let mut windows = Vec::new();
    for _ in 0..effort.rounds {
        windows.push(measure::window(world, subject, &images, measure::CONNECTIONS, effort.window).await?);
    }
    let middle = |figure: fn(&measure::Window) -> f64| median(&windows.iter().map(figure).collect::<Vec<_>>());
    let (per_second, cpu_us) = (middle(|window| window.per_second), middle(|window| window.cpu_us));
    println!(
        "\nwarm, closed loop: {per_second:.0} verified reviews/s, {cpu_us:.1} us CPU each, {:.0} a CPU second",
        1e6 / cpu_us
    );
    report.add("warm", json!({"perSecond": per_second, "cpuUs": cpu_us, "requests": requests}));
    measure::latency(subject, &images, effort.paced, report).await
}

/// Measures resident memory with caching switched off, so that every review verifies.
async fn memory(world: &World, cores: &Cores, signed: &Signed, effort: Effort, report: &mut Report) -> Result<()> {
    let forgets = json!({"ttl": "0s"});
    let subject = signed.service(world, cores, &forgets).await?;
    let images: Vec<Image> = signed.good().into_iter().take(MEMORY_IMAGES).collect();
    let mut config = config()?;
    config.rate = units::Rate::per_second(MEMORY_PER_SECOND);
    config.mix = serde_json::from_value(json!({"createPod": 1}))?;
    let plan = Plan::build(&config, SEED, effort.paced, &images)?;
    let requests = signed.requests();
    let load = Load::start(plan, &subject.target, Instant::now())?;
    let begun = Instant::now();
    let (mut highest, mut answered) = (0.0_f64, 0);
    while begun.elapsed() < effort.paced {
        tokio::time::sleep(LOOK).await;
        highest = highest.max(subject.measured().rss_mib()?);
        let interval = load.take();
        ensure!(interval.errors() == 0 && interval.counts.wrong_verdicts == 0, "{:?}", interval.examples);
        answered += interval.counts.allowed;
    }
    let interval = load.stop(DRAIN).await;
    ensure!(interval.errors() == 0 && interval.counts.wrong_verdicts == 0, "{:?}", interval.examples);
    let seconds = effort.paced.as_secs_f64();
    let requests = (signed.requests() - requests) as f64 / seconds;
    println!(
        "\nat {MEMORY_PER_SECOND} reviews/s of {} images, none remembered: {:.0} answers/s, {requests:.0} requests/s to \
         the registry, highest {highest:.1} MiB",
        images.len(),
        f64::from(u32::try_from(answered)?) / seconds
    );
    report.add("memory", json!({"highestMib": highest, "requestsPerSecond": requests}));
    let text = format!("below {MEMORY_MAX_MIB} MiB verifying at {MEMORY_PER_SECOND}/s ({highest:.1})");
    report.require(text, highest < MEMORY_MAX_MIB && requests > MEMORY_PER_SECOND);
    Ok(())
}

fn config() -> Result<Config> {
    Ok(serde_json::from_value(json!({"rate": "1/s", "arrivals": "constant"}))?)
}

/// A plan of reviews that all create a Pod with the same image.
fn of_one(image: &Image, per_second: f64, length: Duration) -> Result<Plan> {
    let mut config = config()?;
    config.rate = units::Rate::per_second(per_second);
    Ok(loadgen::admission::bench::plan_of_pod(&config, SEED, length, std::slice::from_ref(image), false)?)
}

fn review(image: &Image) -> Result<Bytes> {
    let plan = of_one(image, 1.0, Duration::from_secs(1))?;
    plan.preview(1).pop().map(|(_, body)| body).context("a plan of one review has one")
}

async fn allows(client: &mut Client, review: Bytes) -> Result<bool> {
    let answer: Value = serde_json::from_slice(&client.call(Method::POST, PATH, review).await?)?;
    answer["response"]["allowed"].as_bool().context("an answer says whether it allows")
}
