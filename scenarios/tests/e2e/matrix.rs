//! Tests of `cargo xtask matrix` as a user runs it: names of bugs, the result of one bug with one client, and
//! continuing after an interruption.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{longhaul, program};

/// A documented bug whose scenario takes a quarter of a minute and which the service passes.
const ROW: &str = "410-inside-200";

fn matrix(arguments: &[&str]) -> Output {
    longhaul(&[&["matrix"], arguments].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "slow"]
fn unknown_names_are_refused_with_what_was_meant() {
    let output = matrix(&["--clients", "kfc-3.11.1"]);
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    assert!(stderr(&output).contains("no client `kfc-3.11.1`: did you mean `kfc-3.11.11`?"), "{}", stderr(&output));
    let output = matrix(&["--clients", "service", "--rows", "no-such-row-at-all"]);
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    assert!(stderr(&output).contains("no row `no-such-row-at-all`"), "{}", stderr(&output));
}

#[test]
#[ignore = "slow"]
fn a_table_that_cannot_be_gone_on_from_is_refused() {
    let out = tempfile::tempdir().unwrap();
    std::fs::write(out.path().join("matrix.json"), "{\"format\": 0").unwrap();
    let output = matrix(&["--clients", "service", "--resume", "--out", out.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    assert!(stderr(&output).contains("leave out --resume"), "{}", stderr(&output));
}

fn cells(out: &Path) -> Vec<Value> {
    let table: Value = serde_json::from_slice(&std::fs::read(out.join("matrix.json")).unwrap()).unwrap();
    table["cells"].as_array().unwrap().clone()
}

/// A cell of the matrix shows the result of the run of one bug with one client. A second call does not repeat a run
/// that has a result.
#[test]
#[ignore = "slow"]
fn a_cell_is_run_once() {
    if program("longhaul-service").is_none() {
        return;
    }
    if !scenarios::scenario::library::bug_names().any(|name| name == ROW) {
        return println!("skipped: needs {ROW} in the library");
    }
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let arguments = ["--clients", "service", "--rows", ROW, "--out", folder];
    let output = matrix(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let first = cells(out.path());
    assert_eq!(first.len(), 1);
    assert_eq!((&first[0]["row"], &first[0]["column"]), (&ROW.into(), &"service".into()));
    let ran = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(ran.contains("[1/1]"), "{ran}");
    assert_eq!(first[0]["outcome"]["is"], "passed", "{first:?}");
    let runs = || std::fs::read_dir(out.path().join("runs/service")).unwrap().count();
    assert_eq!(runs(), 1);
    let again = matrix(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!((runs(), cells(out.path())), (1, first), "nothing was run again");
    let page = std::fs::read_to_string(out.path().join("matrix.html")).unwrap();
    assert!(page.contains(ROW) && page.contains("passed"), "{page}");
}
