//! Tests of load from several worker processes. The figures of all workers are added up, and a worker that dies or
//! sends nonsense makes the run invalid.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::support::{Soak, itself, longhaul, program, rows, sends, soak_text, story};
use crate::webhook::{Habit, Webhook};

/// Time limit of a wait in these tests. A busy machine may start processes slowly; a wait that takes longer means that
/// a process hangs.
const PATIENCE: Duration = Duration::from_mins(1);

pub fn start(webhook: &Webhook, arguments: &[&str]) -> Child {
    let (url, ca) = (webhook.url(), webhook.ca());
    let mut command = longhaul(&["load", &url, "--ca", ca.to_str().unwrap(), "--quiet", "--json", "-"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// The worker processes that a process has started, from `/proc`.
fn workers(parent: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let pids: Vec<i32> =
        children.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect();
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

#[test]
#[ignore = "slow"]
fn shares_add_up_to_the_plan() {
    let webhook = Webhook::start(Habit::Allow);
    let hlog = webhook.file("workers.hlog");
    let arguments = ["--rate", "100/s", "--for", "3s", "--workers", "3", "--hlog", hlog.to_str().unwrap()];
    let output = start(&webhook, &arguments).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["workers"], 3);
    assert_eq!(report["numbers"]["planned"], 300, "{}", story(&output));
    assert_eq!(report["numbers"]["allowed"], 300, "{}", story(&output));
    assert_eq!(report["numbers"]["response"]["count"], 300);
    assert_eq!(report["numbers"]["lateness"]["count"], 300);
    assert_eq!(webhook.reviews(), 301, "one more for the probe");
    // Of sixty slow calls, these are the longest ten of all, each with its phases.
    let slowest = report["numbers"]["slowest"].as_array().unwrap();
    let us = |slow: &Value, key: &str| slow[key].as_u64().unwrap();
    let responses: Vec<u64> = slowest.iter().map(|slow| us(slow, "responseUs")).collect();
    assert_eq!(slowest.len(), 10, "{}", story(&output));
    assert!(responses.is_sorted_by(|a, b| a >= b), "{responses:?}");
    let longest = us(&report["numbers"]["response"], "maxUs");
    // The histogram keeps three digits.
    assert!(responses[0].abs_diff(longest) <= longest / 500, "{} and {longest}", responses[0]);
    for slow in slowest {
        let phases = ["queueUs", "connectUs", "tlsUs", "waitUs", "bodyUs"].map(|phase| us(slow, phase));
        assert!(phases.iter().sum::<u64>().abs_diff(us(slow, "responseUs")) <= 5, "{slow}");
        assert_eq!(slow["outcome"], "allowed");
    }
    // One process plans the same load.
    let alone = start(&webhook, &["--rate", "100/s", "--for", "3s"]).wait_with_output().unwrap();
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(alone["fingerprint"], report["fingerprint"]);
    let rows = std::fs::read_to_string(hlog).unwrap();
    assert!(rows.lines().filter(|line| line.starts_with("Tag=service")).count() >= 3, "{rows}");
}

#[test]
#[ignore = "slow"]
fn a_killed_worker_makes_the_run_invalid_and_nobody_stays() {
    let webhook = Webhook::start(Habit::Allow);
    let child = start(&webhook, &["--rate", "50/s", "--for", "10m", "--workers", "2"]);
    // Both have reported their first second.
    until("load", || webhook.reviews() > 150);
    let workers = workers(child.id());
    assert_eq!(workers.len(), 2);
    kill_process(workers[0], Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = report["findings"][0]["text"].as_str().unwrap();
    assert!(why.contains("ended before its work was done: signal: 9"), "{why}");
    assert!(report["numbers"]["sent"].as_u64().unwrap() > 0, "what was measured until then is told");
    until("the other worker's end", || test_kill_process(workers[1]).is_err());
}

#[test]
#[ignore = "slow"]
fn no_worker_outlives_a_killed_coordinator() {
    let webhook = Webhook::start(Habit::Allow);
    let mut child = start(&webhook, &["--rate", "50/s", "--for", "10m", "--workers", "2"]);
    until("load", || webhook.reviews() > 20);
    let workers = workers(child.id());
    assert_eq!(workers.len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    for worker in workers {
        until("the end of a worker", || gone(worker));
    }
}

/// Whether a process has ended: it does not exist, or is a zombie.
fn gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
#[ignore = "slow"]
fn ctrl_c_ends_all_with_the_summary() {
    let webhook = Webhook::start(Habit::Allow);
    let child = start(&webhook, &["--rate", "50/s", "--for", "10m", "--workers", "2"]);
    until("load", || webhook.reviews() > 50);
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        report["findings"][0]["text"].as_str().unwrap().contains("SIGINT ended the run early"),
        "{}",
        story(&output)
    );
    let numbers = &report["numbers"];
    let answered = numbers["allowed"].as_u64().unwrap() + numbers["abandoned"].as_u64().unwrap();
    assert_eq!(numbers["sent"].as_u64().unwrap(), answered, "{}", story(&output));
    assert!(numbers["allowed"].as_u64().unwrap() >= 50, "{}", story(&output));
}

/// A worker refuses unknown messages of its coordinator, as the coordinator does with those of its workers.
#[test]
#[ignore = "slow"]
fn a_worker_refuses_what_it_does_not_know() {
    let said = |input: &str| {
        let mut child = longhaul(&["worker"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", story(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(said("hello?\n").contains("which is no line of the protocol"));
    assert!(said("{\"ping\":{\"id\":1}}\n").contains("the next order must be `assign`"));
    assert!(said("").starts_with(r#"{"hello":{"protocol":"longhaul-worker/4""#));
}

/// A command that forwards stdin and stdout of a local worker, as `ssh` does for a remote one.
fn elsewhere() -> String {
    format!("cat | sh -c '{} worker' | cat", itself().display())
}

#[test]
fn workers_behind_commands_do_the_same() {
    let webhook = Webhook::start(Habit::Allow);
    let command = elsewhere();
    let arguments = ["--rate", "50/s", "--for", "2s", "--worker", &command, "--workers", "1", "--worker", &command];
    let output = start(&webhook, &arguments).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["workers"], &report["numbers"]["allowed"]), (&3.into(), &100.into()), "{}", story(&output));
}

#[test]
#[ignore = "slow"]
fn a_worker_lost_behind_a_command_makes_the_run_invalid() {
    let webhook = Webhook::start(Habit::Allow);
    // It forwards the third interval, then is gone.
    let lost = format!("{} worker | sed -u '/\"number\":2,/q'", itself().display());
    let output = start(&webhook, &["--rate", "50/s", "--for", "10m", "--workers", "1", "--worker", &lost])
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = report["findings"][0]["text"].as_str().unwrap();
    assert!(why.contains("worker 1 (/") && why.contains("ended before its work was done"), "{why}");
    assert!(report["numbers"]["sent"].as_u64().unwrap() > 0, "what was measured until then is told");
}

/// If a pipe changes the lines of a correct worker in any way, the coordinator refuses that worker by name, and neither
/// hangs nor grows.
#[test]
#[ignore = "slow"]
fn a_worker_that_lies_makes_the_run_invalid() {
    let webhook = Webhook::start(Habit::Allow);
    // The head of a histogram with 4 GiB of counters, which do not follow.
    let head = [0x1c84_9313_u32, u32::MAX, 0, 3, 0, 1, 0, 120_000_000, 0x3ff0_0000, 0];
    let head = head.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let histogram = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, head);
    let sed = |script: &str| format!("sed -u -e '{script}'");
    let entries = r#""a","#.repeat(1000);
    for (change, why) in [
        (sed("s/\"number\":1,/\"number\":9,/"), "delivered interval 9 where 1 is next"),
        (sed("s/^.*\"number\":1,.*$/noise/"), "wrote `noise`, which is no line of the protocol"),
        (
            sed(&format!("s|\"service\":\"[^\"]*\"|\"service\":\"{histogram}\"|")),
            "the histogram `service` says that 4294967295 bytes follow its head",
        ),
        (sed("s/\"endMs\":[0-9]*/\"endMs\":18446744073709551615/"), "ms to 18446744073709551615 ms"),
        (sed(&format!("s/\"examples\":\\[\\]/\"examples\":[{entries}\"a\"]/")), "a list of at most 64 entries"),
        (sed("s/^{\"end\".*$/{\"end\":{\"intervals\":1000}}/"), "ended after 1000 intervals but delivered"),
        (
            r#"{ n=0; while IFS= read -r line; do case "$line" in *'"interval":'*) last=$line; n=$((n + 1)) ;; *'"end":'*) while :; do printf "%s\\n" "$last" | sed "s/\"number\":[0-9]*/\"number\":$n/"; n=$((n + 1)); done ;; esac; printf "%s\\n" "$line"; done; }"#
                .to_owned(),
            "intervals of the longest run, and does not end",
        ),
    ] {
        let liar = format!("{} worker | {change}", itself().display());
        let began = Instant::now();
        let output =
            start(&webhook, &["--rate", "50/s", "--for", "3s", "--worker", &liar]).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{change}: {}", story(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = report["findings"][0]["text"].as_str().unwrap();
        assert!(text.contains("worker 0 (/") && text.contains(why), "{change}: {text}");
        assert!(began.elapsed() < PATIENCE, "{change}: {:?}", began.elapsed());
    }
}

/// The coordinator refuses workers with another version or with nonsense, which the test itself implements from the
/// protocol's description. A worker of the test sends its next line after each message of the coordinator.
#[test]
fn other_versions_and_nonsense_are_refused() {
    let webhook = Webhook::start(Habit::Allow);
    let refused = |command: &str| {
        let arguments = ["--rate", "10/s", "--for", "1s", "--worker", command];
        let output = start(&webhook, &arguments).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = |lines: &[&str]| {
        let script = lines.iter().map(|line| format!("echo '{line}'; read order; ")).collect::<Vec<_>>().concat();
        refused(&script)
    };
    let hello = r#"{"hello":{"protocol":"longhaul-worker/4","version":"0.1.0"}}"#;
    let older = said(&[r#"{"hello":{"protocol":"longhaul-worker/1","version":"0.0.9"}}"#]);
    assert!(older.contains("speaks longhaul-worker/1 (longhaul 0.0.9), this program longhaul-worker/4"), "{older}");
    let garbage = said(&["Welcome to host 1"]);
    assert!(garbage.contains("wrote `Welcome to host 1`, which is no line of the protocol"), "{garbage}");
    let other = said(&[hello, r#"{"ready":{"planned":9,"fingerprint":"abc"}}"#]);
    assert!(other.contains("has another plan: 9 requests of abc, not 10 of"), "{other}");
    let error = said(&[hello, r#"{"error":{"message":"no descriptors left"}}"#]);
    assert!(error.contains("no descriptors left"), "{error}");
    let order = said(&[hello, r#"{"end":{"intervals":0}}"#]);
    assert!(order.contains("instead of `ready`"), "{order}");
    let long = refused("head -c 4194400 /dev/zero");
    assert!(long.contains("a line of more than 4194304 bytes"), "{long}");
    let none = refused("exit 255");
    assert!(none.contains("worker 0 (exit 255) ended early: exit status: 255"), "{none}");
    assert_eq!(webhook.reviews(), 7, "nothing but probes");
}

/// Runs the small scenario with two workers.
fn sent_by_workers(arguments: &[&str]) -> Option<Soak> {
    let service = program("longhaul-service-planted")?;
    let text = include_str!("../files/small.yaml").replace("  rate: 40/s\n", "  rate: 40/s\n  workers: {count: 2}\n");
    Some(soak_text(&text, &[&["--service", service.to_str().unwrap()], arguments].concat()))
}

fn sent(soak: &Soak) -> u64 {
    rows(&soak.record(), "intervals.jsonl").iter().filter_map(|row| row["admission"]["sent"].as_u64()).sum()
}

/// Workers send the same load that the scenario plans without them, and every answer is judged.
#[test]
#[ignore = "slow"]
fn workers_send_the_load_of_a_scenario() {
    let Some(soak) = sent_by_workers(&[]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert_eq!(sent(&soak), 440, "40/s for 11 s: {}", soak.story());
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    let service = program("longhaul-service-planted").unwrap();
    let alone = soak_text(include_str!("../files/small.yaml"), &["--service", service.to_str().unwrap()]);
    let fingerprint = |text: &str| serde_json::from_str::<Value>(text).unwrap()["payloadFingerprint"].clone();
    let other = std::fs::read_to_string(alone.record().join("manifest.json")).unwrap();
    assert_eq!(fingerprint(&manifest), fingerprint(&other));
    assert!(!fingerprint(&manifest).is_null(), "{manifest}");
}

/// Workers find a wrong decision, because they know the right decision for each image.
#[test]
#[ignore = "slow"]
fn a_wrong_verdict_is_seen_by_workers() {
    let Some(soak) = sent_by_workers(&["--plant", "wrong-allow"]) else { return };
    soak.fails_by(&["admission.wrongVerdicts"]);
}

/// If a worker is killed, its requests are never sent, and the run is invalid.
#[test]
#[ignore = "slow"]
fn a_run_whose_worker_is_killed_is_invalid() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.yaml");
    let text = include_str!("../files/small.yaml").replace("  rate: 40/s\n", "  rate: 40/s\n  workers: {count: 2}\n");
    std::fs::write(&file, text).unwrap();
    let mut command = longhaul(&["soak", file.to_str().unwrap(), "--quiet", "--for", "10m", "--runs"]);
    command.arg(folder.path().join("runs")).arg("--service").arg(service);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let of = |parent: u32| {
        let named = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
            line.ends_with(b"\0worker\0")
        };
        workers(parent).into_iter().filter(named).collect::<Vec<_>>()
    };
    until("load", || sends(&folder.path().join("runs")));
    let crew = of(child.id());
    assert_eq!(crew.len(), 2);
    kill_process(crew[0], Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    assert!(story(&output).contains("ended before its work was done: signal: 9"), "{}", story(&output));
    until("the other worker's end", || gone(crew[1]));
}
