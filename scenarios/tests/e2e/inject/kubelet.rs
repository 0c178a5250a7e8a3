//! Simulates the kubelet of one node: mounts `ConfigMaps`, starts the injected program as a process, and reports its
//! status to the API server.
//!
//! Files are written as by kubelet's atomic writer (`pkg/volume/util/atomic_writer.go`). The mounted files are in a
//! folder whose name is a time, the link `..data` leads to this folder, and each key is a link through `..data`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use hyper::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::api::{Api, ask};

/// Interval of the kubelet's requests for Pods.
const LOOK: Duration = Duration::from_millis(50);
pub const NODE: &str = "node";
/// The container image that the node already has.
pub const IMAGE: &str = "registry.example/base:1";

/// The files of one volume.
pub type Files = BTreeMap<String, Vec<u8>>;
/// A function that changes the files of a volume before they are mounted.
pub type Tamper = dyn Fn(&mut Files) + Send + Sync;

/// The state of the simulated kubelet that tests can read.
#[derive(Default)]
pub struct KubeletState {
    /// The injected program's address, as long as the program serves.
    pub address: Option<SocketAddr>,
    /// The peak memory of the last injected program that served, as the kernel counts it (`VmHWM`).
    pub peak_rss_kib: Option<u64>,
    /// Exit code and last output of the last injected program that has ended.
    pub ended: Option<(i32, String)>,
    /// Number of injected programs started so far.
    pub started: u32,
}

/// A running simulated kubelet. Dropping the value ends the kubelet and the injected program.
pub struct Kubelet {
    pub seen: Arc<Mutex<KubeletState>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Running {
    child: Child,
    words: Arc<Mutex<Vec<String>>>,
    folder: PathBuf,
    ready: bool,
}

impl Kubelet {
    /// Registers the node with one Pod that already runs, and starts to handle the node's Pods.
    pub async fn start(
        api: Arc<Api>,
        folder: PathBuf,
        tamper: Arc<Tamper>,
        environment: Vec<(String, String)>,
    ) -> Self {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
        api.create("/api/v1/nodes", &node).await;
        let taints = json!({"spec": {"taints": []}});
        assert!(api.merge(&format!("/api/v1/nodes/{NODE}"), &taints).await);
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let status = json!({"status": {
            "allocatable": {"cpu": "2", "memory": "2Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"operatingSystem": "linux", "architecture": architecture},
        }});
        assert!(api.merge(&format!("/api/v1/nodes/{NODE}/status"), &status).await);
        let base = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "base", "namespace": "default"},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": IMAGE}]},
        });
        api.create("/api/v1/namespaces/default/pods", &base).await;
        let running = json!({"status": {"phase": "Running", "containerStatuses": [
            {"name": "c", "image": IMAGE, "imageID": "sha256:0", "ready": true, "restartCount": 0, "state": {"running": {}}},
        ]}});
        assert!(api.merge("/api/v1/namespaces/default/pods/base/status", &running).await);
        let seen = Arc::new(Mutex::new(KubeletState::default()));
        let work = Work { api, folder, tamper, environment, seen: Arc::clone(&seen), count: 0 };
        Self { seen, task: tokio::spawn(work.forever()) }
    }
}

struct Work {
    api: Arc<Api>,
    folder: PathBuf,
    tamper: Arc<Tamper>,
    environment: Vec<(String, String)>,
    seen: Arc<Mutex<KubeletState>>,
    count: u32,
}

