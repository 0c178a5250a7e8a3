//! Tests of the HTTP pages that a run serves until its end: its metrics and its live report.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{longhaul, program, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// Time limit of a run's start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Sends a request. Returns the status line with headers, and the body.
fn ask(address: &str, method: &str, path: &str) -> std::io::Result<(String, String)> {
    ask_as(address, address, method, path)
}

/// Sends a request with the name `host` in the `Host` header.
fn ask_as(host: &str, address: &str, method: &str, path: &str) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Ok((head.to_owned(), body.to_owned()))
}

/// The value of a metric; `name` is the beginning of its line.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
    line.trim().parse().unwrap()
}

/// Host and path of the live report's address. The path of the live report contains a token.
fn split(address: &str) -> (String, String) {
    let (host, path) = address.split_at(address.find('/').unwrap());
    assert!(path.len() > 30 && path.ends_with('/'), "{path}");
    (host.to_owned(), path.to_owned())
}

/// The addresses in the run's output lines that begin with these texts, in the order of the texts. A thread reads and
/// drops the run's further output, so that the run is never blocked.
fn addresses<const N: usize>(run: &mut Child, begin: [&str; N]) -> ([String; N], JoinHandle<usize>) {
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let addresses = begin.map(|begins| {
        let line = lines.by_ref().find(|line| line.starts_with(begins)).unwrap();
        line.split("http://").nth(1).unwrap().to_owned()
    });
    (addresses, std::thread::spawn(move || lines.count()))
}

#[test]
#[ignore = "slow"]
fn metrics_and_page_are_there_while_it_runs_and_gone_after() {
    let Some(service) = program("longhaul-service") else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut run = longhaul(&["soak", SMALL, "--metrics", "0", "--serve", "127.0.0.1:0", "--service"]);
    run.arg(service).arg("--run-dir").arg(&record).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let ([metrics, page], drained) = addresses(&mut run, ["metrics: ", "the run as it goes on: "]);
    let metrics = metrics.strip_suffix("/metrics").unwrap().to_owned();
    let (page, token) = split(&page);

    let began = Instant::now();
    let read = || ask(&metrics, "GET", "/metrics").unwrap().1;
    let mut commits = Vec::new();
    while commits.len() < 2 {
        assert!(began.elapsed() < PATIENCE, "{commits:?}");
        let text = read();
        assert!(value(&text, "longhaul_run_finished ") < 0.5 && text.ends_with("# EOF\n"), "{text}");
        // The first row is there after five seconds.
        let now = value(&text, "longhaul_commits_total ");
        if now > commits.last().copied().unwrap_or(0.0) {
            assert!(text.contains("longhaul_resident_memory_bytes{process=\"subject\"}"), "{text}");
            commits.push(now);
        }
        std::thread::yield_now();
    }
    let (head, html) = ask(&page, "GET", &token).unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200") && html.contains("while the run goes on") && html.contains("plot-memory"),
        "{head}"
    );
    assert!(ask(&page, "GET", &format!("{token}manifest.json")).unwrap().1.starts_with('{'));
    // A foreign web page that has found the port has no token, and uses a host name of its own.
    for path in ["/", "/manifest.json", "/ended", &format!("/{}/", "0".repeat(32))] {
        let (head, body) = ask(&page, "GET", path).unwrap();
        assert!(head.starts_with("HTTP/1.1 404") && body.contains("has a token in it"), "{path}: {head} {body}");
    }
    for (address, path) in [(&page, token.as_str()), (&page, "/metrics"), (&metrics, "/metrics")] {
        let (head, _) = ask_as("evil.example", address, "GET", path).unwrap();
        assert!(head.starts_with("HTTP/1.1 421"), "{path}: {head}");
        assert!(ask_as("localhost:80", address, "GET", path).unwrap().0.starts_with("HTTP/1.1 200"), "{path}");
    }
    assert!(ask(&page, "GET", "/metrics").unwrap().1.ends_with("# EOF\n"), "as a Prometheus asks");
    assert!(ask(&metrics, "GET", "/manifest.json").unwrap().0.starts_with("HTTP/1.1 404"), "metrics alone");
    for (method, path, status) in
        [("GET", "../../etc/passwd", 404), ("GET", "end.part", 404), ("POST", "", 405), ("HEAD", "", 200)]
    {
        let (head, body) = ask(&page, method, &format!("{token}{path}")).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {head}");
        assert!(method != "HEAD" || body.is_empty());
    }

    assert_eq!(run.wait().unwrap().code(), Some(0));
    drained.join().unwrap();
    assert!(TcpStream::connect(&metrics).is_err() && TcpStream::connect(&page).is_err(), "nobody listens any more");
    let finished = std::fs::read_to_string(record.join("report.html")).unwrap();
    assert!(!finished.contains("The run goes on") && !finished.contains("connect-src"), "it is over");
    assert!(value(&std::fs::read_to_string(record.join("metrics.txt")).unwrap(), "longhaul_run_finished ") > 0.5);
    check(&record.join("metrics.txt"));
}

