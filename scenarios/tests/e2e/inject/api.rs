//! Two small clients: one for the API server, and one for the injected program.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of the API server with one connection, which is opened again if the connection breaks.
pub struct Api {
    address: SocketAddr,
    tls: Arc<rustls::ClientConfig>,
    token: String,
    sender: tokio::sync::Mutex<Option<http1::SendRequest<Full<Bytes>>>>,
}

impl Api {
    pub fn new(server: &mock_kube::Server, authority: &mock_pki::Authority, token: &str) -> Self {
        let tls = mock_pki::client_config(authority.ca_pem(), None, &["http/1.1"]).unwrap();
        Self { address: server.address(), tls, token: token.to_owned(), sender: tokio::sync::Mutex::default() }
    }

    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = || {
            let builder = Request::builder().method(method.clone()).uri(path).header("host", "localhost");
            let builder =
                builder.header("content-type", media_type).header("authorization", format!("Bearer {}", self.token));
            builder.body(Full::new(body.clone())).unwrap()
        };
        let mut held = self.sender.lock().await;
        for attempt in 0..2 {
            if held.as_ref().is_none_or(http1::SendRequest::is_closed) {
                *held = Some(self.connect().await);
            }
            let sender = held.as_mut().unwrap();
            let sent = async {
                sender.ready().await?;
                let response = sender.send_request(request()).await?;
                let status = response.status().as_u16();
                Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
            };
            match tokio::time::timeout(PATIENCE, sent).await.expect("an answer in time") {
                Ok((status, bytes)) => return (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)),
                // The server has closed this idle connection meanwhile.
                Err(error) if attempt == 0 => drop((error, held.take())),
                Err(error) => panic!("{path}: {error}"),
            }
        }
        unreachable!("the second attempt answers or fails");
    }

    async fn connect(&self) -> http1::SendRequest<Full<Bytes>> {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(tls)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, None).await
    }

    pub async fn items(&self, path: &str) -> Vec<Value> {
        let (status, mut list) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {list}");
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, Some(object)).await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// Patches an object or a subresource with a merge patch. Returns `false` if the object does not exist.
    pub async fn merge(&self, path: &str, patch: &Value) -> bool {
        self.call(Method::PATCH, path, Some(patch)).await.0 < 300
    }
}

/// Sends one request to the injected program.
pub async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    range: Option<&str>,
) -> std::io::Result<Response<Bytes>> {
    let range = range.map(|range| ("range", range));
    ask_with(address, method, path, range.as_slice()).await
}

/// Sends one request with any headers to the injected program.
pub async fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> std::io::Result<Response<Bytes>> {
    let tcp = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await.map_err(std::io::Error::other)?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "seed");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let asked = async {
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await?;
        let (head, body) = response.into_parts();
        Ok::<_, hyper::Error>(Response::from_parts(head, body.collect().await?.to_bytes()))
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time").map_err(std::io::Error::other)
}
