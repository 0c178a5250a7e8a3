//! Tests of a real etcd and kube-apiserver, from their start until none of their processes and files is left. Needs
//! `KUBEBUILDER_ASSETS`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kind::local::{Config, Error, Local, User};
use kind::manifests::{self, Reach};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

/// The environment variable that is set for the copy of this test program that is killed.
const HOLD: &str = "LONGHAUL_TEST_HOLD_CONTROL_PLANE";
const PACKAGE: &str = "apiVersion: longhaul.dev/v1alpha1\nkind: Package\nmetadata: {name: one, namespace: default}\n\
    spec: {network: {allow: [{direction: Egress, port: 443}]}}\n";

fn assets() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS");
    if assets.is_none() {
        println!("skipped: needs KUBEBUILDER_ASSETS");
    }
    assets.map(PathBuf::from)
}

/// Runs the kubectl of `KUBEBUILDER_ASSETS` with one user's kubeconfig.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    fn new(assets: &Path, directory: &Path, local: &Local, user: &str) -> Option<Self> {
        let program = assets.join("kubectl");
        if !program.exists() {
            println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
            return None;
        }
        let kubeconfig = directory.join(format!("{user}.yaml"));
        std::fs::write(&kubeconfig, local.access().kubeconfig(user).unwrap()).unwrap();
        Some(Self { program, kubeconfig })
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).kill_on_drop(true);
        // Its discovery cache would otherwise be shared with other programs on this machine.
        command.env("HOME", self.kubeconfig.parent().unwrap());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(Duration::from_secs(40), child.wait_with_output()).await.unwrap().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

