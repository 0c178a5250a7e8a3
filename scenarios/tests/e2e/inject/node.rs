//! A real node: a kubelet mounts the chunks, a container runtime pulls from the seed by digest, and a Pod runs from what was pulled.
//!
//! The node comes from a program that `LONGHAUL_REAL_NODE` names. It is called as `up FOLDER` (starts a cluster of one node and prints its
//! kubeconfig), `pause NAME:TAG` and `pack NAME:TAG FOLDER COMMAND` (write a docker archive), and `down FOLDER`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{Programs, SEED_PEAK_KIB_MAX, noise, peak_rss_kib};

/// Random bytes of the image.
const LAYER_BYTES: usize = 210_000_000;
/// The largest chunks: a kubelet asks for each one, five times a second at most, and that is what most of the time goes to.
const CHUNK_BYTES: &str = "1048576";
/// Longest wait for a Pod.
const PATIENCE: Duration = Duration::from_mins(2);
/// What the image runs: it reads all of its layer and prints how long it is, with a hash.
const PROGRAM: &str = r#"
#include <stdio.h>
int main(void) {
  static unsigned char part[65536];
  unsigned long hash = 14695981039346656037UL, bytes = 0;
  FILE *file = fopen("/noise", "rb");
  if (!file) return 1;
  for (size_t read; (read = fread(part, 1, sizeof part, file)) > 0; bytes += read)
    for (size_t at = 0; at < read; at++) hash = (hash ^ part[at]) * 1099511628211UL;
  printf("%lu %016lx\n", bytes, hash);
  return 0;
}
"#;

/// The node; it ends with this.
struct Node {
    tool: PathBuf,
    folder: tempfile::TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = Command::new(&self.tool).arg("down").arg(self.folder.path().join("node")).output();
    }
}

impl Node {
    fn start(tool: PathBuf) -> Self {
        let node = Self { tool, folder: tempfile::tempdir().unwrap() };
        succeeded(Command::new(&node.tool).arg("up").arg(node.path("node")).stdin(Stdio::null()));
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An archive of an image with `LAYER_BYTES` that cannot be compressed; answers what its program prints.
    fn pack(&self, name: &str, to: &Path) -> String {
        let root = self.path("root");
        std::fs::create_dir(&root).unwrap();
        let bytes = noise(LAYER_BYTES, "node");
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
        let printed = format!("{} {:016x}", bytes.len(), bytes.iter().fold(14_695_981_039_346_656_037, hash));
        std::fs::write(root.join("noise"), bytes).unwrap();
        std::fs::write(self.path("program.c"), PROGRAM).unwrap();
        succeeded(
            Command::new("gcc").args(["-O2", "-static", "-o"]).arg(root.join("program")).arg(self.path("program.c")),
        );
        std::fs::set_permissions(root.join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let archive = std::fs::File::create(to).unwrap();
        let mut pack = Command::new(&self.tool);
        let packed = pack.arg("pack").arg(name).arg(&root).arg("/program").stdout(archive).status().unwrap();
        assert!(packed.success());
        std::fs::remove_dir_all(root).unwrap();
        printed
    }

    fn kubectl(&self, words: &[&str], input: &Value) -> String {
        let file = self.path("input.json");
        std::fs::write(&file, input.to_string()).unwrap();
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.path("node/kubeconfig")).args(words);
        succeeded(command.stdin(std::fs::File::open(file).unwrap()))
    }

    fn phase(&self, pod: &str, wanted: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let phase = self.kubectl(&["get", "pod", pod, "-o", "jsonpath={.status.phase}"], &Value::Null);
            if phase == wanted {
                return;
            }
            let told = || self.kubectl(&["describe", "pod", pod], &Value::Null);
            assert!(Instant::now() < until && phase != "Failed", "{pod} is {phase}: {}", told());
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }

    fn inject(&self, programs: &Programs, verb: &str, words: &[&str]) -> Output {
        let mut command = Command::new(&programs.service);
        command.args(["inject", verb, "--kubeconfig"]).arg(self.path("node/kubeconfig")).args(words);
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

/// The peak of the seed that runs in the node with this folder: its mounts come from there.
fn seed_peak_kib(folder: &str) -> Option<u64> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |id: &u32| {
        let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let contains = |text: &[u8], part: &str| text.windows(part.len()).any(|window| window == part.as_bytes());
        contains(&read("cmdline"), "longhaul-seed") && contains(&read("mountinfo"), folder)
    };
    ids.filter(is_it).find_map(peak_rss_kib)
}

#[test]
#[ignore = "slow"]
fn inject_into_a_real_node() {
    let Some(programs) = Programs::find() else { return };
    let Some(tool) = std::env::var_os("LONGHAUL_REAL_NODE") else {
        println!("skipped: needs real-node (LONGHAUL_REAL_NODE names the program)");
        return;
    };
    let node = Node::start(tool.into());
    let archive = node.path("app.tar");
    let printed = node.pack("team/app:1", &archive);
    // Something must run there already: its image lends the seed a file system.
    node.kubectl(&["create", "-f", "-"], &pod("base", "localhost/pause:1"));
    node.phase("base", "Running");
    let (image, seed) = (format!("docker-archive:{}", archive.display()), programs.seed.to_string_lossy().into_owned());
    let begun = Instant::now();
    let applied = node.inject(&programs, "apply", &["--image", &image, "--seed", &seed, "--chunk-bytes", CHUNK_BYTES]);
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(applied.status.success(), "{said}{}", String::from_utf8_lossy(&applied.stderr));
    println!("{said}served after {:.1} s", begun.elapsed().as_secs_f64());
    let peak = seed_peak_kib(&node.path("node").to_string_lossy());
    assert!(peak.is_some_and(|peak| peak <= SEED_PEAK_KIB_MAX), "the seed needed {peak:?} KiB");
    println!("the seed's peak: {peak:?} KiB");

    // `serves: 127.0.0.1:PORT/team/app@sha256:… (team/app:1)`
    let reference = said.lines().find_map(|line| line.strip_prefix("serves: ")?.split(' ').next()).unwrap();
    let begun = Instant::now();
    node.kubectl(&["create", "-f", "-"], &pod("app", reference));
    node.phase("app", "Succeeded");
    println!("pulled by the kubelet and run in {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(node.kubectl(&["logs", "app"], &Value::Null).trim(), printed);

    let begun = Instant::now();
    let cleaned = node.inject(&programs, "clean", &[]);
    assert!(cleaned.status.success(), "{}", String::from_utf8_lossy(&cleaned.stderr));
    println!("clean in {:.1} s", begun.elapsed().as_secs_f64());
    let query =
        ["get", "configmaps,pods,services", "-A", "-l", "app.kubernetes.io/managed-by=longhaul-inject", "-o", "name"];
    assert_eq!(node.kubectl(&query, &Value::Null), "");
    assert_eq!(seed_peak_kib(&node.path("node").to_string_lossy()), None, "the seed has ended");
}
