//! The program refuses a bug that does not exist, and names those that do.

use std::process::Command;

#[test]
fn an_unknown_bug_is_refused_with_64() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("service.yaml");
    std::fs::write(&config, "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-service-planted"));
    command.args(["run", "--role", "packages", "--config"]).arg(&config).env("LONGHAUL_PLANTED_BUG", "typo");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("wrong-allow, ignore-410"));
}
