//! Compares the mock API server with a real kube-apiserver: equal requests must get equivalent answers.
//!
//! Tests that need `KUBEBUILDER_ASSETS` send random sequences, converted objects and requests about compacted history
//! to both servers. A test that runs everywhere compares the mock with recorded answers of a real server. One more test
//! checks that every intended difference is documented.
//!
//! | Variable | |
//! |---|---|
//! | `LONGHAUL_DIFFERENTIAL_SEQUENCES` | how many sequences are compared live, default 60 |
//! | `LONGHAUL_DIFFERENTIAL_SEED` | their seed, default 1 |
//! | `LONGHAUL_DIFFERENTIAL_RECORD` | how many sequences to record into the fixture, instead of comparing |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod answers;
mod compare;
mod converted;
mod corners;
mod driver;
mod everything;
mod fixture;
mod generator;
mod normalise;
mod pods;
mod sequence;
mod servers;
mod websockets;
mod workloads;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use compare::Difference;
use driver::Endpoint;
use fixture::{Origin, Recorded};
use normalise::Normal;
use sequence::{Sequence, Step};

const SEQUENCES: usize = 60;
/// Maximum number of sequences that are sent at the same time. More sequences at the same time would only wait at the
/// real server.
const AT_ONCE: usize = 6;
/// Maximum number of times that a differing sequence is repeated. A difference that does not occur again depends on
/// timing, for example of a watch cache.
const TRIES: usize = 3;
/// Maximum number of kinds of differences that a comparison shrinks and prints.
const SHOWN_MAX: usize = 40;

/// A sequence of requests that the two servers answer differently.
struct Disagreement {
    sequence: Sequence,
    difference: Difference,
    real: Normal,
    mock: Normal,
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// `count` sequences of requests: first the hand-written sequences, then random sequences.
fn sequences(count: usize) -> Vec<Sequence> {
    let seed = number("LONGHAUL_DIFFERENTIAL_SEED").unwrap_or(1) as u64;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = generator::sequence();
    let random = std::iter::repeat_with(move || strategy.new_tree(&mut runner).unwrap().current());
    corners::all().into_iter().chain(random).take(count).collect()
}

/// A namespace that no earlier sequence has used. The namespace has the same name on both servers.
fn namespace() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("seq-{:05}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn answers(endpoint: &Endpoint, sequence: &Sequence, namespace: &str) -> Normal {
    match driver::play(endpoint, sequence, namespace).await {
        Ok(raws) => normalise::normalise(&sequence.steps, &raws, namespace),
        // This is compared like an answer: only one of the servers may have broken off.
        Err(error) => {
            let broken = serde_json::json!({"unsaid": format!("{error:#}").replace(namespace, "NS")});
            Normal { answers: vec![broken; sequence.steps.len()], messages: vec![String::new(); sequence.steps.len()] }
        }
    }
}

/// The unintended differences of a sequence, and both servers' answers.
async fn differences(real: &Endpoint, mock: &Endpoint, sequence: &Sequence) -> (Vec<Difference>, Normal, Normal) {
    let namespace = namespace();
    let (real, mock) = tokio::join!(answers(real, sequence, &namespace), answers(mock, sequence, &namespace));
    (compare::unmeant(sequence, &real.answers, &mock.answers), real, mock)
}

/// A text that identifies a difference: differences with equal texts count as one.
fn signature(sequence: &Sequence, difference: &Difference) -> String {
    let step = &sequence.steps[difference.step];
    let at: Vec<&str> = difference.at.split('/').filter(|part| part.parse::<u32>().is_err()).collect();
    let shape = |value: &Option<serde_json::Value>| {
        value.as_ref().map_or_else(
            || "absent".to_owned(),
            |value| {
                let text = value.to_string();
                if text.len() > 40 { "...".to_owned() } else { text }
            },
        )
    };
    format!("{} {} {} {}", step.method, at.join("/"), shape(&difference.real), shape(&difference.mock))
}

/// Removes requests from a sequence as long as the found difference remains.
async fn shrink(real: &Endpoint, mock: &Endpoint, mut found: Disagreement) -> Disagreement {
    let wanted = signature(&found.sequence, &found.difference);
    let step = found.difference.step;
    // A watch shows later events.
    if !found.sequence.steps[step].is_watch() {
        found.sequence.steps.truncate(step + 1);
    }
    for index in (0..found.sequence.steps.len()).rev().filter(|index| *index != step) {
        let mut shorter = found.sequence.clone();
        shorter.steps[index] = Step::default();
        let (differences, real, mock) = differences(real, mock, &shorter).await;
        let same = differences.into_iter().find(|difference| signature(&shorter, difference) == wanted);
        if let Some(difference) = same {
            found = Disagreement { sequence: shorter, difference, real, mock };
        }
    }
    found
}

fn print(count: usize, signature: &str, found: &Disagreement) -> String {
    let mut out =
        format!("\n== {count} times: {signature}\n   at {} of step {}\n", found.difference.at, found.difference.step);
    for (index, step) in found.sequence.steps.iter().enumerate().filter(|(_, step)| !step.is_nothing()) {
        let _ = writeln!(out, "   {index}: {}", serde_json::to_string(step).unwrap());
    }
    let show =
        |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "absent".to_owned(), ToString::to_string);
    let index = found.difference.step;
    for (name, value, normal) in
        [("real", &found.difference.real, &found.real), ("mock", &found.difference.mock, &found.mock)]
    {
        let message = normal.messages.get(index).map_or("", String::as_str);
        let _ = writeln!(out, "   {name}: {} {message}", show(value));
    }
    out
}

