//! Tests of a whole real node: `longhaul cluster up --kind node`, and runs on `controlPlane: {kind: node}`. These tests
//! run one at a time, because each starts all programs of Kubernetes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{itself, longhaul, program, sends, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// Time limit of a wait in these tests. On a busy machine a node needs a minute until it has started.
const PATIENCE: Duration = Duration::from_mins(4);

/// A lock that lets only one test at a time run a node on this machine.
pub struct Machine {
    pub assets: PathBuf,
    _turn: File,
}

/// Locks the machine for one test with a node. Prints a message and returns `None` if something that a node needs is
/// missing.
pub fn machine() -> Option<Machine> {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !assets.is_empty()) else {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return None;
    };
    let assets = PathBuf::from(assets);
    if let Err(missing) = kind::node::Node::check(&assets, &std::env::temp_dir()) {
        for need in missing.to_string().lines().skip(1) {
            println!("skipped: needs {}", need.trim_start());
        }
        return None;
    }
    let turn = File::create(std::env::temp_dir().join("longhaul-test-node.lock")).unwrap();
    turn.lock().unwrap();
    // The kernel removes a link a moment after the last process of its node, whose test has ended by then.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !traces().is_empty() && Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    Some(Machine { assets, _turn: turn })
}

impl Machine {
    /// The output of kubectl, or its error. Prints a message and returns `None` if kubectl is missing.
    fn kubectl(&self, home: &Path, kubeconfig: &Path, arguments: &[&str]) -> Option<Result<String, String>> {
        let program = self.assets.join("kubectl");
        if !program.is_file() {
            println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
            return None;
        }
        let mut command = Command::new(program);
        // Its cache of discovery is a file of HOME.
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments).env("HOME", home).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
    }
}

/// Traces of nodes on this machine: names of cgroups and of network links.
fn traces() -> Vec<String> {
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
    let groups = hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]);
    let all = groups.chain([PathBuf::from("/sys/class/net")]).filter_map(|folder| std::fs::read_dir(folder).ok());
    let names = all.flat_map(|entries| entries.flatten().map(|entry| entry.path().display().to_string()));
    let mut ours: Vec<String> =
        names.filter(|path| path.rsplit('/').next().unwrap().starts_with("longhaul-")).collect();
    ours.sort();
    ours
}

/// Traces of nodes that are not in `before`. Traces in `before` may disappear during the test, because they belong to
/// other nodes.
fn new(before: &[String]) -> Vec<String> {
    traces().into_iter().filter(|trace| !before.contains(trace)).collect()
}

