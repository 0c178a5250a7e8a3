//! Tests of a control plane of real programs that keeps running after the command that started it. Needs
//! `KUBEBUILDER_ASSETS`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kind::cluster::{self, Error, Health, Up};
use kind::local::{Config, Local};
use kind::state::Identity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// The environment variable with the state directory, set for copies of this test program that act as a command.
const STATE: &str = "LONGHAUL_TEST_STATE_DIRECTORY";

fn assets() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS");
    if assets.is_none() {
        println!("skipped: needs KUBEBUILDER_ASSETS");
    }
    assets.map(PathBuf::from)
}

/// Runs one test of this test program as a separate process.
fn copy(test: &str, state: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--include-ignored", "--nocapture"])
        .env(STATE, state)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn health(state: &Path) -> Vec<Health> {
    cluster::status(state).unwrap().clusters.into_iter().map(|cluster| cluster.health).collect()
}

async fn until(what: &str, mut met: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !met() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
#[ignore = "slow: a control plane"]
async fn it_outlives_the_command_and_goes_when_told() {
    let Some(assets) = assets() else { return };
    if let Some(state) = std::env::var_os(STATE) {
        cluster::up(Up::new(assets, state)).await.unwrap();
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let exit = copy("it_outlives_the_command_and_goes_when_told", state.path()).wait().await.unwrap();
    assert!(exit.success());
    let status = cluster::status(state.path()).unwrap();
    let [up] = &status.clusters[..] else { panic!("{status}") };
    assert_eq!((&up.health, up.alive.len()), (&Health::Running, 2), "{status}");
    assert!(up.version.as_ref().unwrap().starts_with("v1."), "{status}");
    assert!(!status.has_leftovers());
    let processes: Vec<Identity> = up.alive.iter().map(|process| process.identity.clone()).collect();
    let again = cluster::up(Up::new(&assets, state.path())).await.unwrap_err();
    assert!(matches!(again, Error::AlreadyUp { .. }), "{again}");
    let kubectl = assets.join("kubectl");
    if kubectl.exists() {
        let kubeconfig = up.kubeconfig.as_ref().unwrap();
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig).args(["get", "namespace", "default"]).env("HOME", state.path());
        assert!(command.stdout(Stdio::null()).status().await.unwrap().success());
        std::fs::remove_dir_all(state.path().join(".kube")).unwrap();
    }
    let down = cluster::down(state.path(), None).await.unwrap();
    assert!(down.is_complete() && down.ended.len() == 2, "{down}");
    assert!(processes.iter().all(|process| !process.is_alive()));
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "{down}");
}

#[tokio::test]
#[ignore = "slow: a control plane"]
async fn what_a_killed_start_leaves_is_found_and_taken_down() {
    let Some(assets) = assets() else { return };
    if let Some(state) = std::env::var_os(STATE) {
        cluster::up(Up::new(assets, state)).await.unwrap();
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let mut command = copy("what_a_killed_start_leaves_is_found_and_taken_down", state.path());
    let alive = || cluster::status(state.path()).unwrap().clusters.first().map_or(0, |cluster| cluster.alive.len());
    until("both processes to run", || alive() == 2).await;
    assert!(matches!(health(state.path())[..], [Health::Starting { .. }]));
    let refused = cluster::down(state.path(), None).await.unwrap_err();
    assert!(matches!(refused, Error::Starting { .. }), "{refused}");
    command.kill().await.unwrap();
    assert!(matches!(health(state.path())[..], [Health::Leftover { alive: 2, .. }]), "{:?}", health(state.path()));
    let down = cluster::down(state.path(), None).await.unwrap();
    assert!(down.is_complete() && down.ended.len() == 2, "{down}");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "{down}");
}

/// After a run is killed, the processes of its control plane end. `cluster down` finds the keys and data of a killed
/// run by the run's entry in the state directory.
#[tokio::test]
#[ignore = "slow: a control plane"]
async fn what_a_killed_run_leaves_is_found_and_taken_down() {
    let Some(assets) = assets() else { return };
    if let Some(state) = std::env::var_os(STATE) {
        let state = PathBuf::from(state);
        let config = Config { state_directory: Some(state.join("state")), ..Config::new(assets, state.join("run")) };
        let local = Local::start(config).await.unwrap();
        // Until it is ended or killed.
        let mut nothing = [0; 1];
        let _ = tokio::io::stdin().read(&mut nothing).await;
        local.stop().await;
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (state, run) = (root.path().join("state"), root.path().join("run"));
    let test = "what_a_killed_run_leaves_is_found_and_taken_down";
    for killed in [false, true] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--include-ignored", "--nocapture"]).env(STATE, root.path()).kill_on_drop(true);
        let mut command = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let ready = || cluster::status(&state).unwrap().clusters.first().is_some_and(|run| run.version.is_some());
        until("the run to be ready", ready).await;
        assert!(matches!(health(&state)[..], [Health::InUse { .. }]));
        if killed {
            command.kill().await.unwrap();
            until("its processes to end", || matches!(health(&state)[..], [Health::Leftover { alive: 0, .. }])).await;
            assert!(run.join("pki/tokens.csv").exists());
            assert!(cluster::down(&state, None).await.unwrap().is_complete());
        } else {
            let mut stdin = command.stdin.take().unwrap();
            stdin.write_all(b"\n").await.unwrap();
            assert!(command.wait().await.unwrap().success());
        }
        assert_eq!(health(&state), []);
        assert!(!run.join("pki").exists() && !run.join("etcd").exists() && run.join("logs").exists());
    }
}
