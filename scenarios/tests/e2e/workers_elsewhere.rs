//! Workers on a network: they and their coordinator find each other, strangers are sent away, and whoever is missing or lost is
//! told. All on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use aws_lc_rs::hmac;
use serde_json::{Value, json};

use crate::support::longhaul;
use crate::webhook::{Habit, Webhook};
use crate::workers::{start, story, until};

const TOKEN: &str = "a token that both sides know";
const VARIABLE: &str = "LONGHAUL_WORKER_TOKEN";

/// A file with the token, beside the webhook's own.
fn token_file(webhook: &Webhook) -> String {
    let file = webhook.file("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn worker(arguments: &[&str], token: &str) -> Command {
    let mut command = longhaul(&["worker"]);
    command.args(arguments).env(VARIABLE, token).stderr(Stdio::piped());
    command
}

/// The process, the rest of what it says, and the address that its first line ends with.
fn waiting(mut child: Child) -> (Child, BufReader<ChildStderr>, String) {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting"), "{line}");
    (child, said, line.trim().rsplit(' ').next().unwrap().to_owned())
}

/// A coordinator that waits for two workers.
fn coordinator(webhook: &Webhook, arguments: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let token = token_file(webhook);
    let mut all = vec!["--workers", "2", "--listen", "127.0.0.1:0", "--token-file", &token];
    all.extend(arguments);
    waiting(start(webhook, &all))
}

#[test]
#[ignore = "slow"]
fn workers_that_listen_do_the_same() {
    let webhook = Webhook::start(Habit::Allow);
    let (mut first, _first_says, one) = waiting(worker(&["--listen", "127.0.0.1:0"], TOKEN).spawn().unwrap());
    let (mut second, _second_says, two) = waiting(worker(&["--listen", "127.0.0.1:0"], TOKEN).spawn().unwrap());
    let (token, workers) = (token_file(&webhook), format!("{one},{two}"));
    let arguments = ["--rate", "50/s", "--for", "2s", "--worker-at", &workers, "--token-file", &token];
    let output = start(&webhook, &arguments).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["workers"], &report["numbers"]["allowed"]), (&json!(2), &json!(100)), "{}", story(&output));
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
}

/// Who connects to a worker and says nothing does not keep its coordinator waiting.
#[test]
#[ignore = "slow"]
fn strangers_do_not_keep_a_worker_from_its_coordinator() {
    let webhook = Webhook::start(Habit::Allow);
    let (mut child, mut said, address) = waiting(worker(&["--listen", "127.0.0.1:0"], TOKEN).spawn().unwrap());
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut stranger = TcpStream::connect(&address).unwrap();
        // It has been taken when it is greeted.
        stranger.read_exact(&mut [0]).unwrap();
        silent.push(stranger);
    }
    let token = token_file(&webhook);
    let arguments = ["--rate", "50/s", "--for", "1s", "--worker-at", &address, "--token-file", &token];
    let output = start(&webhook, &arguments).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nobody waited for the strangers to be sent away");
}

/// Two of ours, among somebody who only connects, somebody who speaks HTTP and somebody with another token.
#[test]
#[ignore = "slow"]
fn workers_that_connect_do_the_same_and_strangers_do_not_disturb_them() {
    let webhook = Webhook::start(Habit::Allow);
    let (child, mut said, address) = coordinator(&webhook, &["--rate", "50/s", "--for", "2s"]);
    let silent = TcpStream::connect(&address).unwrap();
    let mut browser = TcpStream::connect(&address).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("refused a connection") && line.contains("which is no line of the protocol"), "{line}");
    let other = worker(&["--connect", &address], "another token, as long").output().unwrap();
    assert_eq!(other.status.code(), Some(3), "{}", story(&other));
    let why = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(why.contains("does not know the token of this worker"), "{why}");
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("the coordinator does not know the token of this worker: give both the same"), "{line}");
    let workers: Vec<Child> =
        (0..2).map(|_| worker(&["--connect", &address], TOKEN).stderr(Stdio::inherit()).spawn().unwrap()).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["workers"], &report["numbers"]["allowed"]), (&json!(2), &json!(100)), "{}", story(&output));
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    drop(silent);
}

/// Workers may be started before their coordinator.
#[test]
#[ignore = "slow"]
fn a_worker_waits_for_its_coordinator() {
    let webhook = Webhook::start(Habit::Allow);
    let reserved = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserved.local_addr().unwrap().to_string();
    drop(reserved);
    let mut early = worker(&["--connect", &address], TOKEN).spawn().unwrap();
    let token = token_file(&webhook);
    let arguments = ["--rate", "50/s", "--for", "1s", "--workers", "1", "--listen", &address, "--token-file", &token];
    let output = start(&webhook, &arguments).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    assert!(early.wait().unwrap().success());
    let late = worker(&["--connect", &address, "--wait", "1ms"], TOKEN).output().unwrap();
    assert_eq!(late.status.code(), Some(3), "{}", story(&late));
    assert!(String::from_utf8_lossy(&late.stderr).contains("no coordinator waits at"), "{}", story(&late));
}

#[test]
#[ignore = "slow"]
fn workers_that_never_come_end_it_before_anything_is_sent() {
    let webhook = Webhook::start(Habit::Allow);
    let (child, mut said, address) = coordinator(&webhook, &["--rate", "50/s", "--for", "1s", "--wait", "3s"]);
    // One is there in time.
    let only = worker(&["--connect", &address], TOKEN).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    let mut why = String::new();
    said.read_to_string(&mut why).unwrap();
    assert!(why.contains("only 1 of 2 workers came within 3s: start `longhaul worker --connect`"), "{why}");
    assert_eq!(webhook.reviews(), 1, "the probe");
    let only = only.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&only.stderr).contains("the coordinator is gone"), "{}", story(&only));
}

