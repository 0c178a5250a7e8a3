//! Tests an injection on a real node. A kubelet mounts the chunks, a container runtime pulls from the injected program
//! by digest, and a Pod runs the pulled image. A webhook must allow the Pods of the injected image.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use kind::node::image::{File, Image};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::world::{Programs, SEED_PEAK_KIB_MAX, noise, peak_rss_kib};
use crate::node::{Machine, machine};
use crate::support::longhaul;

/// Number of random bytes in the image.
const LAYER_BYTES: usize = 210_000_000;
/// The chunk size in bytes, the largest that is possible. A kubelet requests at most five chunks a second, and these
/// requests take most of the injection's time.
const CHUNK_BYTES: &str = "1048576";
const PATIENCE: Duration = Duration::from_mins(2);
/// The program in the image, which reads the whole layer and prints its digest.
const PROGRAM: &str = "/usr/bin/sha256sum";
/// The namespace whose Pods the webhook reviews.
const WATCHED: &str = "watched";

/// A node, and a webhook on the same machine, which both end on drop.
struct Node<'a> {
    machine: &'a Machine,
    folder: tempfile::TempDir,
    webhook: Option<Child>,
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        if let Some(webhook) = &mut self.webhook {
            let _ = (webhook.kill(), webhook.wait());
        }
        let _ = self.cluster(&["down"]).output();
    }
}