fn until(what: &str, mut met: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

fn cluster(state: &Path, arguments: &[&str]) -> Output {
    let mut command = longhaul(&["cluster"]);
    command.args(arguments).env("XDG_STATE_HOME", state).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_a_node_needs_is_said_before_anything_is_started() {
    let (state, assets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = cluster(state.path(), &["up", "--kind", "node", "--assets", assets.path().to_str().unwrap()]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("nothing was started: a node needs what this machine lacks\n"), "{said}");
    assert!(said.contains("etcd, kube-apiserver, kube-controller-manager"), "{said}");
    assert!(!state.path().join("longhaul/clusters/node").exists());
}

/// A node starts, runs a Pod, and leaves nothing on the machine after `down`.
#[test]
#[ignore = "slow"]
fn a_node_runs_a_pod_of_an_image_that_was_loaded_and_leaves_nothing() {
    let Some(machine) = machine() else { return };
    let (before, work) = (traces(), tempfile::tempdir().unwrap());
    let state = work.path().join("state");
    let began = Instant::now();
    let up = cluster(&state, &["up", "--kind", "node"]);
    assert!(up.status.success(), "{}", text(&up));
    println!("up after {:.1} s", began.elapsed().as_secs_f64());
    assert!(text(&up).contains("with one node is up at https://10."), "{}", text(&up));
    let again = cluster(&state, &["up", "--kind", "node"]);
    assert!(!again.status.success() && text(&again).contains("is up already"), "{}", text(&again));
    let status = cluster(&state, &["status"]);
    assert!(
        status.status.success() && text(&status).starts_with("node: running\n  Kubernetes v1."),
        "{}",
        text(&status)
    );

    let kubeconfig = state.join("longhaul/clusters/node/kubeconfig");
    if machine.kubectl(work.path(), &kubeconfig, &["version"]).is_some() {
        let k = |arguments: &[&str]| machine.kubectl(work.path(), &kubeconfig, arguments).unwrap();
        let archive = work.path().join("shell.tar");
        let image = "docker.io/library/shell:1";
        let shell = kind::node::image::Image::of_program(image, Path::new("/bin/sleep"), 65532).unwrap();
        std::fs::write(&archive, shell.archive().unwrap()).unwrap();
        let loaded = cluster(&state, &["load", archive.to_str().unwrap()]);
        assert!(loaded.status.success(), "{}", text(&loaded));
        k(&["run", "first", "--image", "shell:1", "--image-pull-policy", "Never", "--", "600"]).unwrap();
        let ready = k(&["wait", "--for=condition=Ready", "pod/first", "--timeout=60s"]);
        assert!(ready.is_ok(), "{ready:?} {:?}", k(&["describe", "pod", "first"]));
        println!("Pod Ready after {:.1} s", began.elapsed().as_secs_f64());
    }
    let began = Instant::now();
    let down = cluster(&state, &["down"]);
    assert!(down.status.success() && text(&down).contains("node: ended node"), "{}", text(&down));
    println!("down after {:.1} s", began.elapsed().as_secs_f64());
    until("the link to be gone", || new(&before).is_empty());
    assert_eq!(std::fs::read_dir(state.join("longhaul/clusters")).unwrap().count(), 0);
}

/// A run with the service as a process on the machine passes with a node as control plane. The API server in the node
/// reaches the webhook of a service process on the machine.
#[test]
#[ignore = "slow"]
fn nightly_the_service_passes_on_a_node() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let before = traces();
    for scenario in [SMALL, "through-apiserver"] {
        let soak = soak(&[scenario, "--control-plane", "node", "--service", service.to_str().unwrap()]);
        assert_eq!(soak.code(), Some(0), "{scenario}: {}", soak.story());
        let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
        assert!(manifest.contains("node, Kubernetes v"), "the record names the real version: {manifest}");
        for log in ["kubelet.log", "containerd.log", "kube-apiserver.log"] {
            assert!(soak.record().join("control-plane").join(log).is_file(), "{log} is kept");
        }
        until("the link to be gone", || new(&before).is_empty());
    }
}

/// The service passes as users deploy it: an image with its program, its own manifests, and the webhook behind a
/// Service.
#[test]
#[ignore = "slow"]
fn nightly_the_service_in_pods_pins_every_pod_that_is_stored() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let soak = soak(&["deployed", "--for", "25s", "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(soak.stdout().contains("0 unpinned objects"), "{}", soak.stdout());
    let record = soak.record();
    let log = std::fs::read_to_string(record.join("subject.log")).unwrap();
    for pod in ["[longhaul-webhook-", "[longhaul-watch-"] {
        assert!(log.lines().any(|line| line.starts_with(pod)), "{pod}: the output of every Pod is kept");
    }
    let samples = std::fs::read_to_string(record.join("samples.jsonl")).unwrap();
    assert!(samples.lines().last().unwrap().contains("rssBytes"), "the processes of the Pods are measured");
}

#[test]
#[ignore = "slow"]
fn nightly_a_missed_delete_is_a_ghost_in_pods_too() {
    let Some(service) = program("longhaul-service-planted") else { return };
    let Some(_machine) = machine() else { return };
    let arguments = ["deployed", "--for", "30s", "--plant", "missed-delete", "--service", service.to_str().unwrap()];
    let soak = soak(&arguments);
    let mut broken = soak.broken();
    broken.retain(|budget| budget != "finalizers.stuck");
    assert_eq!(broken, ["events.ghost"], "{}", soak.story());
}

/// The service in Pods passes the scenario `smoke`, whose load is sent directly to the Pods.
#[test]
#[ignore = "slow"]
fn the_service_in_pods_passes_smoke() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let smoke = scenarios::scenario::library::text("smoke").unwrap();
    let (head, rest) = smoke.split_once("faults:").unwrap();
    let (_, budgets) = rest.split_once("budgets:").unwrap();
    let text = format!("{head}budgets:{budgets}")
        .replace("  service:\n", "  deployment:\n    build: service\n")
        .replace("kind: mock, bookmarksEvery", "kind: node, bookmarksEvery")
        // There are three processes, on a machine that runs all of Kubernetes beside them.
        .replace("{p50: 20ms, p99: 500ms,", "{p50: 200ms, p99: 2s,")
        .replace("{ceiling: 96MiB}", "{ceiling: 192MiB}")
        // The load opens a connection for each late call.
        .replace("{ceiling: 200, growth: 20}", "{ceiling: 800, growth: 20}");
    assert!(text.contains("build: service") && text.contains("kind: node") && text.contains("ceiling: 800"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("smoke.yaml");
    std::fs::write(&file, text).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

/// Workers in Pods send the load of a scenario to the Pods of the service. If a worker is deleted, the run is
/// inconclusive.
#[test]
#[ignore = "slow: a node, twice"]
fn nightly_workers_in_pods_send_the_load_of_a_scenario() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(machine) = machine() else { return };
    let text = std::fs::read_to_string(SMALL).unwrap();
    let (head, rest) = text.split_once("subject:").unwrap();
    let (_, load) = rest.split_once("admission:").unwrap();
    let (load, budgets) = load.split_once("faults:").unwrap();
    let (_, budgets) = budgets.split_once("budgets:").unwrap();
    let text = format!(
        "{head}subject:\n  deployment:\n    build: service\n  witness: {{kind: http}}\nadmission:\n  workers: {{count: 2}}{load}budgets:{budgets}"
    )
    .replace("kind: mock, bookmarksEvery", "kind: node, bookmarksEvery")
    .replace("{ceiling: 96MiB}", "{ceiling: 192MiB}")
    .replace("{ceiling: 200}", "{ceiling: 800}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.yaml");
    std::fs::write(&file, text).unwrap();
    let whole = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(whole.code(), Some(0), "{}", whole.story());
    let sent = |record: &Path| {
        let rows = crate::support::rows(record, "intervals.jsonl");
        rows.iter().filter_map(|row| row["admission"]["sent"].as_u64()).sum::<u64>()
    };
    assert_eq!(sent(&whole.record()), 440, "40/s for 11 s: {}", whole.story());

    let mut command = longhaul(&["soak", file.to_str().unwrap(), "--quiet", "--for", "10m", "--runs"]);
    command.arg(folder.path().join("runs")).arg("--service").arg(service);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("load", || sends(&folder.path().join("runs")));
    // The attach of one worker is a process whose arguments name its Pod and a kubeconfig with all rights.
    let attach = attaches(child.id());
    assert_eq!(attach.len(), 2, "{attach:?}");
    let word = |name: &str| attach[0].iter().find_map(|word| word.strip_prefix(name)).unwrap().to_owned();
    let (kubeconfig, namespace) = (word("--kubeconfig="), word("--namespace="));
    let pod = attach[0].last().unwrap();
    let delete = ["--namespace", &namespace, "delete", "pod", pod, "--grace-period=0", "--force"];
    machine.kubectl(folder.path(), Path::new(&kubeconfig), &delete).unwrap().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = self::text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a part of the load was missing") && said.contains(pod), "{said}");
}

/// The command lines of the processes by which a harness is connected to its worker Pods.
fn attaches(harness: u32) -> Vec<Vec<String>> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let words: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
        (parent == harness && words.iter().any(|word| word == "attach")).then_some(words)
    });
    lines.collect()
}

/// The `hit` rows of a fault in the record: one for each time that the fault really acted on a Pod.
fn hits(record: &Path, name: &str) -> Vec<Value> {
    let rows = std::fs::read_to_string(record.join("faults.jsonl")).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["name"] == name && row["event"] == "hit").collect()
}