impl Work {
    async fn forever(mut self) {
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            ticks.tick().await;
            let query = format!("fieldSelector=spec.nodeName%3D{NODE}&labelSelector=longhaul.dev/part%3Dseed");
            let pods = self.api.items(&format!("/api/v1/pods?{query}")).await;
            let uids: Vec<String> = pods.iter().map(|pod| text(&pod["metadata"]["uid"])).collect();
            running.retain(|uid, _| uids.contains(uid));
            for pod in &pods {
                let uid = text(&pod["metadata"]["uid"]);
                if pod["metadata"]["deletionTimestamp"].is_string() {
                    self.end(pod, running.remove(&uid)).await;
                } else if let Some(one) = running.get_mut(&uid) {
                    self.look(pod, one).await;
                } else if !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
                    && let Some(one) = self.begin(pod).await
                {
                    running.insert(uid, one);
                }
            }
        }
    }

    /// Mounts the volumes of a Pod and starts its program. Returns `None` if a mount failed; the kubelet tries again at
    /// its next request for Pods.
    async fn begin(&mut self, pod: &Value) -> Option<Running> {
        self.count += 1;
        let folder = self.folder.join(format!("pod-{}", self.count));
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
        for volume in pod["spec"]["volumes"].as_array().unwrap() {
            let Some(mount) = mounts.iter().find(|mount| mount["name"] == volume["name"]) else { continue };
            let at = folder.join(text(&mount["mountPath"]).trim_start_matches('/'));
            std::fs::create_dir_all(&at).unwrap();
            let sources = match (volume.get("configMap"), volume.get("projected")) {
                (Some(source), _) => vec![source.clone()],
                (_, Some(projected)) => {
                    projected["sources"].as_array().unwrap().iter().map(|source| source["configMap"].clone()).collect()
                }
                _ => continue,
            };
            let mut files = BTreeMap::new();
            for source in &sources {
                let name = text(&source["name"]);
                let (status, object) = self.api.get(&format!("/api/v1/namespaces/default/configmaps/{name}")).await;
                if status != 200 {
                    self.event(
                        pod,
                        "FailedMount",
                        &format!("MountVolume.SetUp failed: configmap \"{name}\" not found"),
                    )
                    .await;
                    return None;
                }
                files.extend(of_object(&object));
            }
            (self.tamper)(&mut files);
            let mode = volume.pointer("/configMap/defaultMode").and_then(Value::as_u64).unwrap_or(0o644);
            mounted(&at, &files, u32::try_from(mode).unwrap());
        }
        Some(self.run(pod, folder).await)
    }

    async fn run(&mut self, pod: &Value, folder: PathBuf) -> Running {
        let container = &pod["spec"]["containers"][0];
        let arguments: Vec<String> = container["command"].as_array().unwrap().iter().map(text).collect();
        // A path in the container lies below this folder, and several tests cannot share one port.
        let placed = |argument: &String| match argument.as_str() {
            path if path.starts_with("/longhaul/") => folder.join(&path[1..]).to_string_lossy().into_owned(),
            address if address.starts_with("[::]:") => "127.0.0.1:0".to_owned(),
            other => other.to_owned(),
        };
        let arguments: Vec<String> = arguments.iter().map(placed).collect();
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let words = Arc::new(Mutex::new(Vec::new()));
        let (mut lines, said) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&words));
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                said.lock().push(line);
            }
        });
        self.seen.lock().started += 1;
        self.status(pod, json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]})).await;
        Running { child, words, folder, ready: false }
    }

    async fn look(&self, pod: &Value, one: &mut Running) {
        if let Ok(Some(status)) = one.child.try_wait() {
            let code = status.code().unwrap_or(-1);
            let message = one.words.lock().join("\n");
            if self.seen.lock().ended.as_ref() != Some(&(code, message.clone())) || pod["status"]["phase"] != "Failed" {
                self.seen.lock().ended = Some((code, message.clone()));
                self.seen.lock().address = None;
                let reason = if code == 0 { "Completed" } else { "Error" };
                let state = json!({"terminated": {"exitCode": code, "reason": reason, "message": message}});
                self.container(pod, "Failed", false, state).await;
            }
            return;
        }
        if one.ready {
            return;
        }
        let address =
            one.words.lock().iter().find_map(|line| line.split_once("serving on ")?.1.parse::<SocketAddr>().ok());
        let Some(address) = address else { return };
        if ask(address, "GET", "/v2/", None).await.is_ok_and(|answer| answer.status() == 200) {
            one.ready = true;
            {
                let mut seen = self.seen.lock();
                seen.address = Some(address);
                seen.peak_rss_kib = one.child.id().and_then(peak_rss_kib);
            }
            self.container(pod, "Running", true, json!({"running": {}})).await;
        }
    }

    /// Ends the injected program as a kubelet does: SIGTERM, the grace period, and then the deletion of the Pod.
    async fn end(&self, pod: &Value, one: Option<Running>) {
        if let Some(mut one) = one {
            if let Some(id) =
                one.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            }
            let status = tokio::time::timeout(Duration::from_secs(20), one.child.wait()).await;
            let code = status.ok().and_then(Result::ok).and_then(|status| status.code()).unwrap_or(-1);
            let mut seen = self.seen.lock();
            seen.ended = Some((code, one.words.lock().join("\n")));
            seen.address = None;
            let _ = std::fs::remove_dir_all(&one.folder);
        }
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let now = json!({"gracePeriodSeconds": 0});
        self.api.call(Method::DELETE, &format!("/api/v1/namespaces/{namespace}/pods/{name}"), Some(&now)).await;
    }

    async fn container(&self, pod: &Value, phase: &str, ready: bool, state: Value) {
        let image = text(&pod["spec"]["containers"][0]["image"]);
        let status = json!({
            "phase": phase,
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            "containerStatuses": [{"name": "seed", "image": image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}],
        });
        self.status(pod, status).await;
    }

    async fn status(&self, pod: &Value, status: Value) {
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        self.api.merge(&format!("/api/v1/namespaces/{namespace}/pods/{name}/status"), &json!({"status": status})).await;
    }

    async fn event(&self, pod: &Value, reason: &str, message: &str) {
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": "kubelet-", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
            "reason": reason, "message": message, "type": "Warning", "source": {"component": "kubelet"},
        });
        self.api.create("/api/v1/namespaces/default/events", &event).await;
    }
}

fn of_object(object: &Value) -> Files {
    let texts = object["data"].as_object().into_iter().flatten();
    let texts = texts.map(|(key, value)| (key.clone(), text(value).into_bytes()));
    let decode = |value: &Value| base64::engine::general_purpose::STANDARD.decode(text(value)).unwrap();
    let binaries = object["binaryData"].as_object().into_iter().flatten();
    texts.chain(binaries.map(|(key, value)| (key.clone(), decode(value)))).collect()
}

/// Writes files as a kubelet's atomic writer does.
fn mounted(at: &Path, files: &Files, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let version = "..2024_01_01_00_00_00.000000001";
    std::fs::create_dir(at.join(version)).unwrap();
    for (key, bytes) in files {
        let path = at.join(version).join(key);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink(version, at.join("..data_tmp")).unwrap();
    std::fs::rename(at.join("..data_tmp"), at.join("..data")).unwrap();
    for key in files.keys() {
        symlink(Path::new("..data").join(key), at.join(key)).unwrap();
    }
}

/// The peak memory of a process (`VmHWM`).
pub fn peak_rss_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
