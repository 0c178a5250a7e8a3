//! Tests of a complete real node, from its start until nothing of the node is left. These tests need root and the
//! requirements of [`kind::node`], and print the missing requirements.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kind::node::image::Image;
use kind::node::{Config, Node, first_process};
use kind::state::Identity;
use tokio::process::Command;

/// The environment variable that is set for the copy of this test program that is a node's first process.
const FIRST: &str = "LONGHAUL_TEST_FIRST_PROCESS";

/// Not a test: a copy of this test program runs the first process of a node here.
#[test]
fn the_first_process_of_a_node_is_a_copy_of_this_program() {
    if std::env::var_os(FIRST).is_some() {
        let directory = std::env::args_os().next_back().unwrap();
        // The function returns only after a failure.
        panic!("{:?}", first_process(Path::new(&directory)).err());
    }
}

/// The arguments that run the first process of a node.
fn init() -> Vec<OsString> {
    let program = std::env::current_exe().unwrap().into_os_string();
    let test = "the_first_process_of_a_node_is_a_copy_of_this_program".into();
    vec!["/usr/bin/env".into(), format!("{FIRST}=yes").into(), program, "--exact".into(), "--nocapture".into(), test]
}

fn assets() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let Some(assets) = assets else {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return None;
    };
    if let Err(missing) = Node::check(&assets, &std::env::temp_dir()) {
        for need in missing.to_string().lines().skip(1) {
            println!("skipped: needs {}", need.trim_start());
        }
        return None;
    }
    Some(assets)
}

fn groups() -> Vec<PathBuf> {
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten().map(|entry| entry.path());
    let all = hierarchies.filter_map(|folder| std::fs::read_dir(folder).ok()).flat_map(Iterator::flatten);
    let mut ours: Vec<PathBuf> = all
        .map(|entry| entry.path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("longhaul-"))
        .collect();
    ours.sort();
    ours
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_node_runs_pods_whose_processes_are_known_and_leaves_nothing() {
    let Some(assets) = assets() else { return };
    let turn = std::fs::File::create(std::env::temp_dir().join("longhaul-test-node.lock")).unwrap();
    turn.lock().unwrap();
    let (before, folder) = (groups(), tempfile::tempdir().unwrap());
    let plane = folder.path().join("plane");
    let began = Instant::now();
    let config = Config { state_directory: Some(folder.path().join("state")), ..Config::new(&assets, &plane, init()) };
    let node = Node::start(config).await.unwrap();
    println!("{} was Ready after {:?}", node.access().version(), began.elapsed());
    assert_ne!(groups(), before);
    let kubectl = assets.join("kubectl");
    if kubectl.is_file() {
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, node.access().kubeconfig("admin").unwrap()).unwrap();
        let ask = async |words: &str| {
            let mut command = Command::new(&kubectl);
            command.arg("--kubeconfig").arg(&kubeconfig).args(words.split(' ')).env("HOME", folder.path());
            let output = tokio::time::timeout(Duration::from_mins(2), command.output()).await.unwrap().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(output.status.success(), "{words}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let image = Image::of_program("docker.io/library/sleep:1", Path::new("/bin/sleep"), 65532).unwrap();
        node.load(image.archive().unwrap()).await.unwrap();
        ask("run first --image sleep:1 --image-pull-policy Never --restart Always -- 600").await;
        ask("wait --for=condition=Ready pod/first --timeout=90s").await;
        println!("a Pod was Ready after {:?}", began.elapsed());
        let uid = ask("get pod first -o jsonpath={.metadata.uid}").await;
        let pids = node.pods().first_processes(&uid);
        let [pid] = pids[..] else { panic!("one container: {pids:?}") };
        assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim(), "sleep");
    } else {
        println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
    }
    let first = Identity::of(node.pid()).unwrap();
    let began = Instant::now();
    node.stop().await;
    println!("it was down after {:?}", began.elapsed());
    assert!(!first.is_alive());
    // Another node's groups may have been removed meanwhile.
    let left: Vec<PathBuf> = groups().into_iter().filter(|group| !before.contains(group)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!plane.join("pki").exists() && !plane.join("node").exists());
    assert!(plane.join("logs/kubelet.log").exists());
}