#[test]
#[ignore = "slow"]
fn nightly_rollouts_of_the_service_cost_no_call() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let text = scenarios::scenario::library::text("deployed-rollouts").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rollout.yaml");
    // One of the scenario's two.
    std::fs::write(&file, text.replace("count: 2, pause: 45s", "count: 1")).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--for", "50s", "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let hits = hits(&soak.record(), "rolling-restart");
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert!(hits.iter().all(|row| row["detail"].as_str().unwrap().contains("3 Pods were replaced")), "{hits:?}");
}

#[test]
#[ignore = "slow"]
fn nightly_nothing_is_let_in_while_pods_are_killed() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let text = scenarios::scenario::library::text("deployed-kills").unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (by, told) in [("signal", "got SIGKILL"), ("delete", "was deleted"), ("evict", "was evicted")] {
        let file = folder.path().join(format!("{by}.yaml"));
        // One of the scenario's three.
        let one = text.replace("count: 3, pause: 20s", &format!("by: {by}"));
        std::fs::write(&file, one).unwrap();
        let soak = soak(&[file.to_str().unwrap(), "--for", "30s", "--service", service.to_str().unwrap()]);
        assert_eq!(soak.code(), Some(0), "{by}: {}", soak.story());
        let hits = hits(&soak.record(), "pod-kill");
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert!(hits.iter().all(|row| row["detail"].as_str().unwrap().contains(told)), "{hits:?}");
        // A kill by the run itself is no crash.
        let crashes = std::fs::read_to_string(soak.record().join("crashes.jsonl")).unwrap_or_default();
        assert_eq!(crashes, "", "{by}");
    }
}

