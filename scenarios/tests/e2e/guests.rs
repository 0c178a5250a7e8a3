//! Tests of kind clusters, and of runs in a cluster that existed before the run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::node;
use crate::support::{itself, longhaul, program, rows, soak};

const PAGE: &str = include_str!("../../../docs/deploy.md");
/// The heading of the section in the document whose commands a test runs.
const FOLLOWED: &str = "## From nothing to an armed webhook on kind\n";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether a container engine, kind, kubectl and a node image are installed. No test pulls an image.
fn has_kind() -> bool {
    let works = |program: &str, words: &[&str]| {
        let ran = Command::new(program).args(words).stdin(Stdio::null()).output();
        ran.is_ok_and(|output| output.status.success())
    };
    let image = std::env::var("LONGHAUL_KIND_IMAGE").unwrap_or_default();
    for (what, there) in [
        ("kind", works("kind", &["version"])),
        ("a container engine that answers", works("docker", &["version"])),
        ("kubectl", works("kubectl", &["version", "--client"])),
        ("a node image, named by LONGHAUL_KIND_IMAGE", works("docker", &["image", "inspect", &image])),
    ] {
        if !there {
            println!("skipped: needs {what}");
            return false;
        }
    }
    true
}

#[test]
fn what_kind_needs_is_said_before_anything_is_started() {
    let (state, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = longhaul(&["cluster", "up", "--kind", "kind"]);
    let output = command.env("XDG_STATE_HOME", state.path()).env("PATH", empty.path()).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(
        said.contains(
            "nothing was started: a kind cluster needs programs that this machine lacks\n  kind on the PATH: go install"
        ),
        "{said}"
    );
    assert!(said.contains("\n  a container engine on the PATH"), "{said}");
    assert!(!state.path().join("longhaul").exists());
}

#[test]
fn a_cluster_that_nobody_named_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    // Any access would be noticed: nothing listens there, and kubectl is a program that only has this file.
    let kubectl = folder.path().join("kubectl");
    let config = r#"{"clusters":[{"name":"theirs","cluster":{"server":"https://127.0.0.1:1","certificate-authority-data":"cGVt"}}],"contexts":[{"name":"theirs","context":{"cluster":"theirs"}}]}"#;
    std::fs::write(&kubectl, format!("#!/bin/sh\necho '{config}'\n")).unwrap();
    std::fs::set_permissions(&kubectl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |more: &[&str]| {
        let mut command = longhaul(&["soak", "smoke", "--control-plane", "kubeconfig", "--quiet"]);
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        command.args(more).current_dir(folder.path()).env("PATH", path).env("XDG_STATE_HOME", folder.path());
        let service = program("longhaul-service")?;
        Some(text(&command.arg("--service").arg(service).output().unwrap()))
    };
    let Some(said) = run(&[]) else { return };
    assert!(said.contains("write `--i-know-this-cluster NAME`"), "{said}");
    let said = run(&["--i-know-this-cluster", "mine"]).unwrap();
    assert!(said.contains("it has no cluster or context `mine`") && said.contains("it has theirs"), "{said}");
}

/// The commands of the document, exactly as written, as one shell script.
fn commands() -> Vec<String> {
    let (_, rest) = PAGE.split_once(FOLLOWED).unwrap();
    let (_, block) = rest.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

#[test]
#[ignore = "slow: makes a cluster of kind"]
fn the_page_leads_from_nothing_to_an_armed_webhook() {
    let Some(service) = program("longhaul-service") else { return };
    if !has_kind() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let beside: PathBuf = service.parent().unwrap().to_owned();
    let mut script = "set -u\n".to_owned();
    for command in commands() {
        let refused = command.contains("# refused");
        let outcome = if refused { "&& echo LET-IN" } else { "|| exit 1" };
        let command = command.split("   #").next().unwrap();
        let _ = writeln!(script, "echo '+ {command}'\n{command} {outcome}");
    }
    let mut shell = Command::new("sh");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap());
    shell
        .args(["-c", &script])
        .env("PATH", path)
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"));
    let output = shell.stdin(Stdio::null()).output().unwrap();
    let said = text(&output);
    if !output.status.success() {
        let down = longhaul(&["cluster", "down"]).env("XDG_STATE_HOME", home.path().join("state")).output().unwrap();
        panic!("{said}\n{}", text(&down));
    }
    assert!(said.contains("pod/web created (server dry run)") && !said.contains("LET-IN"), "{said}");
    assert!(said.contains("denied the request") || said.contains("failed calling webhook"), "{said}");
    assert!(said.contains("kind: running\n") && said.contains("kind: ended node"), "{said}");
}

/// A machine that can run a node, and the path of kubectl.
fn has_node() -> Option<(node::Machine, PathBuf)> {
    let machine = node::machine()?;
    let kubectl = machine.assets.join("kubectl");
    if !kubectl.is_file() {
        println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
        return None;
    }
    Some((machine, kubectl))
}

/// A run that gets only a kubeconfig treats the cluster of `cluster up --kind node` as foreign. The run passes and
/// leaves nothing there.
#[test]
#[ignore = "slow: brings up a node"]
fn nightly_a_guest_passes_on_a_cluster_that_is_there_and_leaves_nothing() {
    let Some(service) = program("longhaul-service") else { return };
    let Some((_machine, kubectl)) = has_node() else { return };
    let state = tempfile::tempdir().unwrap();
    let cluster = |words: &[&str]| {
        let mut command = longhaul(&["cluster"]);
        text(&command.args(words).env("XDG_STATE_HOME", state.path()).output().unwrap())
    };
    let up = cluster(&["up", "--kind", "node"]);
    assert!(up.contains("with one node is up"), "{up}");
    let kubeconfig = state.path().join("longhaul/clusters/node/kubeconfig");
    let guest = [
        "--control-plane",
        "kubeconfig",
        "--i-know-this-cluster",
        "local",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ];
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
    let ran = soak(&[&[small][..], &guest, &["--service", service.to_str().unwrap()]].concat());
    let ask = |words: &[&str]| kubectl_output(&kubectl, &kubeconfig, words);
    let left = ask(&[
        "get",
        "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions",
        "-l",
        "longhaul.dev/run",
        "-o",
        "name",
    ]);
    let down = cluster(&["down"]);
    assert_eq!(ran.code(), Some(0), "{}\n{down}", ran.story());
    assert_eq!(left, "", "everything with the label is gone");
}

/// Pods that existed before the run are measured and their logs are read. The run does not change them.
#[test]
#[ignore = "slow: brings up a node"]
fn nightly_pods_of_a_cluster_that_is_there_are_a_subject() {
    let Some(service) = program("longhaul-service") else { return };
    let Some((_machine, kubectl)) = has_node() else { return };
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cluster = |words: &[&str]| {
        let mut command = longhaul(&["cluster"]);
        text(&command.args(words).env("XDG_STATE_HOME", state.path()).output().unwrap())
    };
    let up = cluster(&["up", "--kind", "node"]);
    assert!(up.contains("with one node is up"), "{up}");
    let kubeconfig = state.path().join("longhaul/clusters/node/kubeconfig");
    let ask = |words: &[&str]| kubectl_output(&kubectl, &kubeconfig, words);

    let image = "docker.io/library/longhaul-service:dev";
    let archive = folder.path().join("service.tar");
    let made = kind::node::image::Image::of_program(image, &service, 65532).and_then(|image| image.archive()).unwrap();
    std::fs::write(&archive, made).unwrap();
    let loaded = cluster(&["load", archive.to_str().unwrap()]);
    let manifests =
        Command::new(&service).args(["manifests", "--image", image, "--failure-policy", "ignore"]).output().unwrap();
    let applied = folder.path().join("service.yaml");
    std::fs::write(&applied, manifests.stdout).unwrap();
    let mut told = loaded + &ask(&["apply", "-f", applied.to_str().unwrap()]);
    let namespace = "--namespace=longhaul-system";
    told += &ask(&[namespace, "rollout", "status", "deployment/longhaul-webhook", "--timeout=60s"]);
    let field = |what: &str, path: &str| ask(&[namespace, "get", what, "-o", &format!("jsonpath={path}")]);
    let address = field("service/longhaul-webhook", "{.spec.clusterIP}");
    let ca = field("mutatingwebhookconfiguration/longhaul-webhook", "{.webhooks[0].clientConfig.caBundle}");
    let ca = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, ca.trim()).unwrap_or_default();
    std::fs::write(folder.path().join("ca.pem"), ca).unwrap();
    let restarts =
        || field("pods", "{range .items[*]}{.metadata.uid}{.status.containerStatuses[0].restartCount} {end}");
    // One of them has an earlier restart: its container was killed, and is started again.
    let uid = field("pods", "{.items[0].metadata.uid}");
    kill_containers(uid.trim());
    let waits = std::time::Instant::now();
    while field("pods", "{.items[*].status.containerStatuses[*].restartCount}").chars().all(|c| "0 ".contains(c)) {
        assert!(waits.elapsed() < std::time::Duration::from_mins(1), "it was not started again");
    }
    told += &ask(&[namespace, "rollout", "status", "deployment/longhaul-webhook", "--timeout=60s"]);
    let before = restarts();

    let scenario = |selector: &str| {
        let text = format!(
            "apiVersion: longhaul/v1\nname: there\ndescription: Do Pods that were there before hold?\nseed: 4\n\
             phases: {{warmUp: 2s, steady: 8s, drain: 2s}}\n\
             controlPlane: {{kind: kubeconfig}}\n\
             subject:\n  attach:\n    role: webhook\n    url: https://{address}/mutate\n    ca: ca.pem\n    \
             serverName: longhaul-webhook.longhaul-system.svc\n    \
             pods: {{namespace: longhaul-system, selector: '{selector}'}}\n\
             admission: {{rate: 20/s}}\nbudgets:\n  memory: {{ceiling: 256MiB}}\n  descriptors: {{ceiling: 400}}\n"
        );
        let file = folder.path().join("there.yaml");
        std::fs::write(&file, text).unwrap();
        let guest = ["--control-plane", "kubeconfig", "--i-know-this-cluster", "local", "--kubeconfig"];
        soak(&[&[file.to_str().unwrap()][..], &guest, &[kubeconfig.to_str().unwrap()]].concat())
    };
    let nobody = scenario("app.kubernetes.io/name=nobody");
    let ran = scenario("app.kubernetes.io/name in (longhaul-webhook)");
    // The same file without a view of their processes, as on another machine.
    let runs = folder.path().join("far");
    let mut far = Command::new("unshare");
    far.args(["--pid", "--fork", "--mount-proc"])
        .arg(itself())
        .args(["soak", "--quiet", "--for", "40s", "--runs"])
        .arg(&runs);
    far.arg(folder.path().join("there.yaml")).args(["--control-plane", "kubeconfig", "--i-know-this-cluster", "local"]);
    let far = far.arg("--kubeconfig").arg(&kubeconfig).stdin(Stdio::null()).output().unwrap();
    let after = restarts();
    let down = cluster(&["down"]);
    assert_eq!(ran.code(), Some(0), "{told}\n{}\n{down}", ran.story());
    assert_eq!(before, after, "nobody was touched: {told}");
    assert!(!ran.record().join("crashes.jsonl").exists(), "what ended before the run is none of its crashes");
    // The kubelet reports memory, every ten seconds or so, and never descriptors.
    assert_eq!(far.status.code(), Some(2), "{}", text(&far));
    assert!(
        text(&far).contains("INCONCLUSIVE descriptors.ceiling") && !text(&far).contains("memory.ceiling"),
        "{}",
        text(&far)
    );
    let record = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let told: Vec<_> =
        rows(&record, "samples.jsonl").into_iter().filter(|row| row["subject"]["told"] == true).collect();
    assert!(told.len() >= 2 && told.iter().all(|row| row["subject"]["rssBytes"].as_u64() > Some(1 << 20)), "{told:?}");
    let samples = ran.rows("samples.jsonl");
    let most = samples.iter().filter_map(|row| row["subject"]["processes"].as_u64()).max();
    assert!(most.is_some_and(|most| most >= 1), "{samples:?}");
    assert!(std::fs::read_to_string(ran.record().join("subject.log")).unwrap().contains("longhaul-webhook-"));
    assert!(
        nobody.story().contains("there is none in longhaul-system with app.kubernetes.io/name=nobody"),
        "{}",
        nobody.story()
    );
}

/// Kills the processes of the service in the containers of a Pod.
fn kill_containers(uid: &str) {
    let uids = [uid.to_owned(), uid.replace('-', "_")];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let groups = read("cgroup");
        if uids.iter().any(|uid| groups.contains(uid)) && read("cmdline").contains("longhaul-service") {
            let pid = entry.file_name().into_string().unwrap();
            Command::new("kill").args(["-KILL", &pid]).status().unwrap();
        }
    }
}

fn kubectl_output(kubectl: &Path, kubeconfig: &Path, words: &[&str]) -> String {
    let mut command = Command::new(kubectl);
    let home = tempfile::tempdir().unwrap();
    command.arg("--kubeconfig").arg(kubeconfig).args(words).env("HOME", home.path()).stdin(Stdio::null());
    text(&command.output().unwrap())
}