/// Compares the two servers' answers to all sequences. Returns the differences as text.
async fn compare_all(real: &Endpoint, mock: &Endpoint, sequences: Vec<Sequence>) -> Vec<String> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for sequence in sequences {
        let (real, mock, slots) = (real.clone(), mock.clone(), slots.clone());
        running.spawn(async move {
            let _slot = slots.acquire_owned().await.unwrap();
            let mut kept: Option<Vec<Disagreement>> = None;
            for _ in 0..TRIES {
                let (found, real, mock) = differences(&real, &mock, &sequence).await;
                let mut now: Vec<Disagreement> = Vec::new();
                for difference in found {
                    let copy = |normal: &Normal| Normal { answers: Vec::new(), messages: normal.messages.clone() };
                    now.push(Disagreement {
                        sequence: sequence.clone(),
                        difference,
                        real: copy(&real),
                        mock: copy(&mock),
                    });
                }
                if let Some(before) = &kept {
                    now.retain(|one| before.iter().any(|other| other.difference == one.difference));
                }
                let done = now.is_empty();
                kept = Some(now);
                if done {
                    break;
                }
            }
            kept.unwrap_or_default()
        });
    }
    let mut findings: BTreeMap<String, (usize, Disagreement)> = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        for found in done.unwrap() {
            let signature = signature(&found.sequence, &found.difference);
            findings.entry(signature).and_modify(|(count, _)| *count += 1).or_insert((1, found));
        }
    }
    let mut order: Vec<_> = findings.into_iter().collect();
    order.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let mut printed = Vec::new();
    for (signature, (count, found)) in order {
        let found = if printed.len() < SHOWN_MAX { shrink(real, mock, found).await } else { found };
        printed.push(print(count, &signature, &found));
    }
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn the_mock_answers_like_a_real_server() {
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (local, real) = servers::real(assets, directory.path(), &[]).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let printed = if let Some(count) = number("LONGHAUL_DIFFERENTIAL_RECORD") {
        record_all(&real, local.access().version(), count).await;
        Vec::new()
    } else {
        let count = number("LONGHAUL_DIFFERENTIAL_SEQUENCES").unwrap_or(SEQUENCES);
        println!("comparing {count} sequences with {}", local.access().version());
        compare_all(&real, &mock, sequences(count)).await
    };
    server.shutdown().await;
    local.stop().await;
    assert!(printed.is_empty(), "{} kinds of differences:\n{}", printed.len(), printed.concat());
}

/// Objects that are written in one version or API can be read in all others, as on a real server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn objects_are_converted_as_on_a_real_server() {
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (local, real) = servers::real(assets, directory.path(), &[]).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let uncovered = converted::uncovered([&real, &mock]).await;
    let sequences = converted::all();
    println!("comparing {} sequences with {}", sequences.len(), local.access().version());
    let printed = compare_all(&real, &mock, sequences).await;
    server.shutdown().await;
    local.stop().await;
    assert!(uncovered.is_empty(), "both serve these in several versions, and no object is compared: {uncovered:?}");
    assert!(printed.is_empty(), "{} kinds of differences:\n{}", printed.len(), printed.concat());
}

