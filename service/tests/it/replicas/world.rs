//! Common code of the tests of the API that scales Deployments: a service with certificates of `certs dev`, and a
//! client for each certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde_json::Value;
use service::config;
use service::run::{App, Options};
use service_core::wire::{Identity, Trust, certificates_from_pem, client_config, key_from_pem};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::support::deployments::Deployments;
use crate::support::{PATIENCE, kubeconfig, until};

pub const BINARY: &str = env!("CARGO_BIN_EXE_longhaul-service");

/// A rate limit that no test reaches, because tests send calls without pause.
const UNHURRIED: &str =
    ", rate: {client: {perSecond: 1000000, burst: 1000000}, all: {perSecond: 1000000, burst: 1000000}}";

/// The section `replicas` with certificates of `certs dev`; the text `more` is appended.
pub fn section(more: &str) -> String {
    format!(
        "replicas: {{listen: \"127.0.0.1:0\", certificate: server.crt, key: server.key, clientCA: [ca.crt], crl: [crl.pem]{more}}}\n"
    )
}

/// Writes the files of `certs dev`.
pub fn certificates(folder: &Path) {
    let output = Command::new(BINARY).args(["certs", "dev"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A service with a small API server.
pub struct World {
    pub api: Deployments,
    pub app: App,
    pub folder: tempfile::TempDir,
}

impl World {
    /// Starts a service whose section ends with `more`, and waits until it is ready.
    pub async fn start(more: &str) -> Self {
        Self::start_over(Deployments::start().await, more).await
    }

    pub async fn start_over(api: Deployments, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates(folder.path());
        Self::start_in(api, folder, more).await
    }

    pub async fn start_in(api: Deployments, folder: tempfile::TempDir, more: &str) -> Self {
        let text = Self::config(&api, folder.path(), more);
        let path = folder.path().join("service.yaml");
        std::fs::write(&path, &text).unwrap();
        let config = config::parse(&text, &path).unwrap();
        let mut app = App::start("replicas", config, Options::default()).await.unwrap();
        app.follow_config(path);
        Self { api, app, folder }
    }

    /// The configuration of a service; its kubeconfig is written too. Without `rate` in `more`, clients have no rate
    /// limit.
    pub fn config(api: &Deployments, folder: &Path, more: &str) -> String {
        kubeconfig(&folder.join("kube.yaml"), api.address());
        let unhurried = if more.contains("rate:") { "" } else { UNHURRIED };
        section(&format!("{more}{unhurried}"))
            + "kubernetes: {kubeconfig: kube.yaml}\nhealth: {listen: \"127.0.0.1:0\"}\nshutdown: {drain: 50ms}\n\
               watch: {silenceLimit: 1s, backoff: {initial: 20ms, max: 200ms}}\n"
    }

    /// Waits until the first list is complete.
    pub async fn listed(self) -> Self {
        let client = self.client("client").await;
        let listed = async { while client.get("/api/v1/deployments").await.code != 200 {} };
        timeout(PATIENCE, listed).await.expect("the first list");
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.app.address("replicas").unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// TLS settings of a client with the certificate `name` from the folder.
    pub fn tls(&self, name: &str) -> ClientConfig {
        let identity = identity(&self.path(&format!("{name}.crt")), &self.path(&format!("{name}.key")));
        self.tls_of(Some(identity))
    }

    pub fn tls_of(&self, identity: Option<Identity>) -> ClientConfig {
        let authority = std::fs::read(self.path("ca.crt")).unwrap();
        client_config(Trust::Pem(&authority), identity).unwrap()
    }

    /// A connection with the certificate `name`; the test fails if the certificate is refused.
    pub async fn client(&self, name: &str) -> Caller {
        Caller::connect(self.address(), self.tls(name)).await.unwrap()
    }

    /// Whether a call with these TLS settings gets status 200. A call is needed, because in TLS 1.3 a client learns
    /// late that its certificate is refused.
    pub async fn lets_in(&self, tls: ClientConfig) -> bool {
        let Ok(caller) = Caller::connect(self.address(), tls).await else { return false };
        matches!(caller.try_call("GET", "/api/v1/health", None, &[]).await, Ok(answer) if answer.code == 200)
    }

    pub async fn metrics(&self) -> String {
        self.page("/metrics").await.1
    }

    /// Status and body of a path at the health listener.
    pub async fn page(&self, path: &str) -> (u16, String) {
        let tcp = TcpStream::connect(self.app.health().unwrap()).await.unwrap();
        let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        let request = Request::get(path).header("host", "h").body(Full::new(Bytes::new())).unwrap();
        let response = send.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Makes the service check its files until the metrics contain `line`.
    pub async fn shows(&self, line: &str) {
        self.app.look_at_files();
        let waiting = async { while !self.metrics().await.contains(line) {} };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain for {line}"));
    }

    /// Waits until the service has counted `times` clients refused for `reason`, because a client knows of a refusal
    /// before the service counts it.
    pub async fn refused_in_all(&self, reason: &str, times: u64) {
        let counted = async {
            while self.refused(reason).await < times {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let waited = timeout(PATIENCE, counted).await;
        assert!(
            waited.is_ok() && self.refused(reason).await == times,
            "{reason}, {times} times: {}",
            self.metrics().await
        );
    }

    /// The number of clients that were refused for `reason`.
    pub async fn refused(&self, reason: &str) -> u64 {
        let name = format!("longhaul_edge_clients_refused_total{{listener=\"replicas\",reason=\"{reason}\"}} ");
        let metrics = self.metrics().await;
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
    }

    /// Waits until the cache shows `replicas` for `key`.
    pub async fn observed(&self, caller: &Caller, key: &str, replicas: Option<i64>) {
        let path = replicas_path(key);
        let seen = async {
            loop {
                let answer = caller.get(&path).await;
                // An absent count is answered as absent: a refusal for another reason has no count either.
                if answer.json.get("replicaCount").and_then(Value::as_i64) == replicas
                    && answer.code == if replicas.is_some() { 200 } else { 404 }
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("{key} never became {replicas:?}"));
    }
}

pub fn replicas_path(key: &str) -> String {
    let (namespace, name) = key.split_once('/').unwrap();
    format!("/api/v1/namespaces/{namespace}/deployments/{name}/replicas")
}

pub fn identity(certificate: &Path, key: &Path) -> Identity {
    Identity {
        chain: certificates_from_pem(&std::fs::read(certificate).unwrap()).unwrap(),
        key: key_from_pem(&std::fs::read(key).unwrap()).unwrap(),
    }
}

/// Time in which an answer may still arrive after the end of its connection.
const LAST_ANSWER: std::time::Duration = std::time::Duration::from_secs(1);

/// One open connection of a client.
pub struct Caller {
    send: tokio::sync::Mutex<SendRequest<Full<Bytes>>>,
    pub resumed: bool,
    /// A token that is cancelled at the end of the connection, because hyper does not always report the end (issue
    /// 4122).
    ended: CancellationToken,
    _task: JoinSet<()>,
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub json: Value,
    pub text: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The message in an error, which must have no other content.
    pub fn error(&self) -> &str {
        assert_eq!(self.json.as_object().map(serde_json::Map::len), Some(1), "{}", self.text);
        self.json["error"].as_str().unwrap()
    }
}

impl Caller {
    pub async fn connect(address: SocketAddr, mut tls: ClientConfig) -> std::io::Result<Self> {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self::connect_with(address, Arc::new(tls)).await
    }

    /// Connects with settings that may contain TLS sessions.
    pub async fn connect_with(address: SocketAddr, tls: Arc<ClientConfig>) -> std::io::Result<Self> {
        let tcp = TcpStream::connect(address).await?;
        let stream = TlsConnector::from(tls).connect("localhost".try_into().unwrap(), tcp).await?;
        let resumed = stream.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
        let (send, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        let mut task = JoinSet::new();
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        task.spawn(async move {
            let _ = connection.await;
            drop(guard);
        });
        Ok(Self { send: tokio::sync::Mutex::new(send), resumed, ended, _task: task })
    }

    pub async fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default().to_owned()))).unwrap();
        let mut send = self.send.lock().await;
        let wrong = |error: hyper::Error| error.to_string();
        let answer = async {
            send.ready().await.map_err(wrong)?;
            let response = send.send_request(request).await.map_err(wrong)?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map_err(wrong)?.to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let json = serde_json::from_str(&text).unwrap_or_default();
            Ok(Answer { code: head.status.as_u16(), headers: head.headers, json, text })
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            answer = timeout(PATIENCE, &mut answer) => return answer.expect("an answer in time"),
            () = self.ended.cancelled() => {}
        }
        // Answers from before the end have arrived.
        timeout(LAST_ANSWER, answer).await.unwrap_or_else(|_| Err("the connection ended without an answer".to_owned()))
    }

    pub async fn call(&self, method: &str, path: &str, body: Option<&str>, headers: &[(&str, &str)]) -> Answer {
        self.try_call(method, path, body, headers).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None, &[]).await
    }

    pub async fn put(&self, path: &str, body: &str) -> Answer {
        self.call("PUT", path, Some(body), &[]).await
    }
}

/// Waits until the API server has received a request that contains `part`.
pub async fn wait_for_request(api: &Deployments, part: &str) {
    until(part, || api.world.lock().count(part) > 0).await;
}
