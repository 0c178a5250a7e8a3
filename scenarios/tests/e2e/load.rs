//! Tests of `longhaul load` against a webhook in the test process: figures, exit codes, and the message if the webhook
//! does not answer.

use std::net::TcpListener;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{longhaul, story};
use crate::webhook::{Certificate, Habit, Webhook};

fn load(webhook: &Webhook, arguments: &[&str]) -> Output {
    let (url, ca) = (webhook.url(), webhook.ca());
    longhaul(&["load", &url, "--ca", ca.to_str().unwrap(), "--quiet"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", story(output)))
}

/// Every planned request arrives at the webhook, and every figure of the result agrees with the number of requests.
#[test]
#[ignore = "slow"]
fn what_is_counted_is_what_the_webhook_saw() {
    let webhook = Webhook::start(Habit::Allow);
    let hlog = webhook.file("run.hlog");
    let arguments = ["--rate", "200/s", "--for", "2s", "--json", "-", "--hlog", hlog.to_str().unwrap(), "--p99", "5s"];
    let output = load(&webhook, &arguments);
    assert_eq!(output.status.code(), Some(2), "400 answers are too few for a p99: {}", story(&output));
    let report = report(&output);
    assert_eq!(report["schema"], "longhaul-load/v1");
    assert_eq!(report["verdict"], "inconclusive");
    let numbers = &report["numbers"];
    assert_eq!(numbers["planned"], 400);
    assert_eq!(numbers["sent"].as_u64().unwrap() + numbers["overflow"].as_u64().unwrap(), 400);
    assert_eq!(numbers["allowed"], numbers["sent"]);
    assert_eq!(webhook.reviews(), numbers["sent"].as_u64().unwrap() + 1, "one more for the probe");
    assert_eq!(numbers["response"]["count"], numbers["sent"]);
    assert_eq!(histograms(&hlog), numbers["sent"].as_u64().unwrap());
}

/// The number of samples in all rows of the file `response.allowed`. The test reads the rows with the crate
/// `hdrhistogram`, because other tools for this format must be able to read them.
fn histograms(path: &std::path::Path) -> u64 {
    use base64::Engine as _;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let file = std::fs::read(path).unwrap();
    let mut samples = 0;
    for entry in IntervalLogIterator::new(&file) {
        if let LogEntry::Interval(row) = entry.unwrap()
            && row.tag().unwrap().as_str() == "response.allowed"
        {
            let bytes = base64::engine::general_purpose::STANDARD.decode(row.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            samples += histogram.len();
        }
    }
    samples
}

#[test]
#[ignore = "slow"]
fn limits_decide_the_exit_code() {
    let slow = Webhook::start(Habit::Slow(Duration::from_millis(300)));
    let output = load(&slow, &["--rate", "100/s", "--for", "3s", "--p50", "250ms"]);
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    assert!(text(&output.stdout).contains("p50 of the response time is 3"), "{}", story(&output));
    assert!(text(&output.stdout).contains("above its limit of 250ms"), "{}", story(&output));

    let failing = Webhook::start(Habit::Errors(4));
    let output = load(&failing, &["--rate", "100/s", "--for", "2s", "--errors", "10%", "--json", "-"]);
    assert_eq!(output.status.code(), Some(1), "{}", story(&output));
    let result = report(&output);
    let errors = result["numbers"]["httpError"].as_u64().unwrap();
    assert!((45..=51).contains(&errors), "every fourth of 200 reviews: {errors}");
    assert!(result["numbers"]["examples"][0].as_str().unwrap().contains("HTTP 500: `boom`"), "{}", story(&output));
    let output = load(&failing, &["--rate", "100/s", "--for", "1s", "--errors", "50%"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
}

/// If a webhook never answers, the limit of requests in flight is reached. In this case the planned load is not sent
/// completely, so the result is invalid.
#[test]
#[ignore = "slow"]
fn a_generator_that_could_not_send_is_invalid() {
    let webhook = Webhook::start(Habit::Slow(Duration::from_secs(2)));
    let output = load(&webhook, &["--rate", "100/s", "--for", "1s", "--max-in-flight", "10", "--errors", "0%"]);
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let said = text(&output.stdout);
    assert!(said.contains("of the planned requests were sent, 90 came while"), "{}", story(&output));
    assert!(said.contains("verdict: invalid"), "{}", story(&output));
}

#[test]
#[ignore = "slow"]
fn a_signal_ends_it_early_with_the_summary() {
    let webhook = Webhook::start(Habit::Allow);
    let (url, ca) = (webhook.url(), webhook.ca());
    let mut command =
        longhaul(&["load", &url, "--ca", ca.to_str().unwrap(), "--rate", "100/s", "--for", "10m", "--quiet"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while webhook.reviews() < 50 {
        assert!(std::time::Instant::now() < deadline, "no load came");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", story(&output));
    let said = text(&output.stdout);
    assert!(said.contains("SIGINT ended the run early"), "{}", story(&output));
    assert!(said.contains("response time"), "{}", story(&output));
}

/// `--plan` prints the plan and sends no request. With the same seed, `--plan` prints the same plan.
#[test]
#[ignore = "slow"]
fn the_plan_is_printed() {
    let webhook = Webhook::start(Habit::Allow);
    let arguments = ["--rate", "10/s", "--ramp-to", "110/s", "--for", "20s", "--arrivals", "constant", "--plan"];
    let output = load(&webhook, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let said = text(&output.stdout);
    assert!(said.starts_with("1200 requests in 20.0 s (from 10/s to 110/s, evenly spaced)\n"), "{said}");
    assert!(said.contains("18.0s      20.0s        210     105.0/s"), "{said}");
    assert!(said.contains("fingerprint "), "{said}");
    assert_eq!(said, text(&load(&webhook, &arguments).stdout));
    assert_ne!(said, text(&load(&webhook, &[&arguments[..], &["--seed", "2"]].concat()).stdout));
    assert_eq!(webhook.reviews(), 0);
}

/// `--replay` sends a recording again, review by review. `--replay` also reads files that a user wrote, and names
/// unreadable lines.
#[test]
#[ignore = "slow"]
fn a_recording_is_sent_again() {
    let webhook = Webhook::start(Habit::Allow);
    let file = webhook.file("plan.jsonl");
    let file = file.to_str().unwrap();
    let output = load(&webhook, &["--rate", "50/s", "--for", "2s", "--record", file, "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let recorded = report(&output)["fingerprint"].clone();
    let (url, ca) = (webhook.url(), webhook.ca());
    let replay = |file: &str, more: &[&str]| {
        let mut command =
            longhaul(&["load", &url, "--replay", file, "--ca", ca.to_str().unwrap(), "--quiet", "--json", "-"]);
        command.args(more).output().unwrap()
    };
    for more in [&[][..], &["--workers", "2"]] {
        let before = webhook.reviews();
        let output = replay(file, more);
        assert_eq!(output.status.code(), Some(0), "{}", story(&output));
        assert_eq!(report(&output)["numbers"]["sent"], 100);
        assert_eq!(report(&output)["fingerprint"], recorded, "the same load has the same fingerprint");
        assert!(report(&output)["schedule"].as_str().unwrap().starts_with("100 requests in"), "{}", story(&output));
        assert_eq!(webhook.reviews() - before, 101, "one more for the probe");
    }
    let own = webhook.file("own.jsonl");
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"mine"}}"#;
    std::fs::write(&own, format!("{{\"atUs\": 0, \"body\": {body}}}\n{{\"atUs\": 20000}}\n")).unwrap();
    let output = replay(own.to_str().unwrap(), &[]);
    assert_eq!(report(&output)["numbers"]["allowed"], 2, "{}", story(&output));
    std::fs::write(&own, format!("{{\"atUs\": 5}}\n{{\"atUs\": 1, \"body\": {body}}}\n")).unwrap();
    let output = replay(own.to_str().unwrap(), &[]);
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    assert_says(&text(&output.stderr), &["own.jsonl:2: atUs is 1, before 5 of an earlier line"]);
}

/// The error message of a `longhaul load` that must start nothing.
fn refused(arguments: &[&str]) -> String {
    let output = longhaul(&["load"]).args(arguments).args(["--rate", "10/s", "--for", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    assert!(output.stdout.is_empty(), "{}", story(&output));
    text(&output.stderr)
}

fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
}

#[test]
#[ignore = "slow"]
fn no_listener_wrong_path_and_no_webhook_say_what_to_do() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free.local_addr().unwrap();
    drop(free);
    let webhook = Webhook::start(Habit::Allow);
    let ca = webhook.ca();
    let ca = ca.to_str().unwrap();
    let url = format!("https://{closed}/mutate");
    assert_says(&refused(&[&url, "--ca", ca]), &[&format!("nothing listens at {closed}"), "start the webhook"]);

    let url = format!("https://{}/mutat", webhook.address);
    let said = refused(&[&url, "--ca", ca]);
    assert_says(&said, &["no webhook at the path `/mutat`", "HTTP 404: 404 page not found", "/mutate (`clientConfig"]);

    let nonsense = Webhook::start(Habit::Nonsense);
    let said = refused(&[&nonsense.url(), "--ca", nonsense.ca().to_str().unwrap()]);
    assert_says(&said, &["not with an AdmissionReview", r#"{"hello":"world"}"#]);
    let wrong = Webhook::start(Habit::WrongUid);
    assert_says(&refused(&[&wrong.url(), "--ca", wrong.ca().to_str().unwrap()]), &["wrong `response.uid`"]);
    let errors = Webhook::start(Habit::Errors(1));
    let said = refused(&[&errors.url(), "--ca", errors.ca().to_str().unwrap()]);
    assert_says(&said, &["answers the first review with HTTP 500 (boom)", "--no-probe"]);
    let output = load(&errors, &["--rate", "50/s", "--for", "1s", "--no-probe", "--p50", "5s", "--json", "-"]);
    assert_eq!(output.status.code(), Some(2), "fast failures are no fast webhook: {}", story(&output));
    assert_eq!(report(&output)["numbers"]["httpError"], 50);
    assert_says(&text(&output.stdout), &["none of 50 calls got a valid answer"]);
}

#[test]
#[ignore = "slow"]
fn certificates_that_do_not_fit_say_what_to_give() {
    let webhook = Webhook::start(Habit::Allow);
    let other = Webhook::start(Habit::Allow);
    let ca = webhook.ca();
    let ca = ca.to_str().unwrap();
    assert_says(&refused(&[&webhook.url()]), &["--ca FILE is missing", "caBundle"]);
    let said = refused(&[&webhook.url(), "--ca", other.ca().to_str().unwrap()]);
    assert_says(&said, &["not signed by the CA in --ca, although that has the right name", "openssl s_client"]);
    let unrelated = webhook.file("unrelated.pem");
    std::fs::write(&unrelated, mock_pki::Authority::generate("unrelated").unwrap().ca_pem()).unwrap();
    let said = refused(&[&webhook.url(), "--ca", unrelated.to_str().unwrap()]);
    assert_says(&said, &["signed by none of the CAs in --ca", "openssl s_client"]);
    let empty = webhook.file("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    let said = refused(&[&webhook.url(), "--ca", empty.to_str().unwrap()]);
    assert_says(&said, &["--ca: there is no `BEGIN CERTIFICATE` block"]);
    assert_says(&refused(&[&webhook.url(), "--ca", "/nowhere"]), &["--ca: failed to read /nowhere"]);

    let named = Webhook::with(Habit::Allow, Certificate::For("webhook.shop.svc"));
    let (url, ca_file) = (named.url(), named.ca());
    let said = refused(&[&url, "--ca", ca_file.to_str().unwrap()]);
    assert_says(&said, &["is not for `127.0.0.1`; it is for webhook.shop.svc: choose", "--server-name"]);
    let output = load(&named, &["--rate", "50/s", "--for", "1s", "--server-name", "webhook.shop.svc"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));

    let expired = Webhook::with(Habit::Allow, Certificate::Expired);
    let said = refused(&[&expired.url(), "--ca", expired.ca().to_str().unwrap()]);
    assert_says(&said, &["has expired", "renew it"]);
    let asks = Webhook::with(Habit::Allow, Certificate::AsksForClients);
    let said = refused(&[&asks.url(), "--ca", asks.ca().to_str().unwrap()]);
    assert_says(&said, &["demands a client certificate"]);
    let said = refused(&[&webhook.url(), "--ca", ca, "--client", "http2"]);
    assert_says(&said, &["HTTP"]);
}

/// The certificate of `openssl req -x509` is its own CA. `--ca` accepts such a certificate, as kube-apiserver does in
/// `caBundle`.
#[test]
#[ignore = "slow"]
fn a_certificate_that_is_its_own_ca_is_believed_when_it_is_given() {
    let own = Webhook::with(Habit::Allow, Certificate::Own);
    let output = load(&own, &["--rate", "50/s", "--for", "1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
    let other = Webhook::with(Habit::Allow, Certificate::Own);
    let said = refused(&[&own.url(), "--ca", other.ca().to_str().unwrap()]);
    assert_says(&said, &["is marked as a CA", "is not the one in --ca"]);
}

#[test]
#[ignore = "slow"]
fn plain_http_and_tls_are_told_apart() {
    let webhook = Webhook::start(Habit::Allow);
    let ca = webhook.ca();
    let ca = ca.to_str().unwrap();
    let said = refused(&[&format!("http://{}/mutate", webhook.address), "--ca", ca]);
    assert_says(&said, &[&format!("this port speaks TLS: write https://{}/mutate", webhook.address)]);

    let plain = Plain::start();
    let said = refused(&[&format!("https://{}/mutate", plain.0), "--ca", ca]);
    assert_says(&said, &["speaks no TLS, perhaps plain http", "https only"]);
    let said = refused(&[&format!("http://{}/mutate", plain.0), "--ca", ca]);
    assert_says(
        &said,
        &["begins with http://", "Kubernetes calls webhooks over https only: give the server a certificate"],
    );
    for (url, expected) in [("nonsense", "does not begin with https://"), ("https://", "is no address")] {
        assert_says(&refused(&[url, "--ca", ca]), &[expected, "write for example https://"]);
    }
}

/// An HTTP server without TLS that answers a TLS handshake with 400, as real servers do.
struct Plain(std::net::SocketAddr);

impl Plain {
    fn start() -> Self {
        use std::io::{Read as _, Write as _};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self(address)
    }
}

/// If the disk is full, the result file is lost, but the measurement is not: the result is printed.
#[test]
#[ignore = "slow"]
fn a_full_disk_does_not_lose_the_result() {
    if !std::path::Path::new("/dev/full").exists() {
        println!("skipped: needs /dev/full");
        return;
    }
    let webhook = Webhook::start(Habit::Allow);
    let output = load(&webhook, &["--rate", "100/s", "--for", "3s", "--hlog", "/dev/full", "--json", "-"]);
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    let found = report(&output);
    assert_eq!(found["numbers"]["allowed"], 300, "{}", story(&output));
    assert_eq!((&found["findings"][0]["budget"], &found["verdict"]), (&"run.log".into(), &"inconclusive".into()));
    assert_says(
        found["findings"][0]["text"].as_str().unwrap(),
        &["the .hlog ends 0 s after its start", "No space left"],
    );

    let output = load(&webhook, &["--rate", "100/s", "--for", "1s", "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    assert_says(&text(&output.stderr), &["--json: failed to write /dev/full: No space left"]);
    assert_says(&text(&output.stdout), &["verdict: pass", "fingerprint"]);
    let before = webhook.reviews();
    let output = load(&webhook, &["--rate", "100/s", "--for", "1s", "--json", "/nowhere/result.json"]);
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    assert_says(&text(&output.stderr), &["--json: failed to write /nowhere/result.json: No such file"]);
    assert_eq!(webhook.reviews(), before, "said before anything is sent");
}

/// If the result cannot be printed, the exit code shows the failure. If stderr cannot be written, `longhaul load`
/// continues.
#[test]
#[ignore = "slow"]
fn streams_that_cannot_be_written_are_told_by_the_exit_code() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        println!("skipped: needs /dev/full");
        return;
    };
    let webhook = Webhook::start(Habit::Allow);
    let (url, ca) = (webhook.url(), webhook.ca());
    let start = |more: &[&str]| {
        let mut command = longhaul(&["load", &url, "--ca", ca.to_str().unwrap(), "--rate", "50/s", "--for", "1s"]);
        command.args(more);
        command
    };
    let output = start(&["--quiet"]).stdout(full.try_clone().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(70), "{}", story(&output));
    assert_says(&text(&output.stderr), &["longhaul: failed to write to stdout: No space left on device"]);
    // The plain live line comes every ten seconds, and refusals at once.
    let output = start(&["--p99", "nonsense"]).stderr(full.try_clone().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    let output = start(&["--hlog", "/nowhere/x"]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(64), "{}", story(&output));
    // The reader closes early.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = start(&["--quiet"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{}", story(&output));
}

/// If the server's first answer breaks off, is endless, or contains escape sequences, the error message has a remedy,
/// and no escape sequence reaches the terminal.
#[test]
#[ignore = "slow"]
fn first_answers_that_are_none_say_what_to_do() {
    for (habit, parts) in [
        (Habit::BreaksOff, &["broke off in the middle of its answer (", "its log may say why"][..]),
        (Habit::Endless, &["`/mutate` of 127.0.0.1:", "answers with more than 4 MiB", "give the path of the webhook"]),
        (Habit::Colours, &["HTTP 500 (\u{fffd}[31mboom\u{fffd}[2J"]),
    ] {
        let webhook = Webhook::start(habit);
        let said = refused(&[&webhook.url(), "--ca", webhook.ca().to_str().unwrap()]);
        assert_says(&said, parts);
        assert!(!said.trim_end().contains(char::is_control), "{said:?}");
    }
}

#[test]
#[ignore = "slow"]
fn flags_that_make_no_sense_are_refused() {
    let webhook = Webhook::start(Habit::Allow);
    let ca = webhook.ca();
    let (url, ca) = (webhook.url(), ca.to_str().unwrap().to_owned());
    let run = |arguments: &[&str]| {
        let output = longhaul(&["load", &url, "--ca", &ca]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{}", story(&output));
        text(&output.stderr)
    };
    assert_says(&run(&[]), &["--rate <RATE>"]);
    assert_says(&run(&["--rate", "0/s"]), &["--rate is 0: write how many"]);
    assert_says(&run(&["--rate", "100"]), &["`100` has no unit: write for example `200/s`"]);
    assert_says(&run(&["--rate", "99999999/s"]), &["write at most"]);
    assert_says(&run(&["--rate", "1/s", "--for", "0s"]), &["--for is 0s"]);
    assert_says(&run(&["--rate", "1/s", "--steps", "1/s:1s"]), &["cannot be used with"]);
    assert_says(&run(&["--rate", "5/s", "--sine", "6/s:1s"]), &["sine.amplitude (6/s) is above `rate` (5/s)"]);
    assert_says(&run(&["--rate", "1/s", "--mix", "createPods=1"]), &["perhaps `createPod`"]);
    assert_says(&run(&["--rate", "1/s", "--errors", "1"]), &["for example `0.1%`"]);
    assert_says(&run(&["--rate", "1/s", "--timeout", "100ms"]), &["--timeout is 100ms"]);
    assert_eq!(webhook.reviews(), 0);
}
