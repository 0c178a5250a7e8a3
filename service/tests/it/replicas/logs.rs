//! Tests of the log of the role `replicas`, in both formats: lines about the watch, TLS and each change, with event
//! names from the closed list.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use service::roles::EVENTS;
use service_core::logs::names;

use super::world::{BINARY, Caller, certificates, replicas_path, section};
use crate::support::api::Fault;
use crate::support::deployments::Deployments;
use crate::support::{PATIENCE, kubeconfig};

/// The service as a process whose standard error is a file.
struct Process {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Process {
    async fn start(api: &Deployments, format: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates(folder.path());
        kubeconfig(&folder.path().join("kube.yaml"), api.address());
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = section(", allow: {scale: [\"spiffe://longhaul.dev/client/client\"]}")
            .replace("127.0.0.1:0", &format!("127.0.0.1:{port}"))
            + &format!(
                "kubernetes: {{kubeconfig: kube.yaml}}\nlog: {{format: {format}, level: debug}}\nshutdown: {{drain: 50ms}}\n"
            );
        std::fs::write(folder.path().join("service.yaml"), text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(BINARY)
            .args(["run", "--role", "replicas", "--config"])
            .arg(folder.path().join("service.yaml"))
            .env_remove("LONGHAUL_PLANTED_BUG")
            .env_remove("LONGHAUL_WITNESS_URL")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let process = Self { child, folder, port };
        process.says("edge.served").await;
        process
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    async fn says(&self, text: &str) {
        let waiting = async {
            while !self.log().contains(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never said {text}: {}", self.log()));
    }

    fn tls(&self, name: Option<&str>) -> rustls::ClientConfig {
        let file = |name: String| self.folder.path().join(name);
        let identity =
            name.map(|name| super::world::identity(&file(format!("{name}.crt")), &file(format!("{name}.key"))));
        let authority = std::fs::read(file("ca.crt".into())).unwrap();
        service_core::wire::client_config(service_core::wire::Trust::Pem(&authority), identity).unwrap()
    }

    async fn caller(&self, name: &str) -> Caller {
        Caller::connect(([127, 0, 0, 1], self.port).into(), self.tls(Some(name))).await.unwrap()
    }

    async fn refused(&self, name: Option<&str>) {
        if let Ok(caller) = Caller::connect(([127, 0, 0, 1], self.port).into(), self.tls(name)).await {
            assert!(caller.try_call("GET", "/api/v1/health", None, &[]).await.is_err());
        }
    }

    fn end(mut self) -> String {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert!(self.child.wait().unwrap().success());
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a service so that every kind of event is logged; returns the log, and texts that it must not contain.
async fn life(format: &str) -> (String, Vec<String>) {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    api.world.lock().watch_faults.push_back(Fault::Status(500, None));
    let process = Process::start(&api, format).await;
    process.says("watch.listed").await;
    let client = process.caller("client").await;
    let path = replicas_path("team/web");
    let with_id = [("x-request-id", "my-call")];
    assert_eq!(client.call("PUT", &path, Some(r#"{"replicaCount": 5}"#), &with_id).await.code, 200);
    let reader = process.caller("reader").await;
    assert_eq!(reader.put(&path, r#"{"replicaCount": 9}"#).await.code, 403);
    let absent = replicas_path("team/absent");
    assert_eq!(client.put(&absent, r#"{"replicaCount": 9}"#).await.code, 404);
    for name in [None, Some("revoked"), Some("expired"), Some("other"), Some("wrong-purpose")] {
        process.refused(name).await;
    }
    process.says("watch.changed").await;
    process.says("purpose").await;
    let secrets = secrets(process.folder.path());
    (process.end(), secrets)
}

/// All lines of the private keys in a folder, and the token of the kubeconfig: texts that no log may contain.
fn secrets(folder: &Path) -> Vec<String> {
    let mut secrets = vec!["secret".to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "key") {
            let text = std::fs::read_to_string(path).unwrap();
            secrets.extend(text.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned));
        }
    }
    secrets
}

fn keys(event: &str) -> BTreeSet<&'static str> {
    let (_, keys) =
        EVENTS.iter().copied().flatten().find(|(name, _)| *name == event).unwrap_or_else(|| panic!("unknown: {event}"));
    keys.iter().copied().collect()
}

/// Every line is one JSON object with the prescribed keys, a listed event name and only the fields of that event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_a_life_fits_the_schema() {
    let (log, secrets) = life("json").await;
    let mut seen = BTreeSet::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let object = line.as_object().unwrap();
        let top: BTreeSet<_> = object.keys().map(String::as_str).collect();
        assert_eq!(top, BTreeSet::from(["context", "event", "message", "severity", "timestamp"]), "{line}");
        assert!(["error", "warning", "info", "debug"].contains(&line["severity"].as_str().unwrap()), "{line}");
        let event = line["event"].as_str().unwrap();
        if event != names::LIBRARY {
            let said: BTreeSet<_> = line["context"].as_object().unwrap().keys().map(String::as_str).collect();
            let more: Vec<_> = said.iter().filter(|key| !keys(event).contains(**key)).collect();
            assert!(more.is_empty(), "{event} says {more:?}");
        }
        seen.insert(event.to_owned());
    }
    for event in [
        "edge.served",
        "tls.accepted",
        "tls.refused",
        "audit.write",
        "watch.listed",
        "watch.failed",
        "watch.changed",
        "process.stopped",
    ] {
        assert!(seen.contains(event), "{event} was never said: {seen:?}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "a secret is in the log");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_tells_of_the_watch_and_of_clients() {
    let (log, secrets) = life("text").await;
    for line in log.lines() {
        let (priority, rest) =
            line.strip_prefix('<').and_then(|line| line.split_once(">1 ")).unwrap_or_else(|| panic!("{line}"));
        assert!(["27", "28", "30", "31", "110"].contains(&priority), "{line}");
        let fields: Vec<_> = rest.splitn(6, ' ').collect();
        assert!(fields[0].ends_with('Z') && fields[2] == "longhaul-service", "{line}");
        assert!(names::is_known(EVENTS, fields[4]), "{line}");
    }
    let line = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    // The informer: lists, changes, connections.
    assert!(line(&["watch.listed", "reason=\"start\"", "objects=\"1\"", "resource=\"deployments.apps\""]), "{log}");
    assert!(line(&["watch.changed", "change=\"modified\"", "object=\"team/web\""]), "{log}");
    assert!(line(&["watch.failed", "500"]), "{log}");
    assert!(line(&["watch.opened"]), "{log}");
    // Clients: accepted ones, and refused ones with the reason.
    assert!(line(&["tls.accepted", "peer=\"spiffe://longhaul.dev/client/client\"", "listener=\"replicas\""]), "{log}");
    for reason in ["no-certificate", "revoked", "expired", "unknown-issuer", "purpose"] {
        assert!(line(&["tls.refused", &format!("reason=\"{reason}\"")]), "{reason}: {log}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "a secret is in the log");
    }
}

/// A write, a forbidden write and a failed write each have one log line with caller and change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_write_has_a_line_that_says_who() {
    let (log, _) = life("json").await;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let audit: Vec<Value> =
        lines.filter(|line| line["event"] == "audit.write").map(|mut line| line["context"].take()).collect();
    assert_eq!(audit.len(), 3, "{audit:#?}");
    let done = &audit[0];
    assert_eq!(
        (&done["peer"], &done["request_id"]),
        (&"spiffe://longhaul.dev/client/client".into(), &"my-call".into())
    );
    assert_eq!((&done["before"], &done["after"], &done["status"]), (&"3".into(), &"5".into(), &200.into()));
    assert_eq!((&done["namespace"], &done["name"], &done["verb"]), (&"team".into(), &"web".into(), &"scale".into()));
    assert!(done["revision"].is_string() && done["address"] == "127.0.0.1" && done["dry_run"] == false, "{done}");
    assert_eq!((&audit[1]["peer"], &audit[1]["status"]), (&"spiffe://longhaul.dev/client/reader".into(), &403.into()));
    assert_eq!((&audit[2]["status"], &audit[2]["name"]), (&404.into(), &"absent".into()));
}

/// A client that connects again and again without a certificate cannot fill a disk with log lines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_do_not_fill_the_log() {
    let api = Deployments::start().await;
    let process = Process::start(&api, "json").await;
    for _ in 0..300 {
        process.refused(None).await;
    }
    let lines = process.log().lines().filter(|line| line.contains("tls.refused")).count();
    assert!((100..300).contains(&lines), "{lines}");
    process.end();
}
