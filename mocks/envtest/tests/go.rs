//! A suite of controller-runtime's own envtest, unchanged: a manager, a controller, forty objects, a user; without faults and with them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::os::unix::fs::symlink;
use std::process::Command;

use mock_envtest::{Manager, SESSION, Session, Summary};

const SOURCE: &str = include_str!("suite/main.go");
const MODULE: &str = include_str!("suite/go.mod");
/// Gentle faults, without which the test of them would test nothing.
const SEED: u64 = 3;

/// Runs the suite with the faults of a session; the folder of its records, `None` where Go is missing.
fn suite(session: &Session) -> Option<tempfile::TempDir> {
    let program = match installer::go_program("envtest-suite", SOURCE, MODULE) {
        Ok(program) => program,
        Err(missing) => {
            println!("skipped: needs {missing}");
            return None;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    for name in mock_envtest::PROGRAMS {
        symlink(env!("CARGO_BIN_EXE_longhaul-envtest"), folder.path().join(name)).unwrap();
    }
    let session = Session { runs: Some(folder.path().to_owned()), ..session.clone() };
    let file = folder.path().join("session.json");
    std::fs::write(&file, serde_json::to_vec(&session).unwrap()).unwrap();
    let output = Command::new(program).env("KUBEBUILDER_ASSETS", folder.path()).env(SESSION, file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(folder)
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn a_suite_passes_and_leaves_a_ledger() {
    let Some(folder) = suite(&Session::default()) else { return };
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let summary = files.into_iter().find(|file| file.to_string_lossy().ends_with("summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    assert!(summary.revision >= 80, "{} commits for forty objects that are made and marked", summary.revision);
    assert!(
        summary.denied.iter().any(|(user, what, _)| user == "jane" && what == "list configmaps"),
        "{:?}",
        summary.denied
    );
    assert!(summary.roles.contains("configmaps"));
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn a_correct_suite_survives_chaos_for_its_manager() {
    let manager = Manager { agent: Some("suite-manager".to_owned()), user: None };
    let faults = mock_envtest::chaos(SEED, &manager);
    let Some(folder) = suite(&Session { faults, seed: SEED, manager, ..Session::default() }) else { return };
    let requests = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let requests = requests.into_iter().find(|file| file.to_string_lossy().ends_with("requests.jsonl")).unwrap();
    let requests = std::fs::read_to_string(requests).unwrap();
    assert!(requests.lines().any(|line| line.contains("suite-manager")), "the manager is told apart by its user agent");
}
