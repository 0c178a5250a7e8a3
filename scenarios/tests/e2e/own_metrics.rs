//! Tests of verdicts from the subject's own metrics: series with budgets, a recorded heap, and a missing metrics page,
//! which ends the run early.

use std::io::Write;

use crate::support::{Soak, has_python, soak_text};

const WATCHER: &str = include_str!("../files/watcher.yaml");
const SUBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects");

/// The example watcher with a metrics page at the port in its last argument. The watcher's metrics page has a queue
/// with the value of the variable `QUEUE`, and a heap.
const SHIM: &str = r##"
import http.server, os, runpy, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    def do_GET(self):
        Page.asked += 1
        queue = eval(os.environ["QUEUE"], {"asked": Page.asked})
        text = "# TYPE queue gauge\nqueue{name=\"a}\"} %d\nqueue{name=\"b\"} 1\nnodejs_heap_size_used_bytes 5e6\n" % queue
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *args):
        pass
assert sys.argv[2] == "--metrics=" + os.environ["LONGHAUL_METRICS_PORT"]
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["LONGHAUL_METRICS_PORT"])), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
runpy.run_path(sys.argv[1], run_name="__main__")
"##;

/// Runs the example watcher. `None` if Python is missing.
fn run(queue: &str, url: &str, more: &[&str]) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let mut shim = tempfile::Builder::new().suffix(".py").tempfile().unwrap();
    shim.write_all(SHIM.as_bytes()).unwrap();
    let command = format!(
        "\n    run: [python3, {}, {SUBJECTS}/watcher.py, '--metrics=${{LONGHAUL_METRICS_PORT}}']\n    env: {{QUEUE: '{queue}'}}\n  metrics: {url}",
        shim.path().display()
    );
    let text = WATCHER.replace("[SUBJECT]", &command);
    let (before, after) = text.split_once("budgets:\n").unwrap();
    let text = format!("{before}budgets:\n  metrics: {{'queue{{name=\"a}}\"}}': {{ceiling: 40}}}}\n{after}");
    Some(soak_text(&text, more))
}

const URL: &str = "'http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics'";

#[test]
#[ignore = "slow"]
fn a_series_within_its_budget_passes_and_is_recorded() {
    let Some(soak) = run("7", URL, &["--metrics-series", "queue"]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let row = soak.rows("metrics.jsonl").remove(0);
    assert_eq!((row["heapBytes"].as_u64(), row["heapOf"].as_str()), (Some(5_000_000), Some("Node.js")), "{row}");
    assert_eq!((row["series"]["queue"].as_f64(), row["series"]["queue{name=\"a}\"}"].as_f64()), (Some(8.0), Some(7.0)));
    let page = std::fs::read_to_string(soak.record().join("report.html")).unwrap();
    assert!(
        page.contains("heap in use") && page.contains("of the subject&#x27;s own metrics")
            || page.contains("own metrics")
    );
}

#[test]
#[ignore = "slow"]
fn a_series_over_its_budget_fails_by_it_alone() {
    let Some(soak) = run("7 if asked < 4 else 41", URL, &[]) else { return };
    soak.fails_by(&["metrics.ceiling.queue{name=\"a}\"}"]);
}

/// A wrong address of the metrics page is reported before the run, not after an hour.
#[test]
#[ignore = "slow"]
fn a_page_that_is_not_there_ends_the_run_before_it_begins() {
    let Some(soak) = run("7", "'http://127.0.0.1:1/metrics?${LONGHAUL_METRICS_PORT}'\n  startTimeout: 5s", &[]) else {
        return;
    };
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    assert!(
        soak.stdout().contains("its own metrics cannot be read: GET http://127.0.0.1:1/metrics"),
        "{}",
        soak.story()
    );
}
