//! Tests that run an unchanged Go suite with controller-runtime's envtest, without and with faults. The suite has a
//! manager, a controller, forty objects and a user.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::os::unix::fs::symlink;
use std::process::Command;

use mock_envtest::{Drawn, HitLine, Manager, SESSION, Session, Summary};

const SOURCE: &str = include_str!("suite/main.go");
const MODULE: &str = include_str!("suite/go.mod");
/// A seed with which faults hit the suite. With some other seeds no fault has a hit, so the test would prove nothing.
const SEED: u64 = 3;

/// Runs the suite with the faults of a session; returns the folder of the records, or `None` if Go is missing.
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
    let drawn = Drawn { chaos: true, ..Drawn::default() };
    let Some(folder) = suite(&Session { drawn, seed: SEED, manager, ..Session::default() }) else { return };
    let requests = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let requests = requests.into_iter().find(|file| file.to_string_lossy().ends_with("requests.jsonl")).unwrap();
    let requests = std::fs::read_to_string(requests).unwrap();
    assert!(requests.lines().any(|line| line.contains("suite-manager")), "the manager is told apart by its user agent");
}

/// With the same seed, the n-th watch of a resource has the same faults in each run, even if the machine is busy.
#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn a_seed_hits_the_same_watches_again() {
    let drawn = Drawn { chaos: true, order: false, stale: Some(2) };
    let hits = || -> Option<Vec<(String, String)>> {
        let folder = suite(&Session { drawn, seed: SEED, ..Session::default() })?;
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|file| file.to_string_lossy().ends_with("hits.jsonl")).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let hits = text.lines().map(|line| serde_json::from_str::<HitLine>(line).unwrap());
        // The faults and kinds of the hits: the numbers of watches and revisions differ, because other clients write
        // too.
        let kind = |detail: &str| Some(detail.split(" of ").nth(1)?.split(' ').next()?.to_owned());
        Some(hits.map(|hit| (hit.fault, kind(&hit.detail).unwrap_or_default())).collect())
    };
    let Some(first) = hits() else { return };
    let second = hits().unwrap();
    assert!(first.len() >= 3, "{first:?}");
    let mut left = second.clone();
    let mut same = 0;
    for hit in &first {
        if let Some(place) = left.iter().position(|other| other == hit) {
            left.swap_remove(place);
            same += 1;
        }
    }
    assert!(same * 4 >= first.len() * 3, "{same} of {first:?} are in {second:?}");
}
