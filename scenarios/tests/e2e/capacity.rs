//! Tests of `longhaul load --capacity` against a webhook with a known capacity.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::support::{longhaul, story};
use crate::webhook::{Habit, Webhook};

fn capacity(webhook: &Webhook, arguments: &[&str]) -> (Output, Value) {
    let (url, ca) = (webhook.url(), webhook.ca());
    let mut command = longhaul(&["load", &url, "--capacity", "--ca", ca.to_str().unwrap(), "--json", "-", "--quiet"]);
    let output = command.args(arguments).output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, json)
}

/// A webhook that handles two reviews at a time, each in 50 ms, does 40 reviews a second. At a higher rate, reviews
/// wait longer and longer, and the limit of latency is exceeded.
#[test]
#[ignore = "slow"]
fn nightly_a_known_capacity_is_found_and_confirmed() {
    let webhook = Webhook::start(Habit::AtOnce(2, Duration::from_millis(50)));
    let arguments = ["--p50", "400ms", "--rate", "20/s", "--for", "5s", "--arrivals", "constant", "--highest", "80/s"];
    let (output, json) = capacity(&webhook, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let found = json["capacityPerSecond"].as_f64().unwrap();
    // If the rate is only a little too high, the queue of five seconds does not break the median yet.
    assert!((20.0..=50.0).contains(&found), "{}", story(&output));
    let stages = json["stages"].as_array().unwrap();
    assert!(stages.last().unwrap()["confirmation"].as_bool().unwrap(), "{}", story(&output));
    let broken = stages.iter().find(|stage| stage["met"] == false).expect("a rate that was too much");
    assert!(broken["why"].as_str().unwrap().contains("above its limit of 400ms"), "{}", story(&output));
    assert_eq!(broken["culprit"], "subject", "{}", story(&output));
    assert!(json["text"].as_str().unwrap().contains("what broke first, at "), "{}", story(&output));
}

/// The same worker processes measure every rate of the search, and together they send as many requests as planned.
#[test]
#[ignore = "slow"]
fn workers_search_together() {
    let webhook = Webhook::start(Habit::Allow);
    let arguments = ["--errors", "0%", "--rate", "200/s", "--highest", "200/s", "--for", "1s", "--workers", "2"];
    let (output, json) = capacity(&webhook, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert_eq!((&json["workers"], &json["capacityPerSecond"]), (&2.into(), &200.0.into()), "{}", story(&output));
    assert_eq!(webhook.reviews(), 1 + 200 + 600, "the probe, a look and the confirmation");
    let prints: Vec<&str> =
        json["stages"].as_array().unwrap().iter().map(|stage| stage["fingerprint"].as_str().unwrap()).collect();
    assert!(prints.len() == 2 && prints[0] != prints[1] && prints[0].len() == 64, "{prints:?}");
}

/// If one rate exceeds the limits, and lower rates give too few answers for a decision, the search has no result.
#[test]
#[ignore = "slow"]
fn what_is_undecided_is_no_verdict_on_the_webhook() {
    let webhook = Webhook::start(Habit::Errors(2));
    let (output, json) = capacity(&webhook, &["--errors", "1%", "--rate", "100/s", "--for", "1s", "--no-probe"]);
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    let said = json["text"].as_str().unwrap();
    assert!(said.starts_with("not known: ") && said.contains("What broke, at "), "{}", story(&output));
    assert_eq!((&json["verdict"], json["stages"].as_array().unwrap().len() > 1), (&"inconclusive".into(), true));
    assert!(json["capacityPerSecond"].is_null());
    let (output, json) = capacity(&webhook, &["--errors", "1%", "--rate", "3/s", "--for", "1s", "--no-probe"]);
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    assert!(json["text"].as_str().unwrap().contains("too few to compare"), "{}", story(&output));
    assert_eq!(json["verdict"], "inconclusive", "nothing is wrong with what was measured: {}", story(&output));
}

#[test]
#[ignore = "slow"]
fn what_cannot_be_searched_is_refused() {
    let webhook = Webhook::start(Habit::Allow);
    let said = |arguments: &[&str]| {
        let (output, _) = capacity(&webhook, arguments);
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&[]).contains("add for example --p99 20ms"));
    assert!(said(&["--p99", "20ms", "--for", "0s"]).contains("--for is 0s"));
    assert!(said(&["--p99", "20ms", "--rate", "100/s", "--highest", "50/s"]).contains("--highest is below --rate"));
    assert_eq!(webhook.reviews(), 0);
}