fn alive(pid: u32) -> bool {
    // A zombie has ended, and only its process id is left.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

fn assert_nothing_left(pids: &[(&str, u32)], directory: &Path) {
    for (program, pid) in pids {
        assert!(!alive(*pid), "{program} is still running");
    }
    assert!(!directory.join("pki").exists() && !directory.join("etcd").exists(), "keys or data are left");
    assert!(directory.join("logs/kube-apiserver.log").exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_control_plane_takes_our_manifests_and_leaves_nothing() {
    let Some(assets) = assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(&assets, directory.path().join("plane"));
    config.users.push(User { name: "watcher".into(), groups: vec!["readers".into()] });
    let began = Instant::now();
    let local = Local::start(config).await.unwrap();
    println!("{} was ready after {:?}", local.access().version(), began.elapsed());
    assert!(local.access().version().starts_with("v1."));
    assert_eq!(local.ended(), None);

    if let Some(admin) = Kubectl::new(&assets, directory.path(), &local, "admin") {
        apply_everything(&admin, local.access().ca_pem()).await;
        let watcher = Kubectl::new(&assets, directory.path(), &local, "watcher").unwrap();
        use_packages(&admin, &watcher).await;
        ask_what_the_api_over_deployments_may(&admin).await;
        let audit = std::fs::read_to_string(local.access().audit_log()).unwrap();
        assert!(
            audit.lines().any(|line| line.contains(r#""verb":"create""#) && line.contains(r#""resource":"packages""#))
        );
    }
    let pids = local.processes();
    assert!(pids.iter().all(|(_, pid)| alive(*pid)));
    let address = local.access().address();
    local.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert_nothing_left(&pids, &directory.path().join("plane"));
}

async fn apply_everything(admin: &Kubectl, ca_pem: &str) {
    for (file, text) in manifests::all() {
        let applied = match file {
            "webhook.yaml" => manifests::webhook(ca_pem, Reach::Service).unwrap().to_string(),
            _ => text.to_owned(),
        };
        admin.run(&["apply", "-f", "-"], &applied).await.unwrap();
    }
    admin
        .run(&["wait", "--for=condition=Established", "--timeout=30s", "crd/packages.longhaul.dev"], "")
        .await
        .unwrap();
}

async fn use_packages(admin: &Kubectl, watcher: &Kubectl) {
    admin.run(&["apply", "-f", "-"], PACKAGE).await.unwrap();
    let listed = admin.run(&["get", "pkg", "-n", "default"], "").await.unwrap();
    let columns: Vec<&str> = listed.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(columns, ["NAME", "PHASE", "NETWORKPOLICIES", "AGE"]);
    let wrong = admin.run(&["apply", "-f", "-"], &PACKAGE.replace("Egress", "Sideways")).await.unwrap_err();
    assert!(wrong.contains("Unsupported value: \"Sideways\""), "{wrong}");

    let refused = watcher.run(&["get", "packages", "-n", "default"], "").await.unwrap_err();
    assert!(refused.contains("Forbidden") && refused.contains("watcher"), "{refused}");
    let bind = ["create", "clusterrolebinding", "watcher", "--clusterrole=longhaul-watch", "--group=readers"];
    admin.run(&bind, "").await.unwrap();
    for (verb, resource, allowed) in [
        ("list", "packages.longhaul.dev", true),
        ("delete", "packages.longhaul.dev", false),
        ("delete", "networkpolicies.networking.k8s.io", true),
        ("get", "secrets", false),
    ] {
        let answer = until_known(watcher, verb, resource, allowed).await;
        assert_eq!(answer, allowed, "{verb} {resource}");
    }
}

/// Checks with the real RBAC authorizer which rights the account of the API that scales Deployments has.
async fn ask_what_the_api_over_deployments_may(admin: &Kubectl) {
    let rights = |images: bool| {
        let all = manifests::replicas_rights(images).unwrap();
        serde_json::json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string()
    };
    admin.run(&["apply", "-f", "-"], &rights(false)).await.unwrap();
    let (namespace, name) = manifests::REPLICAS_ACCOUNT;
    let account = format!("--as=system:serviceaccount:{namespace}:{name}");
    let may = async |verb: &str, resource: &str, expected: bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        let (resource, sub) =
            resource.split_once('/').map_or((resource, None), |(resource, sub)| (resource, Some(sub)));
        let sub = sub.map(|sub| format!("--subresource={sub}"));
        loop {
            let mut words = vec!["auth", "can-i", verb, resource, "-n", "default", account.as_str()];
            words.extend(sub.as_deref());
            let answer = admin.run(&words, "").await.is_ok();
            if answer == expected || Instant::now() > deadline {
                break answer;
            }
        }
    };
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let matrix = async |allowed: &[(&str, &[&str])]| {
        for (resource, these) in allowed {
            for verb in verbs {
                let expected = these.contains(&verb);
                assert_eq!(may(verb, resource, expected).await, expected, "{verb} {resource}");
            }
        }
    };
    let (scale, nothing): (&[&str], &[&str]) = (&["get", "update"], &[]);
    let others = ["deployments.apps/status", "replicasets.apps/scale", "pods", "secrets", "configmaps", "namespaces"];
    let mut ordinary: Vec<(&str, &[&str])> =
        vec![("deployments.apps", &["list", "watch"]), ("deployments.apps/scale", scale)];
    ordinary.extend(others.map(|resource| (resource, nothing)));
    matrix(&ordinary).await;
    admin.run(&["apply", "-f", "-"], &rights(true)).await.unwrap();
    matrix(&[("deployments.apps", &["get", "list", "watch", "patch"]), ("deployments.apps/scale", scale)]).await;
}

/// Waits until the API server's RBAC uses a new binding, which takes a moment.
async fn until_known(kubectl: &Kubectl, verb: &str, resource: &str, expected: bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = kubectl.run(&["auth", "can-i", verb, resource], "").await.is_ok();
        if answer == expected || Instant::now() > deadline {
            return answer;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a control plane"]
async fn dropping_is_enough_to_leave_nothing() {
    let Some(assets) = assets() else { return };
    let directory = tempfile::tempdir().unwrap();
    let local = Local::start(Config::new(assets, directory.path())).await.unwrap();
    let pids = local.processes();
    drop(local);
    assert_nothing_left(&pids, directory.path());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a control plane"]
async fn nothing_survives_the_sudden_death_of_its_owner() {
    let Some(assets) = assets() else { return };
    if let Some(directory) = std::env::var_os(HOLD) {
        return hold(Config::new(assets, directory)).await;
    }
    if !cfg!(target_os = "linux") {
        println!("skipped: needs Linux");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["nothing_survives_the_sudden_death_of_its_owner", "--exact", "--include-ignored", "--nocapture"])
        .env(HOLD, directory.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let pids: Vec<u32> = loop {
        let line = lines.next_line().await.unwrap().expect("the owner says what it holds");
        if let Some((_, numbers)) = line.split_once("holding ") {
            break numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        }
    };
    assert!(pids.len() == 2 && pids.iter().all(|pid| alive(*pid)));
    owner.kill().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| alive(*pid)) {
        assert!(Instant::now() < deadline, "a control plane outlived its owner");
        tokio::task::yield_now().await;
    }
}

/// Keeps a control plane running until this copy of the test program is killed.
async fn hold(config: Config) {
    let local = Local::start(config).await.unwrap();
    let [(_, one), (_, two)] = local.processes();
    println!("holding {one} {two}");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn errors_say_what_was_wrong_and_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let missing = Local::start(Config::new(directory.path(), directory.path())).await.unwrap_err();
    let Error::Missing(program) = missing else { panic!("{missing}") };
    assert!(program.to_string().starts_with("failed to find `etcd` in "), "{program}");

    let Some(assets) = assets() else { return };
    let plane = directory.path().join("plane");
    let mut config = Config::new(assets, &plane);
    config.apiserver_arguments = vec!["--no-such-flag".into()];
    let error = Local::start(config).await.unwrap_err();
    assert!(matches!(error, Error::Ended { program: "kube-apiserver", .. }), "{error}");
    assert!(error.to_string().contains("no-such-flag"), "{error}");
    assert_nothing_left(&[], &plane);
}
