//! Tests of the part of `longhaul hunt` that asks a webhook: each kind of mistake is found, and right webhooks are quiet.

use std::path::Path;

use serde_json::Value;

use crate::operator::project;
use crate::support::{has_python, longhaul};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/asked");
/// A file as `longhaul init` writes it for the kubebuilder operator; the templates are those of its samples.
const OPERATOR: &str = include_str!("../files/kubebuilder-hunt.yaml");

/// Hunts in a folder; returns the exit code and the result.
fn hunt(folder: &Path, file: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let asked = ["hunt", file, "--allow-outside", "--json", "--quiet", "--no-clock"];
    let output = longhaul(&[&asked, arguments].concat()).current_dir(folder).output().unwrap();
    let result = serde_json::from_slice(&output.stdout);
    let result: Value = result.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), result)
}

/// The signs of the findings: each webhook with the part of its answers.
fn signs(result: &Value) -> Vec<&str> {
    let findings = result["findings"].as_array().unwrap().iter();
    findings.map(|found| found["sign"]["field"].as_str().unwrap_or_default()).collect()
}

/// A folder with the webhook in Python with a mistake; an empty name means none.
fn python(mistake: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(FILES).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        std::fs::write(folder.path().join(entry.file_name()), text.replace("BUG: ''", &format!("BUG: '{mistake}'")))
            .unwrap();
    }
    folder
}

/// A webhook alone can be hunted. A right one has no finding, although its patch contains the time, and although it
/// answers with errors while its API server fails.
#[test]
fn a_right_webhook_alone_has_no_finding() {
    if !has_python() {
        return;
    }
    let (code, result) = hunt(python("").path(), "asked.yaml", &[]);
    assert_eq!((code, &result["findings"]), (Some(0), &serde_json::json!([])), "{result:#}");
    let webhooks = &result["webhooks"];
    assert_eq!(webhooks["asked"], serde_json::json!(["/mutate", "/label", "/validate"]), "{webhooks:#}");
    assert!(webhooks["denied"].as_u64().unwrap() > 0 && webhooks["allowed"].as_u64().unwrap() > 100, "{webhooks:#}");
    let masked = webhooks["masked"].to_string();
    assert!(masked.contains("the patch of /metadata/annotations"), "{masked}");
    let conditions = webhooks["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 7, "{webhooks:#}");
    let failing = conditions.iter().find(|row| row[0] == "API server fails").unwrap();
    assert!(failing[2].as_u64().unwrap() > 50, "its errors are explicit: {webhooks:#}");
}

/// How often a saved finding is played at most until it shows its sign: it has odds.
const TIMES: u32 = 3;

/// Plays a saved finding. Returns the verdict of `admission.consistent`.
fn asked_again(folder: &Path, scenario: &str) -> String {
    let arguments = ["soak", scenario, "--allow-outside", "--json", "--quiet"];
    let output = longhaul(&arguments).current_dir(folder).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let mut findings = result["findings"].as_array().into_iter().flatten();
    let own = findings.find(|finding| finding["budget"] == "admission.consistent");
    own.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))["verdict"].as_str().unwrap().to_owned()
}

/// Each mistake must be found by the sign beside it, and its saved scenario must show it again.
fn are_found(mistakes: &[(&str, &str)]) {
    if !has_python() {
        return;
    }
    for (mistake, sign) in mistakes {
        let folder = python(mistake);
        let (code, result) = hunt(folder.path(), "asked.yaml", &[]);
        assert!(code == Some(1) && signs(&result).contains(sign), "{mistake}: {result:#}");
        let found =
            result["findings"].as_array().unwrap().iter().find(|found| found["sign"]["field"] == *sign).unwrap();
        let scenario = found["scenario"].as_str().unwrap();
        let is_shown = (0..TIMES).any(|_| asked_again(folder.path(), scenario) == "fail");
        assert!(is_shown, "{mistake}: {:#}", found["odds"]);
        let path = folder.path().join(scenario);
        let right = std::fs::read_to_string(&path).unwrap().replace(&format!("BUG: {mistake}"), "BUG: ''");
        std::fs::write(&path, right).unwrap();
        assert_eq!(asked_again(folder.path(), scenario), "pass", "{mistake}: without the mistake it passes");
    }
}

#[test]
#[ignore = "slow"]
fn nightly_an_answer_that_changes_without_a_reason_is_found() {
    are_found(&[
        ("fails-open", "/validate verdict"),
        ("shared", "/validate verdict"),
        ("early", "/validate verdict"),
        ("leaks", "/mutate patch"),
    ]);
}

#[test]
#[ignore = "slow"]
fn nightly_an_answer_that_no_webhook_may_give_is_found() {
    are_found(&[
        ("twice", "/mutate not idempotent"),
        ("undoes", "/mutate patch undone"),
        ("refused", "/mutate patch refused"),
        ("broken", "/mutate patch refused"),
        ("writes", "the webhooks writes on a dry run"),
        ("warns", "/validate error as a warning"),
        ("panics", "the subject exited"),
    ]);
}

/// Hunts the kubebuilder operator with a mistake in its webhooks, without disturbances.
fn operator(project: &Path, mistake: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(project.join("config"), folder.path().join("config")).unwrap();
    let manager = project.join("bin/manager");
    let text = OPERATOR
        .replace("bin/manager", manager.to_str().unwrap())
        .replace("PLANTED: ''", &format!("PLANTED: '{mistake}'"))
        .replace("    serves: {path: /mutate-cache-example-com-v1-cache}\n", "")
        .replace("  witness:", "  install: {webhooks: config/webhook/manifests.yaml}\n  witness:");
    std::fs::write(folder.path().join("hunt.yaml"), text).unwrap();
    hunt(folder.path(), "hunt.yaml", &["--trials", "1"]).1
}

/// No template has to be refused: the questions find an object that the webhook refuses.
#[test]
#[ignore = "slow"]
fn mistakes_in_the_operators_webhooks_are_found_without_a_template() {
    let Some(project) = project() else { return };
    let validating = "/validate-cache-example-com-v1-cache";
    for (mistake, sign) in [("allows-on-error", "error as a warning"), ("response-shared", "verdict")] {
        let result = operator(project.path(), mistake);
        assert!(signs(&result).contains(&&*format!("{validating} {sign}")), "{mistake}: {result:#}");
    }
    let result = operator(project.path(), "");
    assert_eq!(signs(&result), [""; 0], "{result:#}");
    assert!(result["webhooks"]["denied"].as_u64().unwrap() > 0, "{result:#}");
}
