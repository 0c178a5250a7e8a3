//! Tests that the example watcher without bugs refuses to run under the name of a bug. Other tests of the example
//! watcher are in `scenarios/tests/e2e`, as for every subject.

use std::process::Command;

#[test]
fn a_bug_that_is_not_compiled_in_is_refused() {
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_example-watcher"));
    let output = watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this program has no bugs"));
}