/// After a compaction the mock answers 410 as a real server does: to a list at an exact revision, to the next page of a
/// list, and in a watch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn compacted_history_is_gone_on_both() {
    let Some(assets) = servers::assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    // Without its cache the watch reads etcd, whose history is compacted.
    let arguments = ["--etcd-compaction-interval=1s", "--watch-cache-sizes=configmaps#0"];
    let (local, real) = servers::real(assets, directory.path(), &arguments).await.unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let compacting = async {
        let mut tick = tokio::time::interval(Duration::from_millis(300));
        loop {
            tick.tick().await;
            server.compact(server.revision());
        }
    };
    let sequence = corners::compacted();
    let (found, real, mock) = tokio::select! {
        compared = differences(&real, &mock, &sequence) => compared,
        () = compacting => unreachable!("it compacts until it is dropped"),
    };
    let gone = real.answers.iter().filter(|answer| answer.to_string().contains("410")).count();
    let printed: Vec<String> = found
        .into_iter()
        .map(|difference| {
            let (signature, sequence) = (signature(&sequence, &difference), sequence.clone());
            let copy = |normal: &Normal| Normal { answers: Vec::new(), messages: normal.messages.clone() };
            print(1, &signature, &Disagreement { sequence, difference, real: copy(&real), mock: copy(&mock) })
        })
        .collect();
    server.shutdown().await;
    local.stop().await;
    assert!(printed.is_empty(), "{}", printed.concat());
    assert_eq!(gone, 3, "the list, the watch and the page: {:?}", real.answers);
}

/// Records the real server's answers to all sequences for which two attempts get equal answers.
async fn record_all(real: &Endpoint, server: &str, count: usize) {
    let mut recorded = Vec::new();
    for sequence in sequences(count) {
        let (one, two) = (answers(real, &sequence, &namespace()).await, answers(real, &sequence, &namespace()).await);
        if one.answers == two.answers {
            recorded.push(Recorded { sequence, answers: one.answers });
        } else {
            println!("not recorded, not the same twice: {}", serde_json::to_string(&sequence).unwrap());
        }
    }
    fixture::write(&Origin { server: server.to_owned(), sequences: recorded.len() }, &recorded).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn the_mock_answers_as_was_recorded() {
    let (origin, recorded) = fixture::read().unwrap();
    let (server, mock) = servers::mock().await.unwrap();
    let mut printed = Vec::new();
    for one in recorded {
        let normal = answers(&mock, &one.sequence, &namespace()).await;
        for difference in compare::unmeant(&one.sequence, &one.answers, &normal.answers) {
            let signature = signature(&one.sequence, &difference);
            let messages = normal.messages.clone();
            let real = Normal { answers: one.answers.clone(), messages: Vec::new() };
            let mock = Normal { answers: Vec::new(), messages };
            printed.push(print(
                1,
                &signature,
                &Disagreement { sequence: one.sequence.clone(), difference, real, mock },
            ));
        }
    }
    server.shutdown().await;
    assert!(printed.is_empty(), "{} differences from {}:\n{}", printed.len(), origin.server, printed.concat());
}

#[test]
fn every_meant_difference_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../mocks/DIFFERENCES.md");
    let text = std::fs::read_to_string(path).unwrap();
    for meant in compare::MEANT {
        assert!(text.lines().any(|line| line == format!("## {}", meant.name)), "no section `## {}`", meant.name);
    }
}

/// If one recorded answer is changed, the comparison reports it. The test changes an answer of every recorded sequence:
/// a comparison that reports no difference therefore proves equality.
#[test]
fn a_changed_answer_is_noticed() {
    let (_, recorded) = fixture::read().unwrap();
    assert!(recorded.len() > 300, "{} sequences", recorded.len());
    for one in recorded {
        for index in 0..one.answers.len() {
            let mut changed = one.answers.clone();
            if changed[index]["status"].is_null() {
                continue;
            }
            changed[index]["status"] = serde_json::json!(299);
            let found = compare::unmeant(&one.sequence, &one.answers, &changed);
            assert_eq!(found.iter().map(|found| found.step).collect::<Vec<_>>(), [index], "{}", one.sequence.name);
        }
    }
}
