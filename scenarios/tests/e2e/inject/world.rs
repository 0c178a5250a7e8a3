//! A cluster of one node in the mock API server, an image to inject, and the checks of an injection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::process::{Child, Command};

use super::api::{Api, ask};
pub use super::kubelet::peak_rss_kib;
use super::kubelet::{Files, Kubelet, Tamper};
use crate::support::program;

/// Time limit of an injection.
const PATIENCE: Duration = Duration::from_mins(2);
/// The user name of the injector, by which faults select its requests.
pub const INJECTOR: &str = "injector";
/// The user name of a service that watches at the same time.
pub const WATCHER: &str = "watcher";
/// The name that the injected image gets.
pub const NAME: &str = "team/app:1";
/// The allowed peak memory of the static injected program, for any payload.
pub const SEED_PEAK_KIB_MAX: u64 = 6 * 1000 * 1000 / 1024;

/// Paths of injector and injected program. Prints a message and returns `None` if one is not built. The injected
/// program must be built as for a release, because no other build fits into a `ConfigMap`.
pub struct Programs {
    pub service: PathBuf,
    pub seed: PathBuf,
}

impl Programs {
    pub fn find() -> Option<Self> {
        Some(Self { service: program("longhaul-service")?, seed: seed("longhaul-seed")? })
    }

    /// Finds the programs as [`Self::find`] does, but programs with bugs that can be switched on.
    pub fn planted() -> Option<Self> {
        Some(Self { service: program("longhaul-service-planted")?, seed: seed("longhaul-seed-planted")? })
    }
}

/// The path of the static injected program. `cargo xtask test` builds the injected program if Rust's standard library
/// for its target is installed.
fn seed(name: &str) -> Option<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let built = program("longhaul-seed")?.parent()?.parent()?.join(&target).join("seed").join(name);
    if !built.is_file() {
        println!("skipped: needs the static seed (rustup target add {target})");
        return None;
    }
    Some(built)
}

pub struct World {
    pub server: mock_kube::Server,
    pub api: Arc<Api>,
    pub kubelet: Kubelet,
    pub programs: Programs,
    pub folder: tempfile::TempDir,
    pub image: Image,
    pub chunk_bytes: u32,
}

/// An image in an OCI layout.
pub struct Image {
    pub layout: PathBuf,
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// The digest of the image's index.
    pub digest: String,
}

/// The settings of a test cluster.
pub struct Setup {
    pub programs: Programs,
    /// Size of the image's large layer in bytes.
    pub layer_bytes: usize,
    pub chunk_bytes: u32,
    pub tamper: Arc<Tamper>,
    /// Environment variables for the injected program.
    pub environment: Vec<(String, String)>,
}

impl Setup {
    pub fn new(programs: Programs) -> Self {
        let tamper = Arc::new(|_: &mut Files| ());
        Self { programs, layer_bytes: 200_000, chunk_bytes: 16_384, tamper, environment: Vec::new() }
    }
}

impl World {
    pub async fn new(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = mock_pki::Authority::generate("inject").unwrap();
        let mut config = mock_kube::Config::new();
        config.users = ["node", INJECTOR, WATCHER].map(|name| mock_kube::User::admin(name, name)).to_vec();
        config.crds = vec![kind::manifests::package_crd().unwrap()];
        config.furnished_namespaces = true;
        let server = mock_kube::Server::start(config, &authority).await.unwrap();
        server.faults().target_users([INJECTOR]);
        server.follow_requests(INJECTOR);
        std::fs::write(folder.path().join("kubeconfig"), server.kubeconfig(INJECTOR).unwrap()).unwrap();
        let api = Arc::new(Api::new(&server, &authority, "node"));
        let pods = folder.path().join("pods");
        let kubelet = Kubelet::start(Arc::clone(&api), pods, setup.tamper, setup.environment).await;
        let image = Image::write(&folder.path().join("layout"), setup.layer_bytes);
        Self { server, api, kubelet, programs: setup.programs, folder, image, chunk_bytes: setup.chunk_bytes }
    }

    /// The command `inject VERB`, not yet started.
    pub fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = Command::new(&self.programs.service);
        command.args(["inject", verb, "--kubeconfig"]).arg(self.folder.path().join("kubeconfig")).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// The command `inject apply`, not yet started.
    pub fn apply(&self, more: &[&str]) -> Command {
        let image = format!("oci:{}={NAME}", self.image.layout.display());
        let (chunk, seed) = (self.chunk_bytes.to_string(), self.programs.seed.to_string_lossy().into_owned());
        let arguments = ["--image", &image, "--chunk-bytes", &chunk, "--seed", &seed, "--wait-seconds", "60"];
        self.command("apply", &[&arguments[..], more].concat())
    }

    /// Runs a command to its end. Returns the command's exit code and output.
    pub async fn run(&self, mut command: Command) -> (i32, String) {
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time").unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code().unwrap_or(-1), said)
    }

    pub async fn applied(&self) -> String {
        let (code, said) = self.run(self.apply(&[])).await;
        assert_eq!(code, 0, "{said}");
        said
    }

    pub async fn status(&self) -> (i32, String) {
        self.run(self.command("status", &[])).await
    }

    pub async fn clean(&self) -> (i32, String) {
        self.run(self.clean_command()).await
    }

    pub fn clean_command(&self) -> Command {
        self.command("clean", &[])
    }

