//! A run that goes on, looked at from outside: its metrics and its page.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{longhaul, program, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// A busy machine may need so long to begin.
const PATIENCE: Duration = Duration::from_mins(1);

/// Status line with headers, and body.
fn ask(address: &str, method: &str, path: &str) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Ok((head.to_owned(), body.to_owned()))
}

/// The value of a metric, by the beginning of its line.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
    line.trim().parse().unwrap()
}

#[test]
fn metrics_and_page_are_there_while_it_runs_and_gone_after() {
    let Some(service) = program("longhaul-service") else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut run = longhaul(&["soak", SMALL, "--metrics", "0", "--serve", "127.0.0.1:0", "--service"]);
    run.arg(service).arg("--run-dir").arg(&record).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut address = |begins: &str| {
        let line = lines.by_ref().find(|line| line.starts_with(begins)).unwrap();
        line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
    };
    let (metrics, page) = (address("metrics: "), address("the run as it goes on: "));
    // What it says later is of no interest, and must not block it.
    let drained = std::thread::spawn(move || lines.count());

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
    let (head, html) = ask(&page, "GET", "/").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200") && html.contains("The run goes on") && html.contains("plot-memory"),
        "{head}"
    );
    assert!(ask(&page, "GET", "/manifest.json").unwrap().1.starts_with('{'));
    assert!(ask(&metrics, "GET", "/manifest.json").unwrap().0.starts_with("HTTP/1.1 404"), "metrics alone");
    for (method, path, status) in
        [("GET", "/../../etc/passwd", 404), ("GET", "/end.part", 404), ("POST", "/", 405), ("HEAD", "/", 200)]
    {
        let (head, body) = ask(&page, method, path).unwrap();
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

/// As Prometheus' own tool reads it.
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

/// A port that is taken is told before anything is started.
#[test]
fn a_port_in_use_is_refused_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = soak(&[SMALL, "--serve", &port]);
    assert_eq!(run.code(), Some(64), "{}", run.story());
    assert!(run.stderr().contains("name another port"), "{}", run.story());
    let nonsense = longhaul(&["soak", SMALL, "--metrics", "nowhere"]).output().unwrap();
    assert_eq!(nonsense.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&nonsense.stderr).contains("write a port"));
}
