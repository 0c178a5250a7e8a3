//! Tests of every kind of system call with a time, made by an unmodified program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use support::{compiled, under};

/// The clock rate, lower than in other tests because times in whole seconds may be late by tenths of a real second.
const RATE: u32 = 10;
/// Number of calls that run at the same time, most of them waiting.
const AT_ONCE: usize = 12;
/// Longest real time of a call. Ten seconds of the program's clock take one real second; an unconverted call takes ten
/// real seconds.
const REAL_MAX: Duration = Duration::from_secs(8);

/// The names of calls that the test program accepts, read from its source (`IS("…`).
fn names() -> Vec<&'static str> {
    let source = include_str!("programs/calls.c");
    let mut names: Vec<_> = source.split("IS(\"").skip(1).filter_map(|text| text.split('"').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Runs one call; returns its error, if it has one.
fn played(name: &str, command: &mut Command) -> Option<String> {
    let began = Instant::now();
    let output = command.arg(name).output().unwrap();
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said.contains("skipped: needs") {
        println!("{name}: {said}");
    }
    let is_right = output.status.success() && took < REAL_MAX;
    (!is_right).then(|| format!("{name}: {} after {took:?}: {said}", output.status))
}

/// Runs all calls, several at the same time, and returns their errors.
fn all_of(program: &Path) -> Vec<String> {
    let names = names();
    assert!(names.len() > 40, "{names:?}");
    let work = |part: &[&str]| -> Vec<String> {
        part.iter().filter_map(|name| played(name, under(RATE, program).env("RATE", RATE.to_string()))).collect()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            names.chunks(names.len().div_ceil(AT_ONCE)).map(|part| scope.spawn(|| work(part))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn every_call_is_as_with_a_usual_clock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("calls", &[], folder.path()) else { return };
    let wrong = all_of(&program);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every system call of a statically linked program takes the right time.
#[test]
fn every_call_of_a_static_program_is_as_with_a_usual_clock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("calls", &["-static"], folder.path()) else { return };
    let wrong = all_of(&program);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The test fails for a call that is not converted: without the faster clock every call takes its ten seconds.
#[test]
#[ignore = "slow"]
fn a_call_that_was_forgotten_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("calls", &[], folder.path()) else { return };
    std::thread::scope(|scope| {
        for name in names() {
            let program = &program;
            scope.spawn(move || assert!(played(name, &mut Command::new(program)).is_some(), "{name}"));
        }
    });
}