impl<'a> Node<'a> {
    fn start(machine: &'a Machine) -> Self {
        let node = Self { machine, folder: tempfile::tempdir().unwrap(), webhook: None };
        succeeded(&mut node.cluster(&["up", "--kind", "node"]));
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cluster(&self, words: &[&str]) -> Command {
        let mut command = longhaul(&["cluster"]);
        command.args(words).env("XDG_STATE_HOME", self.path("state")).stdin(Stdio::null());
        command
    }

    fn kubeconfig(&self) -> PathBuf {
        self.path("state/longhaul/clusters/node/kubeconfig")
    }

    /// The machine's address for the node: the first address of a network block in which the API server has the second
    /// address.
    fn near(&self) -> Ipv4Addr {
        let text = std::fs::read_to_string(self.kubeconfig()).unwrap();
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server: ")?.split("://").nth(1)).unwrap();
        let address: Ipv4Addr = server.trim_matches('"').split(':').next().unwrap().parse().unwrap();
        let [a, b, c, _] = address.octets();
        Ipv4Addr::new(a, b, c, 1)
    }

    /// Writes an archive of an image with `LAYER_BYTES` of incompressible data. Returns the output that the image's
    /// program must print.
    fn pack(name: &str, to: &Path) -> String {
        let bytes = noise(LAYER_BYTES, "node");
        let digest = hex::encode(Sha256::digest(&bytes));
        let mut image = Image::of_program(name, Path::new(PROGRAM), 65532).unwrap();
        image.files.push(File { path: "noise".to_owned(), bytes, executable: false });
        image.entrypoint.push("/noise".to_owned());
        std::fs::write(to, image.archive().unwrap()).unwrap();
        digest
    }

    fn kubectl(&self, words: &[&str], input: &Value) -> String {
        let file = self.path("input.json");
        std::fs::write(&file, input.to_string()).unwrap();
        let mut command = Command::new(self.machine.assets.join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(words).env("HOME", self.folder.path());
        succeeded(command.stdin(std::fs::File::open(file).unwrap()))
    }

    fn phase(&self, namespace: &str, pod: &str, wanted: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let query = ["get", "pod", pod, "-n", namespace, "-o", "jsonpath={.status.phase}"];
            let phase = self.kubectl(&query, &Value::Null);
            if phase == wanted {
                return;
            }
            let told = || self.kubectl(&["describe", "pod", pod, "-n", namespace], &Value::Null);
            assert!(Instant::now() < until && phase != "Failed", "{pod} is {phase}: {}", told());
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }

    /// Runs the service as a webhook on this machine, for Pods of namespaces with the service's label. No other webhook
    /// is registered, and the API server refuses requests that the service does not answer.
    fn watch_over(&mut self, service: &Path) {
        let near = self.near();
        let authority = mock_pki::Authority::generate("test").unwrap();
        let pair = authority.server(&[&near.to_string()]).unwrap();
        let free = || std::net::TcpListener::bind((near, 0)).unwrap().local_addr().unwrap();
        let (listen, health) = (free(), free());
        let (certificate, key) = (self.path("tls.crt"), self.path("tls.key"));
        std::fs::write(&certificate, pair.certificate_pem).unwrap();
        std::fs::write(&key, pair.key_pem).unwrap();
        let config = json!({
            "admission": {"listen": listen.to_string(), "certificate": certificate, "key": key},
            "health": {"listen": health.to_string()}
        });
        let file = self.path("service.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new(service);
        command.args(["run", "--role", "admission", "--config"]).arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        self.webhook = Some(command.stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(listen).is_err() {
            assert!(Instant::now() < until, "the webhook listens");
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let ca = base64::engine::general_purpose::STANDARD.encode(authority.ca_pem());
        let webhook = kind::manifests::all().into_iter().find(|(file, _)| *file == "webhook.yaml").unwrap();
        let mut webhook = kind::manifests::objects(webhook.0, webhook.1).unwrap().remove(0);
        webhook["webhooks"][0]["clientConfig"] = json!({"url": format!("https://{listen}/mutate"), "caBundle": ca});
        webhook["webhooks"][0]["failurePolicy"] = json!("Fail");
        self.kubectl(&["create", "-f", "-"], &webhook);
        let labels = webhook["webhooks"][0]["namespaceSelector"]["matchLabels"].clone();
        let metadata = json!({"name": WATCHED, "labels": labels});
        self.kubectl(&["create", "-f", "-"], &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        let until = Instant::now() + Duration::from_secs(30);
        while self.kubectl(&["get", "serviceaccounts", "-n", WATCHED, "-o", "name"], &Value::Null).is_empty() {
            assert!(Instant::now() < until, "the namespace has its account");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    fn inject(&self, programs: &Programs, verb: &str, words: &[&str]) -> Output {
        let mut command = Command::new(&programs.service);
        command.args(["inject", verb, "--kubeconfig"]).arg(self.kubeconfig()).args(words);
        command.stdin(Stdio::null()).output().unwrap()
    }
}

fn succeeded(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pod(name: &str, image: &str) -> Value {
    let container = json!({"name": "c", "image": image, "imagePullPolicy": "IfNotPresent"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container]}})
}

/// The peak memory of the injected program in its Pod. Only one node runs at a time, so the only process with this
/// program's name below `/kubepods/` is found.
fn seed_peak_kib() -> Option<u64> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |id: &u32| {
        let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let contains = |text: &[u8], part: &str| text.windows(part.len()).any(|window| window == part.as_bytes());
        contains(&read("cmdline"), "longhaul-seed") && contains(&read("cgroup"), "/kubepods/")
    };
    ids.filter(is_it).find_map(peak_rss_kib)
}

#[test]
#[ignore = "slow: a node, and an image of 200 MB that travels in ConfigMaps"]
fn nightly_inject_node() {
    let Some(programs) = Programs::find() else { return };
    let Some(machine) = machine() else { return };
    if !machine.assets.join("kubectl").is_file() {
        println!("skipped: needs kubectl in KUBEBUILDER_ASSETS");
        return;
    }
    let mut node = Node::start(&machine);
    node.watch_over(&programs.service);
    let archive = node.path("app.tar");
    let printed = Node::pack("docker.io/team/app:1", &archive);
    // A Pod must run there already: its image lends the seed a file system.
    node.kubectl(&["create", "-f", "-"], &pod("base", "localhost/longhaul-pause:1"));
    node.phase("default", "base", "Running");
    let (image, seed) = (format!("docker-archive:{}", archive.display()), programs.seed.to_string_lossy().into_owned());
    let begun = Instant::now();
    let applied = node.inject(&programs, "apply", &["--image", &image, "--seed", &seed, "--chunk-bytes", CHUNK_BYTES]);
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(applied.status.success(), "{said}{}", String::from_utf8_lossy(&applied.stderr));
    println!("{said}served after {:.1} s", begun.elapsed().as_secs_f64());
    let peak = seed_peak_kib();
    assert!(peak.is_some_and(|peak| peak <= SEED_PEAK_KIB_MAX), "the seed needed {peak:?} KiB");
    println!("the seed's peak: {peak:?} KiB");

    // The line has the form `serves: 127.0.0.1:PORT/team/app@sha256:… (team/app:1)`.
    let reference = said.lines().find_map(|line| line.strip_prefix("serves: ")?.split(' ').next()).unwrap();
    let begun = Instant::now();
    node.kubectl(&["create", "-n", WATCHED, "-f", "-"], &pod("app", reference));
    node.phase(WATCHED, "app", "Succeeded");
    println!("let in by the webhook, pulled by the kubelet and run in {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(node.kubectl(&["logs", "app", "-n", WATCHED], &Value::Null).split(' ').next(), Some(printed.as_str()));
    let image = ["get", "pod", "app", "-n", WATCHED, "-o", "jsonpath={.spec.containers[0].image}"];
    assert_eq!(node.kubectl(&image, &Value::Null), reference, "what has a digest is left as it is");

    let begun = Instant::now();
    let cleaned = node.inject(&programs, "clean", &[]);
    assert!(cleaned.status.success(), "{}", String::from_utf8_lossy(&cleaned.stderr));
    println!("clean in {:.1} s", begun.elapsed().as_secs_f64());
    let query =
        ["get", "configmaps,pods,services", "-A", "-l", "app.kubernetes.io/managed-by=longhaul-inject", "-o", "name"];
    assert_eq!(node.kubectl(&query, &Value::Null), "");
    assert_eq!(seed_peak_kib(), None, "the seed has ended");
}