/// Runs the scenario `deployed-kills` with other faults and further changes.
fn troubled(faults: &str, steady: &str, changes: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let text = scenarios::scenario::library::text("deployed-kills").unwrap();
    let mut text = text.replace("  - {name: pod-kill, at: 5s, count: 3, pause: 20s}\n", faults);
    for (from, to) in [("steady: 75s", steady), ("errors: 300", "errors: 5000")].iter().chain(changes) {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("troubled.yaml");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

/// While no Pod of the service runs, the registry is unreachable or CPU is scarce, webhook calls fail, but no Pod
/// without a digest is admitted.
#[test]
#[ignore = "slow: a node, and faults of Pods for a minute"]
fn nightly_what_a_cluster_does_to_pods_lets_nothing_in() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let faults = "  - {name: scale, at: 4s, for: 12s}\n  - {name: network-policy, at: 30s, for: 5s}\n  \
        - {name: node-pressure, at: 40s, for: 4s, cpu: 0.3}\n";
    let (_folder, file) = troubled(faults, "steady: 50s", &[]);
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let record = soak.record();
    for (name, least, told) in [
        ("scale", 2, "Deployments have 0 Pods each"),
        ("network-policy", 1, "cannot reach the registry"),
        ("node-pressure", 3, "0.3 of a processor"),
    ] {
        let hits = hits(&record, name);
        assert!(hits.len() >= least, "{name}: {hits:?}");
        assert!(hits[0]["detail"].as_str().unwrap().contains(told), "{name}: {hits:?}");
    }
}

/// With `failurePolicy: Ignore`, Pods are stored without a digest if the webhook does not answer, and a budget counts
/// these Pods.
#[test]
#[ignore = "slow: a node, and no Pods for a while"]
fn nightly_with_failure_policy_ignore_what_nobody_answers_is_stored_unpinned() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let changes = [("failurePolicy: Fail", "failurePolicy: Ignore")];
    let (_folder, file) = troubled("  - {name: scale, at: 4s, for: 12s}\n", "steady: 26s", &changes);
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert!(soak.broken().contains(&"admission.unpinned".to_owned()), "{}", soak.story());
}

/// The kernel kills a container that has too little memory. The end of such a container counts as a crash, with its
/// reason.
#[test]
#[ignore = "slow: a node, and containers that are ended for their memory"]
fn nightly_a_container_that_has_too_little_memory_is_a_crash() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let changes = [("  memory: {ceiling: 192MiB}", "  memory: {ceiling: 192MiB}\n  crashes: {max: 0}")];
    let faults = "  - {name: node-pressure, at: 4s, for: 8s, memory: 4MiB}\n";
    let (_folder, file) = troubled(faults, "steady: 26s", &changes);
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert!(soak.broken().iter().any(|budget| budget.starts_with("crashes")), "{}", soak.story());
    let crashes = std::fs::read_to_string(soak.record().join("crashes.jsonl")).unwrap();
    assert!(crashes.contains("OOMKilled"), "{crashes}");
}

