//! Tests of `cargo xtask calibrate` as a user runs it.

use serde_json::Value;

use crate::support::{itself, longhaul, program, story};

#[test]
#[ignore = "slow"]
fn bad_arguments_are_refused_with_a_remedy() {
    let refused = |arguments: &[&str], remedy: &str| {
        let output = longhaul(&[&["calibrate"], arguments].concat()).output().unwrap();
        let said = story(&output);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(remedy), "{said}");
    };
    refused(&["--planted", "/nowhere/planted", "--service", "/bin/true"], "--planted /nowhere/planted: no such file");
    refused(
        &["--only", "leak-per-objet", "--planted", "/bin/true", "--service", "/bin/true"],
        "did you mean `leak-per-object`? `cargo xtask calibrate --list` names all",
    );
    refused(&["--synthetic", "--repeats", "2"], "cannot be used with");
    refused(&["--repeats", "0"], "0 is not in 1..");
}

#[test]
#[ignore = "slow"]
fn a_program_that_is_not_there_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("longhaul");
    std::fs::copy(itself(), &alone).unwrap();
    let output = std::process::Command::new(&alone).args(["calibrate", "--service", "/bin/true"]).output().unwrap();
    let said = story(&output);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("`cargo xtask calibrate`") && said.contains("longhaul-service-planted"), "{said}");
}

#[test]
#[ignore = "slow"]
fn generated_series_need_no_service_and_write_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("pages");
    let output = longhaul(&["calibrate", "--synthetic", "--runs", "3", "--markdown", "--out", out.to_str().unwrap()])
        .output()
        .unwrap();
    let said = story(&output);
    // Three runs per row prove no promise of four in five, but they are the same three everywhere.
    assert!(
        matches!(output.status.code(), Some(0 | 1)) && said.contains("| level: noise alone | 4 × budget |"),
        "{said}"
    );
    let json: Value = serde_json::from_slice(&std::fs::read(out.join("calibration.json")).unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["syntheticCanary"]), (&"longhaul.calibration/v1".into(), &true.into()));
    assert!(out.join("calibration.md").is_file() && out.join("calibration.html").is_file());
}

/// The run with a planted bug breaks the budget for this bug, and the same run without the bug passes.
#[test]
#[ignore = "slow"]
fn nightly_the_canary_is_caught_and_its_twin_passes() {
    let (Some(service), Some(planted)) = (program("longhaul-service"), program("longhaul-service-planted")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["calibrate", "--only", "missed-delete", "--runs", "40", "--service", service.to_str().unwrap()];
    let mut command = longhaul(&arguments);
    let output = command.arg("--planted").arg(planted).arg("--out").arg(folder.path()).output().unwrap();
    let json: Value = serde_json::from_slice(&std::fs::read(folder.path().join("calibration.json")).unwrap()).unwrap();
    let plays = |row: usize| json["rows"][row]["plays"].as_array().unwrap().last().unwrap().clone();
    let fired = plays(0)["fired"].clone();
    assert!(fired.as_array().unwrap().contains(&"events.ghost".into()), "{fired}: {}", story(&output));
    assert_eq!(plays(1)["verdict"], "pass", "{}", story(&output));
    assert_eq!(output.status.code(), Some(0), "{}", story(&output));
}
