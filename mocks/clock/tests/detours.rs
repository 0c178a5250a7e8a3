//! Tests that the tracer stops repeated waits at one system-call instruction only once, even under disturbances.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::path::Path;
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use support::{PROGRAMS, RATE, compiled, under};

/// Reads a number from the summary that the tracer writes at its end.
fn summary_number(summary: &Path, key: &str) -> u64 {
    let end = Instant::now() + Duration::from_secs(10);
    let text = loop {
        match std::fs::read_to_string(summary) {
            Ok(text) if text.ends_with('\n') => break text,
            other => assert!(Instant::now() < end, "{other:?}"),
        }
        std::thread::park_timeout(Duration::from_millis(1));
    };
    let value = text.split(&format!("\"{key}\":")).nth(1).and_then(|rest| rest.split([',', '}']).next());
    value.unwrap().parse().unwrap()
}

/// Runs the test program with the argument `kind`; returns the number of stops by the tracer.
fn stops(program: &Path, kind: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
    command.args(["--rate", &RATE.to_string(), "--summary"]).arg(&summary).arg("--").arg(program).arg(kind);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{kind}: {output:?}");
    summary_number(&summary, "stops")
}

fn all_kinds(program: &Path) {
    for kind in ["limits", "nested", "jumps", "errors", "crowd", "stopped", "children"] {
        stops(program, kind);
    }
}

/// Three thousand sleeps at one system-call instruction need few stops by the tracer.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_wait_that_was_seen_does_not_stop_again() {
    let folder = tempfile::tempdir().unwrap();
    for more in [&[][..], &["-static"]] {
        let Some(program) = compiled("detours", more, folder.path()) else { return };
        for kind in ["many", "words"] {
            let stops = stops(&program, kind);
            assert!(stops < 100, "{kind}: {stops}");
        }
    }
}

/// Waits take the right time despite signal handlers that wait or jump out, wrong addresses, stops, more threads than
/// memory slots, and children that share memory.
#[test]
fn what_disturbs_a_wait_is_as_without_a_clock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("detours", &[], folder.path()) else { return };
    all_kinds(&program);
}

#[test]
fn what_disturbs_a_wait_of_a_static_program_is_as_without_a_clock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("detours", &["-static"], folder.path()) else { return };
    all_kinds(&program);
}

/// The timers of a Go program need few stops: Go's scheduler waits in one instruction for all of them.
#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "slow"]
fn a_program_of_go_needs_few_stops() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("busy");
    let mut build = std::process::Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(format!("{PROGRAMS}/busy"));
    if !build.env("CGO_ENABLED", "0").status().is_ok_and(|status| status.success()) {
        println!("skipped: needs go");
        return;
    }
    // Its naps alone are thousands.
    assert!(stops(&program, "60") < 500);
    assert!(under(RATE, &program).status().unwrap().success());
}