/// etcd is stopped, and the network between Pods and API server is frozen. After these faults the watch recovers, and
/// no Pod without a digest is admitted.
#[test]
#[ignore = "slow: a node, and faults of its control plane for half a minute"]
fn nightly_a_sick_control_plane_costs_no_event() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let faults = "  - {name: etcd-slow, at: 4s, for: 4s}\n  - {name: net-freeze, at: 14s, for: 3s, heals: true}\n";
    let (_folder, file) = troubled(faults, "steady: 30s", &[]);
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    for name in ["etcd-slow", "net-freeze"] {
        assert!(!hits(&soak.record(), name).is_empty(), "{name}");
    }
}

/// If the API server is killed and restarted, calls sent directly to the webhook are not affected. The watch is not
/// judged, because the restarted server may have lost versions that the watch has not seen.
#[test]
#[ignore = "slow: a node, and an API server that is killed"]
fn nightly_an_api_server_that_is_killed_costs_no_call_of_others() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let (folder, file) = troubled("  - {name: apiserver-restart, at: 4s, signal: kill}\n", "steady: 25s", &[]);
    let text = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = text.split_once("admission:\n").unwrap();
    let (_, faults) = rest.split_once("faults:\n").unwrap();
    let (faults, _) = faults.split_once("budgets:\n").unwrap();
    let head = head.replace("witness: {kind: http}", "witness: {kind: none}");
    let head = head.replace("    build: service\n", "    build: service\n    role: webhook\n");
    let budgets = "admission: {rate: 20/s}\nbudgets: {admission: {wrongVerdicts: 0, errors: 0}}\n";
    let file = folder.path().join("direct.yaml");
    std::fs::write(&file, format!("{head}faults:\n{faults}{budgets}")).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let hits = hits(&soak.record(), "apiserver-restart");
    assert!(hits[0]["detail"].as_str().unwrap().contains("was ready again after"), "{hits:?}");
}

/// If a certificate expires during the load, no call fails, because the next certificate is in the Secret before the
/// expiry.
#[test]
#[ignore = "slow: a node, and a certificate that ends after half a minute"]
fn nightly_a_certificate_that_ends_in_pods_costs_no_call() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let changes = [("errors: 5000", "errors: 0")];
    let (_folder, file) = troubled("  - {name: certificate-expiry, at: 4s, valid: 45s}\n", "steady: 58s", &changes);
    let soak = soak(&[file.to_str().unwrap(), "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let hits = hits(&soak.record(), "certificate-expiry");
    assert!(hits[0]["detail"].as_str().unwrap().contains("24 of 24 connections"), "{hits:?}");
}

/// A foreign Deployment runs: plain manifests, an image from an archive, and a container that the kernel kills for its
/// memory.
#[test]
#[ignore = "slow"]
fn nightly_the_end_of_a_container_is_a_fact_with_its_reason() {
    let Some(_machine) = machine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let image = "docker.io/library/shell:1";
    let mut shell = kind::node::image::Image::of_program(image, Path::new("/bin/sh"), 65532).unwrap();
    let sleep = kind::node::image::Image::of_program(image, Path::new("/bin/sleep"), 65532).unwrap();
    let new = sleep.files.into_iter().filter(|file| shell.files.iter().all(|known| known.path != file.path));
    shell.files.extend(new.collect::<Vec<_>>());
    std::fs::write(folder.path().join("shell.tar"), shell.archive().unwrap()).unwrap();
    std::fs::create_dir(folder.path().join("deploy")).unwrap();
    // It doubles its memory each time, until the kernel kills it.
    let script = "/sleep 12; a=aaaaaaaaaaaaaaaa; while :; do a=$a$a; done";
    let deployment = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hungry", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "hungry"}}, "template": {
            "metadata": {"labels": {"app": "hungry"}},
            "spec": {"containers": [{
                "name": "main", "image": "shell:1", "imagePullPolicy": "Never", "args": ["-c", script],
                "resources": {"limits": {"memory": "24Mi"}}
            }]}
        }}
    });
    std::fs::write(folder.path().join("deploy/hungry.yaml"), deployment.to_string()).unwrap();
    let scenario = "apiVersion: longhaul/v1\nname: hungry\ndescription: What becomes of a container that eats too much?\n\
        phases: {warmUp: 2s, steady: 16s, drain: 2s}\ncontrolPlane: {kind: node}\nsubject:\n  deployment: {manifests: [deploy], images: \
        [shell.tar]}\n  witness: {kind: http}\nchurn: {resource: configmaps/v1, population: 5, rate: 1/s, mix: {update: 1}}\n\
        budgets: {crashes: {max: 1}}\n";
    let file = folder.path().join("hungry.yaml");
    std::fs::write(&file, scenario).unwrap();
    let soak = soak(&[file.to_str().unwrap()]);
    let crashes =
        std::fs::read_to_string(soak.record().join("crashes.jsonl")).unwrap_or_else(|_| panic!("{}", soak.story()));
    let first: Value =
        serde_json::from_str(crashes.lines().next().unwrap_or_else(|| panic!("{}", soak.story()))).unwrap();
    assert!(first["process"].as_str().unwrap().starts_with("hungry-"), "{first}");
    assert_eq!(first["status"], "OOMKilled, exit code 137", "{first}");
}

