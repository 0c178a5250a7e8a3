//! `longhaul init` in a project as kubebuilder lays it out: what it writes passes as it stands.

use crate::operator::project;
use crate::support::{findings, longhaul, soak};

/// The first look of somebody who has never written a scenario.
#[test]
#[ignore = "slow"]
fn what_init_writes_for_a_kubebuilder_project_passes_unedited() {
    let Some(project) = project() else { return };
    let folder = project.path().to_str().unwrap();
    let output = longhaul(&["init", folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("go.kubebuilder.io/v4, laid out by kubebuilder"), "{said}");
    assert!(said.contains("longhaul envtest --chaos 1"), "its own suite comes first: {said}");
    assert!(said.contains("next      look at the lines"), "{said}");
    let file = project.path().join("longhaul.yaml");
    let soak = soak(&[file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(soak.code(), Some(0), "{text}\n{}", soak.story());
    let passed = findings(&soak.verdict(), "pass");
    for budget in ["events.missed", "requests.rate", "admission.errors"] {
        assert!(passed.contains(&budget.to_owned()), "{budget} is not among {passed:?}\n{}", soak.story());
    }
    // Goroutines and heap are followed: the page was read, at the port that the run chose.
    let rows = std::fs::read_to_string(soak.record().join("metrics.jsonl")).unwrap();
    assert!(rows.contains("go_goroutines"), "{}", soak.story());
}
