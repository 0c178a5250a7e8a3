//! A subject's own clock runs faster: what goes wrong after ten minutes is seen in seconds, and what cannot be reached is refused.

use std::io::Write;
use std::path::Path;

use crate::support::{Soak, has_python, program, soak};

const WATCHER: &str = include_str!("../files/watcher.yaml");
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
const SUBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects");

/// The example watcher, but after ten minutes of its clock it handles nothing any more, if `TIRES` says so.
const SHIM: &str = r#"
import os, runpy, sys, time
module = runpy.run_path(sys.argv[1])
Watcher, began, report = module["Watcher"], time.monotonic(), module["Watcher"].report
def tired(self, metadata, change):
    if os.environ["TIRES"] != "yes" or time.monotonic() - began < 600:
        report(self, metadata, change)
Watcher.report = tired
Watcher().run()
"#;

fn has_library() -> bool {
    let is_there = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
        .iter()
        .any(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1").is_file());
    if !is_there {
        println!("skipped: needs faketime");
    }
    is_there
}

/// Runs the watcher for about 18 s; `None` without Python.
fn watcher(tires: &str, more: &[&str]) -> Option<Soak> {
    if !has_python() {
        return None;
    }
    let mut shim = tempfile::Builder::new().suffix(".py").tempfile().unwrap();
    shim.write_all(SHIM.as_bytes()).unwrap();
    let command =
        format!("{{run: [python3, {}, {SUBJECTS}/watcher.py], env: {{TIRES: '{tires}'}}}}", shim.path().display());
    let text = WATCHER.replace("[SUBJECT]", &command);
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut arguments = vec![file.path().to_str().unwrap()];
    arguments.extend(more);
    Some(soak(&arguments))
}

/// At the real time the bug is not seen; a hundred times faster it is, and its clean twin passes.
#[test]
#[ignore = "slow"]
fn what_fails_after_ten_minutes_fails_in_seconds() {
    if !has_library() {
        return;
    }
    let Some(slow) = watcher("yes", &[]) else { return };
    assert_eq!(slow.code(), Some(0), "{}", slow.story());
    let Some(clean) = watcher("no", &["--clock-rate", "100"]) else { return };
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    assert!(clean.stdout().contains("the subject's own clock ran 100 times faster"), "{}", clean.story());
    let Some(fast) = watcher("yes", &["--clock-rate", "100"]) else { return };
    assert_eq!(fast.code(), Some(1), "{}", fast.story());
    assert!(fast.broken().iter().any(|budget| budget == "events.missed"), "{}", fast.story());
}

/// Nothing is started: the exit code is that of a wrong scenario.
#[test]
#[ignore = "slow"]
fn a_program_of_go_is_refused() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let go = std::env::split_paths(&path).map(|folder| folder.join("gofmt")).find(|path| path.is_file());
    let Some(go) = go.filter(|_| has_library()) else {
        println!("skipped: needs gofmt and faketime");
        return;
    };
    let text = WATCHER.replace("[SUBJECT]", &format!("[{}]", go.display()));
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let soak = soak(&[file.path().to_str().unwrap(), "--clock-rate", "30"]);
    assert_eq!(soak.code(), Some(64), "{}", soak.story());
    assert!(soak.stderr().contains("it is written in Go"), "{}", soak.story());
}

/// The service asks for watches of ten seconds: compressed they are over in one, and nothing is lost.
#[test]
#[ignore = "slow"]
fn a_days_watches_are_remade_in_seconds() {
    let Some(service) = program("longhaul-service") else { return };
    let watches = |more: &[&str]| {
        let mut arguments = vec![SMALL, "--service", service.to_str().unwrap()];
        arguments.extend(more);
        let soak = soak(&arguments);
        assert_eq!(soak.code(), Some(0), "{}", soak.story());
        let watches = |row: &serde_json::Value| row["api"]["subjectWatches"].as_u64().unwrap_or(0);
        (soak.rows("intervals.jsonl").iter().map(watches).sum::<u64>(), soak.stdout())
    };
    let (before, _) = watches(&[]);
    let (after, said) = watches(&["--compress", "10"]);
    assert!(after >= before + 5, "{before} and {after}");
    assert!(said.contains("lived 10 times shorter"), "{said}");
}
