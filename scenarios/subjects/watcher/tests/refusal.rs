//! A clean program must not run under the name of a bug. Its observations are judged like those of every subject
//! (`scenarios/tests/e2e`).

use std::process::Command;

#[test]
fn a_bug_that_is_not_compiled_in_is_refused() {
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_example-watcher"));
    let output = watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this program has no bugs"));
}
