//! Both example watchers against the mock API server: whatever happens to their watches, the witness hears it all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mock_faults::{Fault, FaultId};
use mock_kube::{Config, Server, User};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const PATH: &str = "/apis/longhaul.dev/v1alpha1/namespaces/default/packages";
const SUBJECT: &str = "subject";
/// Longer than the watchers' own patience with a silent stream.
const PATIENCE: Duration = Duration::from_secs(45);

/// A world for one watcher: API server, witness, and the watcher itself.
struct World {
    server: Server,
    admin: Client,
    heard: Arc<Mutex<Vec<Value>>>,
    _witness: JoinSet<()>,
    _watcher: Child,
    _directory: tempfile::TempDir,
}

struct Client {
    server: std::net::SocketAddr,
    tls: tokio_rustls::TlsConnector,
}

impl Client {
    async fn send(&self, method: Method, path: &str, kind: &str, body: Value) -> (StatusCode, Value) {
        let stream = TcpStream::connect(self.server).await.unwrap();
        let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
        let stream = self.tls.connect(name, stream).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(connection);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("authorization", "Bearer admin-token").header("content-type", kind);
        let response = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        driver.abort();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn create(&self, name: &str) {
        let body =
            json!({"apiVersion": "longhaul.dev/v1alpha1", "kind": "Package", "metadata": {"name": name}, "spec": {}});
        let (status, answer) = self.send(Method::POST, PATH, "application/json", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    async fn update(&self, name: &str, payload: &str) {
        let body = json!({"spec": {"payload": payload}});
        let path = format!("{PATH}/{name}");
        let (status, answer) = self.send(Method::PATCH, &path, "application/merge-patch+json", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    async fn delete(&self, name: &str) {
        let (status, answer) =
            self.send(Method::DELETE, &format!("{PATH}/{name}"), "application/json", Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// What there is now: uid to resourceVersion.
    async fn truth(&self) -> BTreeMap<String, String> {
        let (_, list) = self.send(Method::GET, PATH, "application/json", Value::Null).await;
        let pair = |item: &Value| (text(&item["metadata"]["uid"]), text(&item["metadata"]["resourceVersion"]));
        list["items"].as_array().unwrap().iter().map(pair).collect()
    }
}

impl World {
    /// Starts everything; none when the watcher's program is absent.
    async fn start(mut watcher: Command) -> Option<Self> {
        let authority = mock_pki::Authority::generate("watcher test").unwrap();
        let config = Config {
            crds: vec![kind::manifests::package_crd().unwrap()],
            users: vec![User::admin("admin", "admin-token"), User::admin(SUBJECT, "subject-token")],
            ..Config::new()
        };
        let server = Server::start(config, &authority).await.unwrap();
        server.faults().target_users([SUBJECT]);
        let tls = mock_pki::client_config(authority.ca_pem(), None, &[]).unwrap();
        let admin = Client { server: server.address(), tls: tls.into() };
        // There before the watcher is, so that its first list has something to find.
        admin.create("early").await;
        let (url, heard, witness) = witness().await;
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("config");
        std::fs::write(&kubeconfig, server.kubeconfig(SUBJECT).unwrap()).unwrap();
        watcher.env("KUBECONFIG", kubeconfig).env("LONGHAUL_WITNESS_URL", url);
        let watcher = match watcher.stderr(Stdio::null()).kill_on_drop(true).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: needs {}", watcher.as_std().get_program().display());
                return None;
            }
            Err(error) => panic!("the watcher cannot be started: {error}"),
        };
        let world = Self { server, admin, heard, _witness: witness, _watcher: watcher, _directory: directory };
        world.until_told().await;
        Some(world)
    }

    /// What the witness was told, folded: uid to resourceVersion.
    async fn told(&self) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        for line in self.heard.lock().await.iter() {
            let uid = text(&line["uid"]);
            match line["change"].as_str().unwrap() {
                "deleted" => assert!(told.remove(&uid).is_some(), "deleted and never added: {line}"),
                "added" => assert!(told.insert(uid, text(&line["resourceVersion"])).is_none(), "added twice: {line}"),
                "modified" => {
                    assert!(told.insert(uid, text(&line["resourceVersion"])).is_some(), "never added: {line}");
                }
                other => panic!("{other}"),
            }
        }
        told
    }

    async fn agrees(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let truth = self.admin.truth().await;
        while self.told().await != truth {
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    async fn until_told(&self) {
        assert!(self.agrees().await, "told {:?}, true is {:?}", self.told().await, self.admin.truth().await);
    }

    /// Changes of every kind.
    async fn churn(&self, prefix: &str) {
        for n in 0..5 {
            self.admin.create(&format!("{prefix}-{n}")).await;
        }
        self.admin.update(&format!("{prefix}-0"), "x").await;
        self.admin.delete(&format!("{prefix}-1")).await;
        // The same name again is another object.
        self.admin.delete(&format!("{prefix}-2")).await;
        self.admin.create(&format!("{prefix}-2")).await;
    }

    fn fault(&self, id: u32, yaml: &str) -> FaultId {
        let fault: Fault = serde_saphyr::from_str(yaml).unwrap();
        self.server.faults().begin(FaultId(id), &fault).unwrap();
        FaultId(id)
    }

    async fn until_watching(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.server.traffic(SUBJECT).watches_open == 0 {
            assert!(Instant::now() < deadline, "no watch is open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn until_hit(&self, id: FaultId) {
        let deadline = Instant::now() + PATIENCE;
        while self.server.faults().hits(id) == 0 {
            assert!(Instant::now() < deadline, "the fault was never hit");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A receiver of JSON lines.
async fn witness() -> (String, Arc<Mutex<Vec<Value>>>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/observations", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = heard.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let lines = lines.clone();
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let lines = lines.clone();
                async move {
                    assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/observations"));
                    let body = request.into_body().collect().await?.to_bytes();
                    let parsed = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                    lines.lock().await.extend(parsed.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::new())))
                }
            });
            // One report at a time is enough for one watcher, and keeps their order.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        }
    });
    (url, heard, tasks)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn rust() -> Command {
    Command::new(env!("CARGO_BIN_EXE_example-watcher"))
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../watcher.py"));
    command
}

/// The whole life of a watcher: list, events, and each kind of trouble.
async fn sees_everything(watcher: Command) {
    let Some(world) = World::start(watcher).await else { return };
    world.churn("calm").await;
    world.until_told().await;
    let first = world.heard.lock().await[0].clone();
    assert_eq!((&first["resource"], &first["name"]), (&"packages.longhaul.dev".into(), &"early".into()));
    assert_eq!((&first["namespace"], &first["change"]), (&"default".into(), &"added".into()));

    let reset = world.fault(1, "{name: watch-reset, at: 0s}");
    world.churn("reset").await;
    world.until_hit(reset).await;
    world.server.faults().end(reset);
    world.until_told().await;

    for (id, form) in [(2, "http"), (3, "stream")] {
        // Cut first, so that the watcher has something to catch up with when its version is too old.
        let gone = world.fault(id, &format!("{{name: watch-410, at: 0s, form: {form}}}"));
        world.churn(form).await;
        world.admin.delete(&format!("{form}-0")).await;
        world.until_told().await;
        world.server.faults().end(gone);
    }

    // The silence falls on open watches; the watcher may just have listed and not have opened its next one.
    world.until_watching().await;
    let silent = world.fault(4, "{name: silent-watch, at: 0s}");
    world.churn("silent").await;
    world.until_hit(silent).await;
    world.until_told().await;
    world.server.faults().end(silent);
    world.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_rust_watcher_sees_everything() {
    sees_everything(rust()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_python_watcher_sees_everything() {
    sees_everything(python()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_bug_that_is_not_compiled_in_is_refused() {
    let mut watcher = rust();
    let output = watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete").output().await.unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this program has no bugs"));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(feature = "planted-bugs")]
#[ignore = "slow"]
async fn a_planted_missed_delete_shows() {
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_example-watcher-planted"));
    watcher.env("LONGHAUL_PLANTED_BUG", "missed-delete");
    let world = World::start(watcher).await.unwrap();
    world.admin.create("gone").await;
    world.until_told().await;
    world.admin.delete("gone").await;
    // Something that it does report, after the deletion: so it has had its chance.
    world.admin.create("after").await;
    let deadline = Instant::now() + PATIENCE;
    while !world.heard.lock().await.iter().any(|line| line["name"] == "after") {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!world.heard.lock().await.iter().any(|line| line["change"] == "deleted"));
}
