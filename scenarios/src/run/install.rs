//! Requests of the harness that prepare a control plane. Also creates a `CustomResourceDefinition` on a real control
//! plane and waits until its resource is served.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait until a new resource is served; kube-apiserver needs a second or two.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);
/// How long a `CustomResourceDefinition` must stay unchanged. The API server's controllers write within a second, on a
/// busy machine within two.
pub(super) const QUIET: Duration = Duration::from_secs(3);
/// Maximum size of an answer: a page of a list whose objects have up to 64 KiB.
const ANSWER_BYTES_MAX: usize = 32 << 20;

pub(super) const JSON: &str = "application/json";

/// Creates a `CustomResourceDefinition` and waits until its resource can be listed.
pub(super) async fn crd(api: &Api<'_>, crd: &Value) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, answer) = api.create(path, crd).await?;
    if !status.is_success() && status != StatusCode::CONFLICT {
        bail!("the API server answered {status}: {}", String::from_utf8_lossy(&answer));
    }
    served(api, &[crd], QUIET).await
}

/// Waits until the resources can be listed and their `CustomResourceDefinition`s have not changed for `quiet`.
pub(super) async fn served(api: &Api<'_>, crds: &[&Value], quiet: Duration) -> Result<()> {
    let mut waiting: Vec<(&Value, Quiet)> = crds.iter().map(|crd| (*crd, Quiet::default())).collect();
    let deadline = Instant::now() + DEADLINE + quiet;
    while !waiting.is_empty() {
        let mut still = Vec::new();
        for (crd, mut rest) in waiting {
            let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (group, plural, name) = (text("/spec/group"), text("/spec/names/plural"), text("/metadata/name"));
            let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
            let version = versions.into_iter().find(|version| version["served"] != false);
            let version = version.and_then(|version| version["name"].as_str()).unwrap_or_default();
            let list = format!("/apis/{group}/{version}/{plural}?limit=1");
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let (status, _) = api.ask(Method::GET, &list, String::new()).await?;
            let (_, definition) = api.ask(Method::GET, &path, String::new()).await?;
            if rest.is_over(&definition, Instant::now(), quiet) && status.is_success() {
                continue;
            }
            if Instant::now() >= deadline {
                bail!("{name} is not served steadily after {} s: GET {list} answers {status}", DEADLINE.as_secs());
            }
            still.push((crd, rest));
        }
        waiting = still;
        if !waiting.is_empty() {
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

/// Checks whether a new `CustomResourceDefinition` no longer changes. kube-apiserver continues to write its conditions
/// after it serves the first list. At each write of conditions, kube-apiserver ends the resource's watches and drops
/// its history.
#[derive(Default)]
struct Quiet {
    version: String,
    since: Option<Instant>,
}

impl Quiet {
    fn is_over(&mut self, definition: &[u8], now: Instant, quiet: Duration) -> bool {
        let definition: Value = serde_json::from_slice(definition).unwrap_or_default();
        let version = definition["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
        let established = conditions.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True");
        if !established || version != self.version {
            version.clone_into(&mut self.version);
            self.since = None;
        }
        let since = *self.since.get_or_insert(now);
        established && now.duration_since(since) >= quiet
    }
}

/// Opens an HTTP/1.1 connection to the API server at `url`. The caller drives the returned connection.
pub(super) async fn connect(
    url: &str,
    ca_pem: &str,
) -> Result<(SendRequest<Full<Bytes>>, Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>>)> {
    let address = authority(url);
    let tls = mock_pki::client_config(ca_pem, None, &["http/1.1"])?;
    let stream = TcpStream::connect(address).await.with_context(|| format!("failed to reach {address}"))?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    let stream = TlsConnector::from(tls).connect(host.try_into()?, stream).await?;
    Ok(handshake(TokioIo::new(stream)).await?)
}

/// Host and port of an API server's URL.
pub(super) fn authority(url: &str) -> &str {
    url.trim_start_matches("https://")
}

/// A control plane, and the identity with which the harness calls the control plane.
pub(crate) struct Api<'a> {
    pub(crate) url: &'a str,
    pub(crate) ca_pem: &'a str,
    pub(crate) token: &'a str,
    /// Key and value of a label for all created objects, on control planes where the run finds its objects by this
    /// label.
    pub(crate) mark: Option<(&'a str, &'a str)>,
}

impl<'a> From<&'a loadgen::churn::Api> for Api<'a> {
    fn from(api: &'a loadgen::churn::Api) -> Self {
        let mark = api.mark.as_ref().map(|(key, value)| (key.as_str(), value.as_str()));
        Self { url: &api.url, ca_pem: &api.ca_pem, token: &api.token, mark }
    }
}

impl Api<'_> {
    pub(super) async fn create(&self, collection: &str, object: &Value) -> Result<(StatusCode, Bytes)> {
        self.ask(Method::POST, collection, self.marked(object).to_string()).await
    }

    pub(super) fn marked(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some((key, value)) = self.mark {
            object["metadata"]["labels"][key] = value.into();
        }
        object
    }

    /// Whether an existing object was not created by this run, so that the run must not change the object.
    pub(super) fn is_foreign(&self, there: &Value) -> bool {
        self.mark.is_some_and(|(key, value)| there["metadata"]["labels"][key] != value)
    }

    /// Sends one request on a separate connection. A run sends only a handful of requests with this function.
    pub(super) async fn ask(&self, method: Method, path: &str, body: String) -> Result<(StatusCode, Bytes)> {
        self.ask_as(method, path, body, JSON, JSON).await
    }

    /// Sends one request, with the given media types for answer and body.
    pub(crate) async fn ask_as(
        &self,
        method: Method,
        path: &str,
        body: String,
        accept: &str,
        content: &str,
    ) -> Result<(StatusCode, Bytes)> {
        tokio::time::timeout(DEADLINE, self.exchange(method, path, body, [accept, content]))
            .await
            .with_context(|| format!("no answer from {} within {} s", self.url, DEADLINE.as_secs()))?
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: String,
        [accept, content]: [&str; 2],
    ) -> Result<(StatusCode, Bytes)> {
        let (mut sender, connection) = connect(self.url, self.ca_pem).await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", authority(self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("accept", accept)
            .header("content-type", content)
            .body(Full::new(Bytes::from(body)))?;
        let exchange = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("failed to read the answer: {error}"))?;
            Ok((status, body.to_bytes()))
        };
        tokio::select! {
            result = exchange => result,
            ended = connection => match ended {
                Ok(()) => bail!("the connection was closed"),
                Err(error) => Err(error.into()),
            },
        }
    }
}
