//! A client in another language as a child process that reports its view, one JSON object a line.

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::world::{PATIENCE, World};

/// Runs it to its end, which must be a success, and returns its reports. The child gets only `PATH` of this process's
/// environment, so that a proxy or a cluster of the machine has no influence.
pub async fn run(name: &str, mut command: Command, world: &World) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config"), world.kubeconfig()).unwrap();
    command.env("HOME", home.path()).env("KUBECONFIG", home.path().join("config"));
    let ended = tokio::time::timeout(PATIENCE, command.stdin(Stdio::null()).kill_on_drop(true).output()).await;
    let output = ended.unwrap_or_else(|_| panic!("{name} does not end")).unwrap();
    assert!(output.status.success(), "{name} {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