    /// The names of the chunks that are in the cluster.
    pub async fn chunks(&self) -> Vec<String> {
        let list = "/api/v1/namespaces/default/configmaps?labelSelector=longhaul.dev/part%3Dpayload";
        self.api.items(list).await.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Starts `inject apply`, waits until this many chunks are written, and kills the process.
    pub async fn killed_after(&self, chunks: usize) {
        let mut tail = self.server.tail();
        let mut child: Child = self.apply(&["--parallel", "1"]).spawn().unwrap();
        let mut written = 0;
        let waiting = async {
            while written < chunks {
                let batch = tail.next_batch(64).await.unwrap();
                written += batch.iter().filter(|entry| entry.commit.name.contains("-payload-")).count();
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("chunks are written");
        child.kill().await.unwrap();
    }

    /// Number of chunks that the injector has sent since the last call.
    pub fn sent(&self) -> usize {
        let (facts, lost) = self.server.take_requests(INJECTOR);
        assert_eq!(lost, 0);
        let is_chunk =
            |fact: &&mock_kube::RequestFact| fact.record.method == "PATCH" && fact.record.path.contains("-payload-");
        facts.iter().filter(is_chunk).count()
    }

    // ---- judges: each returns the mistakes, or nothing
    // ------------------------------------------------------------------

    /// Checks that the injected program serves all injected content, with its bytes, types and digests, and nothing
    /// else.
    pub async fn served(&self) -> Vec<String> {
        let Some(address) = self.kubelet.seen.lock().address else { return vec!["nothing is served".to_owned()] };
        self.image.served_at(address).await
    }

    /// Checks that no object of an injection is left in the cluster.
    pub async fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for resource in ["configmaps", "pods", "services"] {
            let query = "labelSelector=app.kubernetes.io/managed-by%3Dlonghaul-inject";
            for item in self.api.items(&format!("/api/v1/namespaces/default/{resource}?{query}")).await {
                left.push(format!("{resource}/{}", item["metadata"]["name"].as_str().unwrap_or_default()));
            }
        }
        left
    }

    /// Checks that the injected program's memory stayed below its limit.
    pub fn memory(&self) -> Vec<String> {
        let peak = self.kubelet.seen.lock().peak_rss_kib;
        match peak {
            Some(peak) if peak <= SEED_PEAK_KIB_MAX => Vec::new(),
            peak => vec![format!("the seed needed {peak:?} KiB, and {SEED_PEAK_KIB_MAX} are allowed")],
        }
    }
}

impl Image {
    /// Writes an image for two platforms. One of the platforms has a large incompressible layer; both share a small
    /// layer.
    fn write(layout: &Path, layer_bytes: usize) -> Self {
        let folder = layout.join("blobs/sha256");
        std::fs::create_dir_all(&folder).unwrap();
        let mut blobs = BTreeMap::new();
        let mut put = |media_type: &str, bytes: Vec<u8>| {
            let digest = hex::encode(Sha256::digest(&bytes));
            std::fs::write(folder.join(&digest), &bytes).unwrap();
            let descriptor =
                json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len()});
            blobs.insert(digest, bytes);
            descriptor
        };
        let layer_type = "application/vnd.oci.image.layer.v1.tar";
        let shared = put(layer_type, b"shared ".repeat(1_000));
        let mut images = Vec::new();
        for (architecture, bytes) in [("amd64", layer_bytes), ("arm64", 5_000)] {
            let config = json!({"os": "linux", "architecture": architecture}).to_string().into_bytes();
            let config = put("application/vnd.oci.image.config.v1+json", config);
            let layer = put(layer_type, noise(bytes, architecture));
            let media_type = "application/vnd.oci.image.manifest.v1+json";
            let manifest =
                json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [shared, layer]});
            let mut descriptor = put(media_type, manifest.to_string().into_bytes());
            descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
            images.push(descriptor);
        }
        let media_type = "application/vnd.oci.image.index.v1+json";
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": images});
        let top = put(media_type, index.to_string().into_bytes());
        std::fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        std::fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [top]}).to_string()).unwrap();
        let digest = top["digest"].as_str().unwrap().to_owned();
        Self { layout: layout.to_owned(), blobs, digest }
    }

    /// The differences between the content at this address and the injected content.
    pub async fn served_at(&self, address: SocketAddr) -> Vec<String> {
        let mut wrong = Vec::new();
        for (digest, bytes) in &self.blobs {
            let path = format!("/v2/team/app/blobs/sha256:{digest}");
            match ask(address, "GET", &path, None).await {
                Ok(answer) if answer.status() == 200 && answer.body() == bytes => {}
                Ok(answer) => wrong.push(format!("{path}: {} with {} bytes", answer.status(), answer.body().len())),
                Err(error) => wrong.push(format!("{path}: {error}")),
            }
        }
        let index: Value = serde_json::from_slice(&self.blobs[&self.digest["sha256:".len()..]]).unwrap();
        let children = index["manifests"].as_array().unwrap().iter();
        let children =
            children.map(|child| (text(&child["digest"]), text(&child["mediaType"]), text(&child["digest"])));
        let top = [self.digest.clone(), "1".to_owned()];
        let top = top.map(|reference| (reference, text(&index["mediaType"]), self.digest.clone()));
        for (reference, media_type, digest) in children.chain(top) {
            let path = format!("/v2/team/app/manifests/{reference}");
            let Ok(answer) = ask(address, "HEAD", &path, None).await else {
                wrong.push(format!("{path}: no answer"));
                continue;
            };
            let header =
                |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
            let bytes = self.blobs[&digest["sha256:".len()..]].len();
            let told = (header("content-type"), header("docker-content-digest"), header("content-length"));
            if told != (Some(media_type), Some(digest), Some(bytes.to_string())) {
                wrong.push(format!("{path}: {told:?}"));
            }
        }
        wrong
    }
}

/// Incompressible bytes, generated from `seed`.
pub fn noise(bytes: usize, seed: &str) -> Vec<u8> {
    let mut random = seed.bytes().fold(1_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) | 1;
    let step = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 56) as u8
    };
    (0..bytes).map(step).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
