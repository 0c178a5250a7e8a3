//! Starts the shipped program as a process, with a memory limit if this machine permits one.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use service_core::wire::{Client, Limits, Origin, Protocol, Trust, client_config};

use crate::support::deadline;

/// The path of the program: `LONGHAUL_SERVICE_BINARY`, else in the folder `LONGHAUL_PROGRAMS`, else cargo's build for
/// tests.
fn binary() -> PathBuf {
    let named = std::env::var_os("LONGHAUL_SERVICE_BINARY").map(PathBuf::from);
    let built = || std::env::var_os("LONGHAUL_PROGRAMS").map(|folder| Path::new(&folder).join("longhaul-service"));
    named.or_else(built).unwrap_or_else(|| env!("CARGO_BIN_EXE_longhaul-service").into())
}

pub struct Process {
    child: Child,
    pub port: u16,
    authority: Vec<u8>,
    group: Option<Group>,
    _folder: tempfile::TempDir,
}

/// The peak of a process' memory in bytes, and how it was measured.
pub struct Peak {
    pub bytes: u64,
    pub of: &'static str,
}

/// A control group of this test with a memory limit; the group is removed on drop.
struct Group {
    folder: PathBuf,
    peak: &'static str,
}

impl Process {
    pub async fn start(config: &str, limit_bytes: u64) -> Self {
        Self::start_as("admission", "admission", config, limit_bytes).await
    }

    /// Starts a process with the role `role`; the test sends its requests to the listener `listener`.
    pub async fn start_as(role: &str, listener: &'static str, config: &str, limit_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.crt"), certified.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), certified.signing_key.serialize_pem()).unwrap();
        let path = folder.path().join("service.yaml");
        let group = Group::new(limit_bytes);
        // The process reads the limit itself if there is one.
        let told = format!("key: tls.key, maxHeldBytes: {}MiB}}", limit_bytes >> 21);
        let config = if group.is_some() { config.to_owned() } else { config.replace("key: tls.key}", &told) };
        std::fs::write(&path, config).unwrap();
        let mut command = if let Some(group) = &group {
            // The process moves itself before it becomes the service, so that its memory counts nowhere else.
            let mut command = Command::new("sh");
            command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(group.folder.join("cgroup.procs"));
            command.arg(binary());
            command
        } else {
            println!("skipped: needs a memory control group of its own (the limit itself)");
            Command::new(binary())
        };
        command.args(["run", "--role", role, "--config"]).arg(&path);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (found, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                let context = &line["context"];
                if context["listener"] == listener {
                    let _ = found.send(context["address"].as_str().unwrap().to_owned());
                }
            }
        });
        let address = tokio::task::spawn_blocking(move || address.recv_timeout(Duration::from_secs(20)));
        let address = address.await.unwrap().unwrap();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        Self { child, port, authority: certified.cert.pem().into_bytes(), group, _folder: folder }
    }

    pub fn client(&self) -> Client {
        let tls = Some(Arc::new(self.tls()));
        let origin = Origin { host: "127.0.0.1".into(), port: self.port, tls, server_name: None };
        Client::new(origin, Protocol::Http1, Limits { open_max: 1000, idle_max: 4 })
    }

    pub fn tls(&self) -> rustls::ClientConfig {
        client_config(Trust::Pem(&self.authority), None).unwrap()
    }

    /// Whether a control group enforces the limit.
    pub fn is_limited(&self) -> bool {
        self.group.is_some()
    }

    /// Ends the process, which must still run; returns the peak of its memory.
    pub fn stop(mut self) -> Peak {
        assert!(self.child.try_wait().unwrap().is_none(), "it was killed");
        let peak = match &self.group {
            Some(group) => Peak { bytes: group.peak_bytes(), of: "of its control group, page cache included" },
            None => Peak { bytes: resident_peak(self.child.id()), of: "resident, without the program itself" },
        };
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        peak
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The peak of the process' resident memory without pages of files. In an unoptimized program, pages of files are half
/// of the limit, and the kernel can take them back.
fn resident_peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let bytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    bytes("VmHWM:") - bytes("RssFile:")
}

impl Group {
    /// A control group with this limit, for cgroup v1 or v2; `None` if no group can be created.
    fn new(limit_bytes: u64) -> Option<Self> {
        let name = format!("longhaul-test-{}-{}", std::process::id(), rand::random::<u32>());
        let (root, limit, peak) = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ]
        .into_iter()
        .find(|(root, ..)| Path::new(root).join("cgroup.procs").exists())?;
        let folder = Path::new(root).join(name);
        std::fs::create_dir(&folder).ok()?;
        let group = Self { folder, peak };
        std::fs::write(group.folder.join(limit), limit_bytes.to_string()).ok()?;
        group.folder.join(peak).exists().then_some(group)
    }

    fn peak_bytes(&self) -> u64 {
        std::fs::read_to_string(self.folder.join(self.peak)).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group whose last process has just ended takes a moment to be empty.
        let patience = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.folder).is_err() && Instant::now() < patience {
            std::thread::yield_now();
        }
    }
}

/// Posts a review; returns status and body of the answer.
pub async fn post(client: &Client, review: &Value) -> (u16, Bytes) {
    let request = Request::post("/mutate?timeout=10s").header("content-type", "application/json");
    let request = request.body(Bytes::from(review.to_string())).unwrap();
    let answer = client.fetch(request, 4 << 20, deadline()).await.unwrap();
    (answer.status().as_u16(), answer.into_body())
}

/// Posts a review; returns the response in the answered review.
pub async fn ask(client: &Client, review: &Value) -> Value {
    let (status, body) = post(client, review).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice::<Value>(&body).unwrap()["response"].take()
}
