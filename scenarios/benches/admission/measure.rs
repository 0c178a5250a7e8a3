//! Measures throughput, CPU time and latency of all webhooks, one after the other, in several rounds.
//!
//! Each round of measurements begins with another webhook, so that the order of the webhooks differs between rounds.
//! Only measurements of the same round are compared, because a machine that slows down slows all webhooks of a round.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::{Config, Image, Interval, Load, Plan};
use serde_json::json;

use crate::admission::subject::{Subject, World};
use crate::kit::report::{Report, median};

/// Number of connections of the closed loop: enough that the webhook always has work, few enough that no request waits
/// long.
pub(crate) const CONNECTIONS: usize = 16;
/// Each closed loop: number of images per created Pod, and number of connections. With one connection, reviews come one
/// at a time, and the webhook sleeps between two reviews. With 16 connections the webhook is always busy.
const LOOPS: [(usize, usize); 3] = [(1, 1), (1, CONNECTIONS), (8, CONNECTIONS)];
/// Time for opening connections and filling caches before the measurement.
const SETTLING: Duration = Duration::from_millis(700);
/// Maximum wait for outstanding answers after the last request.
const DRAIN: Duration = Duration::from_secs(10);
/// Rate per second and length of the plan for a closed loop: it has more requests than any closed loop sends.
const ENDLESS: (f64, Duration) = (40_000.0, Duration::from_hours(1));
const SEED: u64 = 7;
/// Reviews per second of the latency measurement.
const PACED_PER_SECOND: f64 = 1000.0;
/// Limit, in seconds, of the service's p99 latency of cached reviews, measured by the service itself. This limit is the
/// bound of a bucket of the service's metric.
const P99_MAX_S: f64 = 0.001;
const P99: f64 = 0.99;
/// The required ratio of the service's throughput to the throughput of the plain hyper server. `SHARE_AIM` is the
/// desired ratio.
const SHARE_MIN: f64 = 0.70;
const SHARE_AIM: f64 = 0.85;
/// The service must answer this many times as many reviews per CPU second as k8s-digester.
const DIGESTER_MIN: f64 = 3.0;

/// Number of rounds, duration of one closed loop, and duration of one latency measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) window: Duration,
    pub(crate) paced: Duration,
}

/// The results of one closed loop: reviews per second, and CPU time per review.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) per_second: f64,
    pub(crate) cpu_us: f64,
}

/// Measures throughput, CPU time and latency of all webhooks.
pub(crate) async fn speed(world: &World, subjects: &[Subject], effort: Effort, report: &mut Report) -> Result<()> {
    for subject in subjects {
        println!("{:<10}{}", subject.name, subject.about);
    }
    for (images, connections) in LOOPS {
        for subject in subjects.iter().filter(|subject| subject.pins && subject.typed) {
            is_right(subject, world.images(images)).await?;
        }
        let mut windows: Vec<Vec<Window>> = vec![Vec::new(); subjects.len()];
        for round in 0..effort.rounds {
            for place in 0..subjects.len() {
                let place = (place + round) % subjects.len();
                let subject = &subjects[place];
                let window = window(world, subject, world.images(images), connections, effort.window).await;
                windows[place].push(window.with_context(|| format!("on {}", subject.name))?);
            }
        }
        show((images, connections), world, subjects, &windows, report)?;
    }
    // k8s-digester cannot answer that many.
    for subject in subjects.iter().filter(|subject| subject.typed) {
        latency(subject, world.images(1), effort.paced, report)
            .await
            .with_context(|| format!("on {}", subject.name))?;
    }
    Ok(())
}

/// Sends some reviews and checks the patches in the answers, because a fast but wrong webhook is no comparison.
pub(crate) async fn is_right(subject: &Subject, images: &[Image]) -> Result<()> {
    let load = Load::saturate(plan(ENDLESS, images, true)?, &subject.target, 1)?;
    tokio::time::sleep(SETTLING).await;
    let interval = load.stop(DRAIN).await;
    let counts = interval.counts;
    if counts.allowed == 0 || interval.errors() > 0 || counts.wrong_verdicts > 0 {
        bail!("{} does not answer as it must: {:?}", subject.name, interval.examples);
    }
    Ok(())
}

fn plan((per_second, length): (f64, Duration), images: &[Image], checked: bool) -> Result<Plan> {
    let mut config: Config = serde_json::from_value(json!({"rate": "1/s", "arrivals": "constant"}))?;
    config.rate = units::Rate::per_second(per_second);
    Ok(loadgen::admission::bench::plan_of_pod(&config, SEED, length, images, checked)?)
}

/// Runs a closed loop that creates Pods with these images.
pub(crate) async fn window(
    world: &World,
    subject: &Subject,
    images: &[Image],
    connections: usize,
    length: Duration,
) -> Result<Window> {
    // If only one certain patch is right, the answer is compared with it. Any other patch would be applied to the whole
    // object. That costs the generator more than the service needs to make the patch, and the generator would be
    // measured.
    let checked = subject.pins && subject.typed;
    let plan = plan(ENDLESS, images, checked)?;
    // The generator of a fast subject never sleeps. That of a slower one must not sleep either, or the cost of waking
    // it would count for the subject.
    let saturate = if world.is_alone { Load::saturate_awake } else { Load::saturate };
    let load = saturate(plan, &subject.target, connections)?;
    tokio::time::sleep(SETTLING).await;
    load.take();
    let (cpu_us, at) = (subject.measured().cpu_us()?, Instant::now());
    tokio::time::sleep(length).await;
    let interval = load.take();
    let (spent_us, seconds) = (subject.measured().cpu_us()? - cpu_us, at.elapsed().as_secs_f64());
    let answered = answered(subject, &interval)?;
    load.stop(DRAIN).await;
    Ok(Window { per_second: answered / seconds, cpu_us: spent_us / answered })
}

