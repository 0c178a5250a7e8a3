//! A simple test client, which sends the given requests and returns the answers unchecked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mock_registry::{Config, Server};
use serde_json::Value;
use tokio::net::TcpStream;

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The deadline of a test's request, longer than any normal answer on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// A client that opens one connection for each request, so that no test depends on another's connection.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    tls: Option<Arc<rustls::ClientConfig>>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The received bytes. `complete` tells whether the body had the promised length.
    pub body: Bytes,
    pub complete: bool,
}

impl Client {
    pub fn to(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }

    pub fn secure(address: SocketAddr, config: Arc<rustls::ClientConfig>) -> Self {
        Self { address, tls: Some(config) }
    }

    /// Sends a request; `Err` if the connection ended without an answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Reply, hyper::Error> {
        let host = self.address.to_string();
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        for &(name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        let exchange = async {
            let stream = TcpStream::connect(self.address).await.unwrap();
            let Some(tls) = &self.tls else {
                *request.uri_mut() = path.parse().unwrap();
                request.headers_mut().insert("host", host.parse().unwrap());
                let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
                let driver = tokio::spawn(connection);
                let reply = read(sender.send_request(request).await?).await;
                driver.abort();
                return Ok(reply);
            };
            let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
            let stream = tokio_rustls::TlsConnector::from(tls.clone()).connect(name, stream).await.unwrap();
            *request.uri_mut() = format!("https://{host}{path}").parse().unwrap();
            let io = TokioIo::new(stream);
            let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await?;
            let driver = tokio::spawn(connection);
            let reply = read(sender.send_request(request).await?).await;
            driver.abort();
            Ok(reply)
        };
        tokio::time::timeout(DEADLINE, exchange).await.expect("every request is answered within the deadline")
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
        self.try_send(method, path, headers, body).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn head(&self, path: &str) -> Reply {
        self.send(Method::HEAD, path, &[], "").await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], "").await
    }

    /// Pushes a blob in two requests; returns its digest.
    pub async fn push_blob(&self, name: &str, content: &[u8]) -> String {
        let digest = sha256(content);
        let started = self.send(Method::POST, &format!("/v2/{name}/blobs/uploads/"), &[], "").await;
        assert_eq!(started.status, StatusCode::ACCEPTED, "{started:?}");
        let to = with_query(&started.location(), &format!("digest={digest}"));
        let kind = [("content-type", "application/octet-stream")];
        let done = self.send(Method::PUT, &to, &kind, content.to_vec()).await;
        assert_eq!(done.status, StatusCode::CREATED, "{done:?}");
        digest
    }

    /// Pushes an image manifest over existing blobs; returns its digest.
    pub async fn push_manifest(&self, name: &str, tag: &str, config: (&str, usize), extra: &str) -> String {
        let body = manifest(config, extra);
        let reply =
            self.send(Method::PUT, &format!("/v2/{name}/manifests/{tag}"), &[("content-type", MANIFEST)], body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        reply.header("docker-content-digest").to_owned()
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The path of `Location`, whether it is relative or absolute.
    pub fn location(&self) -> String {
        let location = self.header("location");
        match location.split_once("://") {
            Some((_, rest)) => rest[rest.find('/').unwrap()..].to_owned(),
            None => location.to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The first error code in the body of a refusal.
    pub fn code(&self) -> String {
        self.json()["errors"][0]["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub async fn registry() -> (Server, Client) {
    registry_with(Config::new()).await
}

pub async fn registry_with(config: Config) -> (Server, Client) {
    let server = Server::start(config).await.unwrap();
    let client = Client::to(server.address());
    (server, client)
}

pub fn sha256(bytes: &[u8]) -> String {
    mock_registry::Digest::sha256(bytes).to_string()
}

pub fn manifest((config, size): (&str, usize), extra: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"{config}","size":{size}}},"layers":[]{extra}}}"#
    )
}

pub fn with_query(path: &str, query: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{query}")
}

async fn read(response: http::Response<hyper::body::Incoming>) -> Reply {
    let (parts, mut body) = response.into_parts();
    let (mut all, mut complete) = (Vec::new(), true);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            complete = false;
            break;
        };
        all.extend_from_slice(&frame.into_data().unwrap_or_default());
    }
    Reply { status: parts.status, headers: parts.headers, body: all.into(), complete }
}