/// Checks the metrics with `promtool`, Prometheus' own tool.
fn check(metrics: &std::path::Path) {
    let file = std::fs::File::open(metrics).unwrap();
    let checked = Command::new("promtool").args(["check", "metrics"]).stdin(file).output();
    let Ok(checked) = checked else {
        println!("skipped: needs promtool");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!said.contains("error while linting: text format"), "{said}");
}

/// An HTML page with two simulated readers of one live report. The HTML page reports the text that both readers see.
const READERS: &str = include_str!("../files/live.html");
/// Browsers that can open the page with the two readers.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];

/// A user who only looks at the live report sees newer reports, and at the end the verdict. For a user who has clicked
/// in the live report, the report does not change; a notice of the verdict appears, which the user may open. At this
/// time the run no longer serves HTTP.
#[test]
#[ignore = "slow"]
fn an_open_page_ends_with_the_verdict() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(browser) = BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok()) else {
        println!("skipped: needs chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut run = longhaul(&["soak", SMALL, "--serve", "0", "--service"]);
    run.arg(service).arg("--run-dir").arg(folder.path().join("record")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let ([page], drained) = addresses(&mut run, ["the run as it goes on: "]);
    let (page, token) = split(&page);
    let (readers, seen) = readers(page.clone(), &token);
    let mut browser = Command::new(browser);
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ]);
    browser.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    browser.arg(format!("http://{readers}/live.html")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut browser = browser.spawn().unwrap();
    let seen = seen.recv_timeout(PATIENCE * 2);
    browser.kill().unwrap();
    browser.wait().unwrap();
    let code = run.wait().unwrap().code();
    drained.join().unwrap();
    let seen: serde_json::Value = serde_json::from_str(&seen.expect("the readers saw no verdict")).unwrap();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen["loads"].as_u64().unwrap() >= 2, "newer facts were looked for: {seen}");
    assert_eq!((&seen["while"]["verdict"], &seen["looked"]), (&"running".into(), &1.into()), "{seen}");
    assert!(!seen["while"]["footer"].as_str().unwrap().contains("fetches nothing"), "{seen}");
    assert_eq!(seen["ended"], serde_json::json!(["pass", "pass"]), "{seen}");
    assert!(seen["told"].as_str().unwrap().starts_with("The run has ended: pass small."), "{seen}");
    assert!(seen["footer"].as_str().unwrap().contains("fetches nothing"), "{seen}");
    for note in seen["notes"].as_array().unwrap() {
        assert!(note.as_str().unwrap().starts_with("The run has ended: this is its report."), "{seen}");
    }
    assert!(seen["readings"].as_u64().unwrap() > 3 && seen["errors"] == serde_json::json!([]), "{seen}");
    assert!(TcpStream::connect(&page).is_err(), "nobody listens any more");
}

/// Serves the HTML page with the two readers, and forwards every other request to the run. Returns the address of the
/// page, and the texts that the readers report.
fn readers(page: String, token: &str) -> (std::net::SocketAddr, Receiver<String>) {
    let html: std::sync::Arc<str> = READERS.replace("/TOKEN/", token).into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, (told, seen)) = (listener.local_addr().unwrap(), channel());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (page, told, html) = (page.clone(), told.clone(), html.clone());
            // A broken connection is the browser's problem.
            std::thread::spawn(move || drop(pass_on(stream, &page, &html, &told)));
        }
    });
    (address, seen)
}

/// Answers one request with the page of the two readers, or forwards the request to the run.
fn pass_on(stream: TcpStream, page: &str, html: &str, told: &Sender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        if let Some(value) = head[from..].to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut stream = stream;
    if head.starts_with("GET /live.html ") || head.starts_with("POST /seen ") {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if head.starts_with("POST") {
            let _ = told.send(String::from_utf8(body).unwrap());
        }
        let (kind, length) = ("text/html; charset=utf-8", html.len());
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{html}"
        );
    }
    let mut run = TcpStream::connect(page)?;
    run.write_all(head.replace("Connection: keep-alive", "Connection: close").as_bytes())?;
    std::io::copy(&mut run, &mut stream).map(drop)
}

/// A port that is already in use is reported before anything is started.
#[test]
#[ignore = "slow"]
fn a_port_in_use_is_refused_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = soak(&[SMALL, "--serve", &port]);
    assert_eq!(run.code(), Some(64), "{}", run.story());
    assert!(run.stderr().contains("name another port"), "{}", run.story());
    let nonsense = longhaul(&["soak", SMALL, "--metrics", "nowhere"]).output().unwrap();
    assert_eq!(nonsense.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&nonsense.stderr).contains("write a port"));
}
