//! Tests of `longhaul hunt` with the kubebuilder operator: planted mistakes are found without a scenario, and the
//! operator without mistakes has no finding.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::interrupt::wait_for;
use crate::operator::project;
use crate::support::{has_python, longhaul};

/// A file as `longhaul init` writes it: program, flags and a template.
const FILE: &str = include_str!("../files/kubebuilder-hunt.yaml");

/// Hunts the operator with a mistake; an empty name means none. Returns the exit code and the result.
fn hunt(project: &Path, mistake: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    hunt_file(FILE, project, mistake, arguments)
}

/// Like [`hunt`], with this file.
fn hunt_file(file: &str, project: &Path, mistake: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(project.join("config"), folder.path().join("config")).unwrap();
    let manager = project.join("bin/manager");
    let text =
        file.replace("bin/manager", manager.to_str().unwrap()).replace("PLANTED: ''", &format!("PLANTED: '{mistake}'"));
    std::fs::write(folder.path().join("hunt.yaml"), text).unwrap();
    let asked = ["hunt", "hunt.yaml", "--allow-outside", "--json", "--quiet"];
    let output = longhaul(&[&asked, arguments].concat()).current_dir(folder.path()).output().unwrap();
    let result = serde_json::from_slice(&output.stdout);
    let result: Value = result.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    for scenario in result["findings"].as_array().unwrap().iter().filter_map(|found| found["scenario"].as_str()) {
        let checked = longhaul(&["check", "--allow-outside", scenario]).current_dir(folder.path()).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    (output.status.code(), result)
}

/// The mistakes that need the right moment, and a text in the title of the finding.
const MOMENTS: [(&str, &str); 8] = [
    ("creation-time-lost", "status.conditions[Created]"),
    ("finalizer-between-two-reads", "objects.resurrected"),
    ("receipt-by-generated-name", "configmaps"),
    ("rolls-at-resync", "deployments"),
    ("rolls-each-hour", "deployments"),
    ("exits-without-its-kind", "subject.exited"),
    ("generate-name-duplicates", "deployments"),
    ("remembers-what-is-gone", "deployments default/hunt-b is missing"),
];

#[test]
#[ignore = "slow"]
fn nightly_a_hunt_finds_mistakes_that_need_the_right_moment() {
    let Some(project) = project() else { return };
    for (mistake, sign) in MOMENTS {
        let (code, result) = hunt(project.path(), mistake, &["--for", "15m", "--trials", "130", "--findings", "1"]);
        let findings = result["findings"].as_array().unwrap();
        assert_eq!(code, Some(1), "{mistake}: {result:#}");
        assert!(findings.iter().any(|found| found["title"].as_str().unwrap().contains(sign)), "{mistake}: {result:#}");
    }
}

/// Mistakes that need a disturbance which lasts, another writer of the children, or no disturbance at all; and a text in
/// the title of the finding.
const OTHERS: [(&str, &str); 10] = [
    ("conflicts-swallowed", "hunt-a: status.observedGeneration"),
    ("requeue-without-back-off", "requests.hotLoop"),
    ("primary-only", "s default/hunt-"),
    ("child-without-owner", "children.orphaned"),
    ("deletes-what-is-not-its-own", "objects.deletedByOthers"),
    ("deletions-dropped", "finalizers.stuck"),
    ("finalizer-never-removed", "finalizers.stuck"),
    ("finalizer-by-create-or-update", "objects.resurrected"),
    ("status-on-every-reconcile", "writes.steady"),
    ("sweeps-what-nobody-owns", "configmaps default/hunt-bystander is missing"),
];

#[test]
#[ignore = "slow"]
fn nightly_a_hunt_finds_mistakes_about_refusals_and_children() {
    let Some(project) = project() else { return };
    for (mistake, sign) in OTHERS {
        let (code, result) =
            hunt(project.path(), mistake, &["--for", "6m", "--trials", "130", "--findings", "1", "--no-clock"]);
        let findings = result["findings"].as_array().unwrap();
        assert_eq!(code, Some(1), "{mistake}: {result:#}");
        assert!(findings.iter().any(|found| found["title"].as_str().unwrap().contains(sign)), "{mistake}: {result:#}");
    }
}

/// A program with a short Lease is hunted with lost Leases.
#[test]
#[ignore = "slow"]
fn nightly_a_hunt_finds_who_stays_without_its_lease() {
    let Some(project) = project() else { return };
    let flags = "\"--health-probe-bind-address=0\", \"--leader-elect\", \"--leader-election-namespace=default\", \
                 \"--lease-duration=3s\", \"--renew-deadline=2s\", \"--retry-period=500ms\"";
    let text = FILE.replace("\"--health-probe-bind-address=0\"", flags);
    let arguments = ["--for", "8m", "--trials", "130", "--no-clock"];
    let (code, result) = hunt_file(&text, project.path(), "stays-without-its-lease", &arguments);
    assert_eq!(code, Some(1), "{result:#}");
    let findings = result["findings"].as_array().unwrap();
    let is_lost = |found: &Value| found["disturbances"].to_string().contains("Leases cannot be renewed");
    assert!(findings.iter().any(is_lost), "{result:#}");
}

#[test]
#[ignore = "slow"]
fn nightly_a_hunt_of_the_operator_without_mistakes_finds_nothing() {
    let Some(project) = project() else { return };
    let (code, result) = hunt(project.path(), "", &["--for", "25m", "--trials", "150"]);
    assert_eq!((code, &result["findings"]), (Some(0), &serde_json::json!([])), "{result:#}");
}

/// A program that does not start is named before any search.
#[test]
fn a_program_that_does_not_start_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 1s, steady: 2s, drain: 1s}\nsubject: {command: \
        [\"false\"], witness: {kind: http}}\nchurn: {resource: configmaps/v1, population: 1, rate: 1/s}\n";
    std::fs::write(folder.path().join("x.yaml"), text).unwrap();
    let output = longhaul(&["hunt", "x.yaml", "--json", "--quiet"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = result["ending"]["why"].as_str().unwrap();
    assert!(why.starts_with("without any disturbance, a play failed") && why.contains("longhaul soak"), "{why}");
    assert_eq!(result["coverage"]["trials"], 0);
}

/// After Ctrl-C a hunt writes its result, and no process of it is left.
#[test]
#[ignore = "slow"]
fn an_interrupted_hunt_keeps_its_result_and_leaves_no_process() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("operator.py");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small_operator.py"), &program).unwrap();
    let text = format!(
        "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {{warmUp: 1s, steady: 5s, drain: 2s}}\nsubject: {{command: [python3, {}, \
         label], witness: {{kind: status}}}}\nchurn: {{resource: packages.longhaul.dev/v1alpha1, population: 1, rate: 1/s}}\n",
        program.display()
    );
    std::fs::write(folder.path().join("x.yaml"), text).unwrap();
    let arguments = ["hunt", "x.yaml", "--output", "out", "--quiet", "--json", "--jobs", "2", "--no-clock"];
    let child = longhaul(&arguments).current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("a trial of the search", || folder.path().join("out/trials/trial-5").exists().then_some(()));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    let kept = std::fs::read(folder.path().join("out/hunt.json")).unwrap();
    let result: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(result["ending"]["how"], "interrupted", "{result:#}");
    assert!(!folder.path().join("out/trials").exists(), "the files of trials are gone");
    let place = folder.path().to_str().unwrap().as_bytes().to_vec();
    let is_left = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.windows(place.len()).any(|part| part == place).then(|| String::from_utf8_lossy(&line).into_owned())
    };
    let left: Vec<String> = std::fs::read_dir("/proc").unwrap().flatten().filter_map(is_left).collect();
    assert!(left.is_empty(), "{left:?}");
}
