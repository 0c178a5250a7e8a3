//! Tests that a run on a busy machine still has a verdict.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use crate::support::{Soak, has_python, program, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// Number of processes that compute without pause, to make the machine busy.
const LOAD: usize = 10;

struct Busy(Vec<Child>);

impl Busy {
    fn begin(load: usize) -> Self {
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..load).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run beside ten busy processes still decides counted figures, and the harness uses little CPU time.
#[test]
#[ignore = "slow"]
fn a_run_at_load_ten_has_a_verdict() {
    let Some(service) = program("longhaul-service") else { return };
    let busy = Busy::begin(LOAD);
    let soak = soak(&[SMALL, "--service", service.to_str().unwrap()]);
    drop(busy);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(soak.stdout().contains("the machine was busy"), "{}", soak.story());
}

/// A scenario of a minute that decides the growth of a series and of open files, and whether the subject observes
/// events in time. To decide growth, the judge needs twelve blocks of readings of the metrics page, one reading a
/// second. Twelve blocks of readings take 40 s, and some readings may be missing.
const DECIDES: &str = "\
apiVersion: longhaul/v1
name: one-verdict
description: Has one file one verdict, whatever the machine does?
seed: 7
phases: {warmUp: 5s, steady: 50s, drain: 5s}
controlPlane: {kind: mock}
subject:
  command:
    run: [python3, SHIM, WATCHER, '--metrics=${LONGHAUL_METRICS_PORT}']
    env: {LEAKS: 'LEAK'}
  startTimeout: 60s
  metrics: 'http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics'
  witness: {kind: http}
churn:
  resource: packages.longhaul.dev/v1alpha1
  population: 30
  rate: 15/s
  mix: {create: 2, update: 5, delete: 2}
budgets:
  events: {missed: 0, ghost: 0, regressed: 0, late: 0, lagP99: 1s}
  metrics: {tasks: {growth: 2/s}}
  descriptors: {growth: 10}
";

/// The example watcher with a metrics page. With a leak, the watcher keeps six tasks and two open files more each
/// second.
const LEAKY: &str = r##"
import http.server, os, runpy, sys, threading, time
began, leaks, kept = time.monotonic(), os.environ["LEAKS"] == "yes", []
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        tasks = 7 + int(6 * (time.monotonic() - began)) * leaks
        text = "# TYPE tasks gauge\ntasks %d\n" % tasks
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *args):
        pass
def leak():
    while leaks:
        kept.append(open(os.devnull))
        time.sleep(0.5)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["LONGHAUL_METRICS_PORT"])), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Thread(target=leak, daemon=True).start()
runpy.run_path(sys.argv[1], run_name="__main__")
"##;

/// Runs the scenario once, with the value `leak` for the watcher, beside `load` busy processes.
fn play(leak: &str, load: usize) -> Soak {
    let watcher = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/watcher.py");
    let mut shim = tempfile::Builder::new().suffix(".py").tempfile().unwrap();
    shim.write_all(LEAKY.as_bytes()).unwrap();
    let text = DECIDES.replace("WATCHER", watcher).replace("SHIM", shim.path().to_str().unwrap());
    let busy = Busy::begin(load);
    let soak = crate::support::soak_text(&text.replace("LEAK'", &format!("{leak}'")), &[]);
    drop(busy);
    soak
}

/// The first sentence of a verdict's reason without its numbers, so that equal reasons can be counted together.
fn kind(reason: &str) -> String {
    reason.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect::<String>().replace("##", "#")
}

/// For the same file, seed and build, a busy machine gives the same verdict as a quiet one, or an inconclusive verdict
/// whose reason names the machine. `LONGHAUL_ROUNDS` sets how often each of the test's four cases runs; the results are
/// printed.
#[test]
#[ignore = "slow"]
fn nightly_one_file_has_one_verdict() {
    if !has_python() {
        return;
    }
    let rounds: u32 = std::env::var("LONGHAUL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut table: BTreeMap<(&str, usize, String, String), u32> = BTreeMap::new();
    for _ in 0..rounds {
        for (leak, load) in [("yes", 0), ("no", 0), ("yes", 8), ("no", 8)] {
            let soak = play(leak, load);
            let verdict = soak.verdict();
            let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
            let (word, reason) = (text("verdict"), text("reason"));
            let wanted = if leak == "yes" { "fail" } else { "pass" };
            let named = word == "inconclusive" && (reason.contains("other programs") || reason.contains("machine"));
            assert!(word == wanted || named, "leak {leak}, load {load}: {}", soak.story());
            *table.entry((leak, load, word, kind(&reason))).or_default() += 1;
        }
    }
    // On a quiet machine, at most some of the runs blame the machine.
    for (leak, wanted) in [("yes", "fail"), ("no", "pass")] {
        let is_it =
            |(key, load, word, _): &&(&str, usize, String, String)| *key == leak && *load == 0 && word == wanted;
        assert!(table.keys().any(|key| is_it(&key)), "leak {leak}: never {wanted} on a quiet machine: {table:#?}");
    }
    println!("leak  load  times  verdict: reason");
    for ((leak, load, word, reason), times) in &table {
        println!("{leak:<5} {load:>4}  {times:>5}  {word}: {reason}");
    }
}