#[test]
#[ignore = "slow"]
fn a_lost_worker_makes_the_run_invalid() {
    let webhook = Webhook::start(Habit::Allow);
    let (child, _said, address) = coordinator(&webhook, &["--rate", "50/s", "--for", "10m"]);
    let mut workers: Vec<Child> =
        (0..2).map(|_| worker(&["--connect", &address], TOKEN).stderr(Stdio::null()).spawn().unwrap()).collect();
    until("load", || webhook.reviews() > 150);
    workers[0].kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = report["findings"][0]["text"].as_str().unwrap();
    assert!(why.contains("ended before its work was done: the connection was closed"), "{why}");
    assert!(report["numbers"]["sent"].as_u64().unwrap() > 0, "what was measured until then is told");
    assert_eq!(workers[1].wait().unwrap().code(), Some(3), "the other one ends too");
    workers[0].wait().unwrap();
}

#[test]
#[ignore = "slow"]
fn tokens_that_cannot_be_used_say_what_to_do() {
    let webhook = Webhook::start(Habit::Allow);
    let said = |arguments: &[&str]| {
        let mut all = vec!["--rate", "1/s", "--workers", "1", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let output = start(&webhook, &all).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&[]).contains("prove that they know a token: write one to a file"));
    assert!(said(&["--token-file", "/nowhere"]).contains("--token-file: failed to read /nowhere"));
    let short = webhook.file("short");
    std::fs::write(&short, "secret").unwrap();
    assert!(said(&["--token-file", short.to_str().unwrap()]).contains("the token has 6 bytes: use 16 to 4096"));
    assert!(said(&["--wait", "2h"]).contains("is no time to wait: write 1s to 30m"));
    assert_eq!(webhook.reviews(), 0, "not even a probe");
}

/// A worker of the test, written from the description of the protocol: it proves to know a token, then says these lines, one after
/// each order.
fn impostor(hello: String, token: &'static str, lines: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut orders = BufReader::new(stream.try_clone().unwrap());
        let mut order = String::new();
        // The coordinator may have had enough at any time.
        let _ = stream.write_all(hello.as_bytes());
        let _ = orders.read_line(&mut order);
        let challenge: Value = serde_json::from_str(&order).unwrap_or_default();
        let theirs = challenge["challenge"]["nonce"].as_str().unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        let proof = hmac::sign(&key, format!("longhaul-worker/3 worker {NONCE} {theirs}").as_bytes());
        let _ = writeln!(stream, r#"{{"proof":{{"proof":"{}"}}}}"#, hex::encode(proof));
        let _ = orders.read_line(&mut order);
        for line in lines {
            let _ = stream.write_all(line.as_bytes());
            let _ = orders.read_line(&mut order);
        }
    });
    address
}

const NONCE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
#[ignore = "slow"]
fn other_versions_and_nonsense_are_refused() {
    let webhook = Webhook::start(Habit::Allow);
    let token_file = token_file(&webhook);
    let said = |hello: &str, token: &'static str, lines: &[&str]| {
        let lines = lines.iter().map(|line| format!("{line}\n")).collect();
        let address = impostor(format!("{hello}\n"), token, lines);
        let arguments = ["--rate", "10/s", "--for", "1s", "--worker-at", &address, "--token-file", &token_file];
        let output = start(&webhook, &arguments).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let hello = format!(r#"{{"hello":{{"protocol":"longhaul-worker/3","version":"0.1.0","nonce":"{NONCE}"}}}}"#);
    let older = said(r#"{"hello":{"protocol":"longhaul-worker/1","version":"0.0.9"}}"#, TOKEN, &[]);
    assert!(older.contains("speaks longhaul-worker/1 (longhaul 0.0.9), this program longhaul-worker/3"), "{older}");
    let without = said(r#"{"hello":{"protocol":"longhaul-worker/3","version":"0.1.0"}}"#, TOKEN, &[]);
    assert!(without.contains("said hello without a nonce"), "{without}");
    let garbage = said("GET / HTTP/1.1", TOKEN, &[]);
    assert!(garbage.contains("wrote `GET / HTTP/1.1`, which is no line of the protocol"), "{garbage}");
    let long = said(&"x".repeat(2000), TOKEN, &[]);
    assert!(long.contains("a line of more than 1024 bytes"), "{long}");
    let unknown = said(&hello, "a token that nobody knows", &[]);
    assert!(unknown.contains("does not know the token"), "{unknown}");
    let other = said(&hello, TOKEN, &[r#"{"ready":{"planned":9,"fingerprint":"abc"}}"#]);
    assert!(other.contains("has another plan: 9 requests of abc, not 10 of"), "{other}");
    let error = said(&hello, TOKEN, &[r#"{"error":{"message":"no descriptors left"}}"#]);
    assert!(error.contains("no descriptors left"), "{error}");
    let order = said(&hello, TOKEN, &[r#"{"end":{"intervals":0}}"#]);
    assert!(order.contains("where `ready` is next"), "{order}");
    let long = said(&hello, TOKEN, &[&"x".repeat((4 << 20) + 10)]);
    assert!(long.contains("a line of more than 4194304 bytes"), "{long}");
}