fn answered(subject: &Subject, interval: &Interval) -> Result<f64> {
    let (mut answered, mut errors) = (interval.counts.allowed, interval.errors());
    if !subject.typed && interval.examples.iter().all(|example| example.contains("the Content-Type is")) {
        answered += interval.counts.invalid_response;
        errors -= interval.counts.invalid_response;
    }
    if answered == 0 || errors > 0 {
        bail!("{answered} answers and {errors} errors: {:?}", interval.examples);
    }
    Ok(answered as f64)
}

fn show(
    (images, connections): (usize, usize),
    world: &World,
    subjects: &[Subject],
    windows: &[Vec<Window>],
    report: &mut Report,
) -> Result<()> {
    let body = plan((1.0, Duration::from_secs(1)), world.images(images), false)?.preview(1);
    let bytes = body.first().map_or(0, |(_, body)| body.len());
    let mut title = if images == 1 { "one image".to_owned() } else { format!("{images} images") };
    if connections == 1 {
        title += ", one review at a time";
    }
    println!(
        "\nPod with {title} ({bytes} bytes), closed loop of {connections} connection(s), medians of {} rounds:",
        windows[0].len()
    );
    println!("{:<10}{:>12}{:>10}{:>16}{:>10}", "", "reviews/s", "/ floor", "CPU us/review", "/ floor");
    // Comparisons are made within a round, because that is the same moment of the machine.
    let ratio = |of: usize, to: usize, figure: fn(&Window) -> f64| {
        let pairs = windows[of].iter().zip(&windows[to]);
        median(&pairs.map(|(of, to)| figure(of) / figure(to)).collect::<Vec<_>>())
    };
    let mut json = serde_json::Map::new();
    for (place, subject) in subjects.iter().enumerate() {
        let of = |figure: fn(&Window) -> f64| median(&windows[place].iter().map(figure).collect::<Vec<_>>());
        let (rate, cpu_us) = (of(|window| window.per_second), of(|window| window.cpu_us));
        let (rates, cpus) = (ratio(place, 0, |window| window.per_second), ratio(place, 0, |window| window.cpu_us));
        println!("{:<10}{rate:>12.0}{rates:>10.2}{cpu_us:>16.1}{cpus:>10.2}", subject.name);
        let samples: Vec<_> = windows[place]
            .iter()
            .map(|window| json!({"perSecond": window.per_second, "cpuUs": window.cpu_us}))
            .collect();
        json.insert(subject.name.to_owned(), json!({"perSecond": rate, "cpuUs": cpu_us, "samples": samples}));
        match subject.name {
            // The cost of waking up belongs to the machine and is no matter of throughput.
            _ if connections == 1 => {}
            "service" => {
                let text = format!(
                    "{title}: at least 70 % of the floor's throughput ({:.0} %; the aim is 85 %)",
                    rates * 100.0
                );
                report.require(text, rates >= SHARE_MIN);
                report.note(format!("{title}: 85 % of the floor's throughput"), rates >= SHARE_AIM);
            }
            "digester" => {
                let times = ratio(place, 1, |window| window.cpu_us);
                let text = format!("{title}: at least 3 times k8s-digester's throughput per CPU second ({times:.1})");
                report.require(text, times >= DIGESTER_MIN);
            }
            _ => {}
        }
    }
    report.add(&format!("pod with {title}"), json);
    Ok(())
}

/// Measures latency at [`PACED_PER_SECOND`], a rate at which no webhook is busy all the time.
pub(crate) async fn latency(subject: &Subject, images: &[Image], length: Duration, report: &mut Report) -> Result<()> {
    let before = subject.metrics.map(within).transpose()?;
    let load =
        Load::start(plan((PACED_PER_SECOND, length), images, false)?, &subject.target, Instant::now() + SETTLING)?;
    tokio::time::sleep(SETTLING + length).await;
    let interval = load.stop(DRAIN).await;
    answered(subject, &interval)?;
    let [p50, p99] = [0.5, P99].map(|at| interval.service.value_at_quantile(at) as f64 / 1e3);
    println!(
        "{:<10}at {PACED_PER_SECOND} reviews/s: seen by the client p50 {p50:.2} ms, p99 {p99:.2} ms",
        subject.name
    );
    let mut json = json!({"responseMs": {"p50": p50, "p99": p99}});
    if let (Some((fast_before, all_before)), Some(address)) = (before, subject.metrics) {
        let (fast, all) = within(address)?;
        let share = (fast - fast_before) / (all - all_before);
        println!("{:<10}                    on the server's side {:.2} % below 1 ms", "", share * 100.0);
        report
            .require(format!("p99 on the server's side below 1 ms at 1,000/s ({:.2} %)", share * 100.0), share >= P99);
        json["belowOneMs"] = share.into();
    }
    report.add(&format!("latency of {}", subject.name), json);
    Ok(())
}

/// Number of cached reviews that took at most a millisecond, and number of all cached reviews, from the service's
/// metrics.
fn within(address: SocketAddr) -> Result<(f64, f64)> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        let lines = page.lines().filter(|line| line.starts_with("longhaul_admission_duration_seconds") && wanted(line));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let bucket = format!("le=\"{P99_MAX_S}\"");
    let all = sum(&|line| line.starts_with("longhaul_admission_duration_seconds_count"));
    if !page.contains(&bucket) {
        bail!("the service's metrics have no bucket {bucket}");
    }
    Ok((sum(&|line| line.contains(&bucket)), all))
}
