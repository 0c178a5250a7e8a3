//! Tests that the command in a report really repeats the run.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{itself, longhaul, program, rows};

const SMALL: &str = include_str!("../files/small.yaml");

/// The command to repeat a run has the program, paths, seed and length of the run, quoted for a shell.
#[test]
#[ignore = "slow"]
fn the_command_to_repeat_is_what_was_really_used() {
    let Some(service) = program("longhaul-service") else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("a run's files");
    std::fs::create_dir(&here).unwrap();
    let file = here.join("small.yaml");
    std::fs::write(&file, SMALL).unwrap();
    let linked = here.join("the service");
    std::os::unix::fs::symlink(&service, &linked).unwrap();
    let arguments = [file.to_str().unwrap(), "--seed", "77", "--for", "14s", "--service", linked.to_str().unwrap()];
    let first = folder.path().join("first");
    let output = longhaul(&["soak", "--quiet", "--run-dir"]).arg(&first).args(arguments).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let quoted = |path: &Path| format!("'{}'", path.to_str().unwrap().replace('\'', r"'\''"));
    let repeat =
        format!("{} soak {} --seed 77 --for 14s --service {}", itself().display(), quoted(&file), quoted(&linked));
    let printed = said.lines().find_map(|line| line.strip_prefix("repeat     "));
    assert_eq!(printed, Some(repeat.as_str()), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    begins_a_row_with_its_fault(&first);

    // A shell with this command plays the same plan.
    let second = folder.path().join("second");
    let again = format!("{repeat} --quiet --run-dir '{}'", second.display());
    let output = Command::new("sh").args(["-c", &again]).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 64), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = |record: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(record.join("manifest.json")).unwrap()).unwrap()
    };
    let (first, second) = (manifest(&first), manifest(&second));
    for key in ["/seed", "/scenario", "/subject/digest"] {
        let value = first.pointer(key);
        assert!(value.is_some_and(|value| !value.is_null()), "{key}");
        assert_eq!(value, second.pointer(key), "{key}");
    }
}

/// The record starts a new row when a fault begins, so that the fault's effects do not share a row with the time
/// before.
fn begins_a_row_with_its_fault(record: &Path) {
    let faults = rows(record, "faults.jsonl");
    let began = faults.iter().find(|row| row["event"] == "started").and_then(|row| row["tMs"].as_u64()).unwrap();
    let starts: Vec<u64> = rows(record, "intervals.jsonl").iter().filter_map(|row| row["startMs"].as_u64()).collect();
    assert!(starts.iter().any(|start| start.abs_diff(began) <= 500), "{began} ms, rows at {starts:?}");
    assert!(starts.iter().all(|start| !(began + 501..began + 3000).contains(start)), "{began} ms, rows at {starts:?}");
}

/// kubectl finds `longhaul` as a plug-in. As a kubectl plug-in, help and usage show the command that the user typed.
#[test]
fn a_plug_in_of_kubectl_is_the_same_program() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("kubectl-longhaul");
    std::os::unix::fs::symlink(itself(), &link).unwrap();
    let text = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let help = text(Command::new(&link).args(["soak", "--help"]).output().unwrap());
    assert!(help.contains("Usage: kubectl longhaul soak "), "{help}");
    let Some(kubectl) = installer::on_path("kubectl") else {
        println!("skipped: needs kubectl");
        return;
    };
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let said = text(Command::new(kubectl).args(["longhaul", "show", "library"]).env("PATH", path).output().unwrap());
    assert!(said.contains("bugs/js-idle-no-fin"), "{said}");
}