/// Neither an interrupted run nor a killed one leaves a process, a cgroup, a network link or a file of its node.
#[test]
#[ignore = "slow"]
fn an_interrupted_run_and_a_killed_one_leave_nothing_of_their_node() {
    let Some(service) = program("longhaul-service") else { return };
    let Some(_machine) = machine() else { return };
    let before = traces();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let work = tempfile::tempdir().unwrap();
        let clusters = work.path().join("state/longhaul/clusters");
        let temporary = work.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = Command::new(itself());
        command.args(["soak", "--quiet", SMALL, "--control-plane", "node", "--service"]).arg(&service);
        command.arg("--runs").arg(work.path().join("runs")).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", work.path().join("state")).env("TMPDIR", &temporary);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let entry = || {
            let folder = std::fs::read_dir(&clusters).ok()?.flatten().next()?.path();
            serde_json::from_slice::<Value>(&std::fs::read(folder.join("cluster.json")).ok()?).ok()
        };
        until("the node to be Ready", || {
            assert!(child.try_wait().unwrap().is_none(), "the run goes on");
            entry().is_some_and(|entry| !entry["ready"].is_null())
        });
        assert!(!new(&before).is_empty());
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        child.wait().unwrap();
        until("everything to be gone", || new(&before).is_empty() && entry().is_none());
        until("its keys to be gone", || std::fs::read_dir(&temporary).unwrap().count() == 0);
    }
}

/// `cluster status` finds the remains of a killed `cluster up`, and `cluster down` removes them.
#[test]
#[ignore = "slow"]
fn what_a_killed_start_leaves_is_found_and_taken_down() {
    let Some(_machine) = machine() else { return };
    let (before, work) = (traces(), tempfile::tempdir().unwrap());
    let state = work.path().join("state");
    let mut command = longhaul(&["cluster", "up", "--kind", "node"]);
    let mut child = command.env("XDG_STATE_HOME", &state).stdout(Stdio::null()).spawn().unwrap();
    let own = state.join("longhaul/clusters/node/node");
    until("the node's first process", || own.join("plan.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let status = cluster(&state, &["status"]);
    assert_eq!(status.status.code(), Some(1), "{}", text(&status));
    assert!(text(&status).starts_with("node: leftover of process"), "{}", text(&status));
    let down = cluster(&state, &["down"]);
    assert!(down.status.success(), "{}", text(&down));
    until("the link to be gone", || new(&before).is_empty());
    assert_eq!(std::fs::read_dir(state.join("longhaul/clusters")).unwrap().count(), 0);
}
