//! A world for one client: API server, witness, and the client itself. The tests of the example watcher use it too.

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
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

const PATH: &str = "/apis/longhaul.dev/v1alpha1/namespaces/default/packages";
pub const SUBJECT: &str = "subject";
/// Longer than any of the clients' clocks.
const PATIENCE: Duration = Duration::from_secs(45);

pub struct World {
    pub server: Server,
    pub admin: Client,
    pub heard: Arc<Mutex<Vec<Value>>>,
    pub client: Child,
    _witness: JoinSet<()>,
    _directory: tempfile::TempDir,
}

pub struct Client {
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

    pub async fn create(&self, name: &str) {
        let metadata = json!({"name": name});
        let body = json!({"apiVersion": "longhaul.dev/v1alpha1", "kind": "Package", "metadata": metadata, "spec": {}});
        let (status, answer) = self.send(Method::POST, PATH, "application/json", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    pub async fn update(&self, name: &str, payload: &str) {
        let body = json!({"spec": {"payload": payload}});
        let path = format!("{PATH}/{name}");
        let (status, answer) = self.send(Method::PATCH, &path, "application/merge-patch+json", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    pub async fn delete(&self, name: &str) {
        let path = format!("{PATH}/{name}");
        let (status, answer) = self.send(Method::DELETE, &path, "application/json", Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    pub async fn object(&self, name: &str) -> Value {
        self.send(Method::GET, &format!("{PATH}/{name}"), "application/json", Value::Null).await.1
    }

    /// What there is now: uid to resourceVersion.
    async fn truth(&self) -> BTreeMap<String, String> {
        let (_, list) = self.send(Method::GET, PATH, "application/json", Value::Null).await;
        let pair = |item: &Value| (text(&item["metadata"]["uid"]), text(&item["metadata"]["resourceVersion"]));
        list["items"].as_array().unwrap().iter().map(pair).collect()
    }
}

impl World {
    /// Starts everything, and waits until the client told of the object that there was before it; none where its program is absent.
    pub async fn start(mut client: Command) -> Option<Self> {
        let authority = mock_pki::Authority::generate("subject test").unwrap();
        let config = Config {
            crds: vec![kind::manifests::package_crd().unwrap()],
            users: vec![User::admin("admin", "admin-token"), User::admin(SUBJECT, "subject-token")],
            bookmarks_every: Duration::from_secs(1),
            ..Config::new()
        };
        let server = Server::start(config, &authority).await.unwrap();
        server.faults().target_users([SUBJECT]);
        let tls = mock_pki::client_config(authority.ca_pem(), None, &[]).unwrap();
        let admin = Client { server: server.address(), tls: tls.into() };
        admin.create("early").await;
        let (url, heard, witness) = witness(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("config");
        std::fs::write(&kubeconfig, server.kubeconfig(SUBJECT).unwrap()).unwrap();
        client.env("KUBECONFIG", kubeconfig).env("LONGHAUL_WITNESS_URL", url);
        client.env_remove("LONGHAUL_WATCH").env_remove("LONGHAUL_NAMESPACE");
        let client = match client.stdin(Stdio::null()).kill_on_drop(true).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: needs {}", client.as_std().get_program().display());
                return None;
            }
            Err(error) => panic!("the client cannot be started: {error}"),
        };
        let world = Self { server, admin, heard, client, _witness: witness, _directory: directory };
        world.until_told().await;
        Some(world)
    }

    /// What the witness was told, folded: uid to resourceVersion.
    fn told(&self) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        for line in self.heard.lock().iter() {
            let uid = text(&line["uid"]);
            match line["change"].as_str().unwrap() {
                "deleted" => drop(told.remove(&uid)),
                "added" => assert!(told.insert(uid, text(&line["resourceVersion"])).is_none(), "added twice: {line}"),
                "modified" => {
                    assert!(told.insert(uid, text(&line["resourceVersion"])).is_some(), "never added: {line}");
                }
                other => panic!("{other}"),
            }
        }
        told
    }

    /// Whether the client comes to believe what is true, within so long.
    pub async fn agrees_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        // Asked for again each time: a handler writes too.
        while self.told() != self.admin.truth().await {
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    pub async fn difference(&self) -> String {
        format!("told {:?}, true is {:?}", self.told(), self.admin.truth().await)
    }

    pub async fn until_told(&self) {
        let agrees = self.agrees_within(PATIENCE).await;
        assert!(agrees, "{}", self.difference().await);
    }

    pub fn has_heard(&self, name: &str, change: &str) -> bool {
        self.heard.lock().iter().any(|line| line["name"] == name && line["change"] == change)
    }

    /// 20 writes of every kind.
    pub async fn churn(&self, prefix: &str) {
        for n in 0..8 {
            self.admin.create(&format!("{prefix}-{n}")).await;
        }
        for n in 0..6 {
            self.admin.update(&format!("{prefix}-{n}"), "žluťoučký 漢字 🚀").await;
        }
        // The last ones first: a lost deletion must not be told by a namesake.
        for n in (0..4).rev() {
            self.admin.delete(&format!("{prefix}-{n}")).await;
        }
        // The same name again is another object.
        for n in 0..2 {
            self.admin.create(&format!("{prefix}-{n}")).await;
        }
    }

    pub fn fault(&self, id: u32, yaml: &str) -> FaultId {
        let fault: Fault = serde_saphyr::from_str(yaml).unwrap();
        self.server.faults().begin(FaultId(id), &fault).unwrap();
        FaultId(id)
    }

    pub async fn until_watching(&self) {
        self.until("no watch is open", |world| world.server.traffic(SUBJECT).watches_open > 0).await;
    }

    pub async fn until_hit(&self, id: FaultId) {
        self.until("the fault was never hit", |world| world.server.faults().hits(id) > 0).await;
    }

    pub async fn until(&self, complaint: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < deadline, "{complaint}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A receiver of JSON lines.
pub fn witness(listener: std::net::TcpListener) -> (String, Arc<Mutex<Vec<Value>>>, JoinSet<()>) {
    let url = format!("http://{}/observations", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
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
                    lines.lock().extend(parsed.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::new())))
                }
            });
            // One connection at a time is enough for one client, and keeps the order.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        }
    });
    (url, heard, tasks)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
