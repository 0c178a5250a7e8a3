//! Reads the built-in kinds from a running API server.
//!
//! This module owns the connection and its requests, which come one after the other and only read.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;g=meta.k8s.io;v=v1;as=Table";
/// Longest wait for an answer. Most answers take milliseconds, but the server makes an OpenAPI document when a client
/// first requests the document.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The connection to an API server, and a token that allows requests.
pub(crate) struct Server {
    sender: SendRequest<Empty<Bytes>>,
    token: String,
}

impl Server {
    pub async fn connect(address: SocketAddr, ca_pem: &str, token: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::from(address.ip());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, token: token.to_owned() })
    }

    async fn ask(&mut self, path: &str, accept: &str) -> Result<(StatusCode, Value)> {
        let request = Request::get(path)
            .header("host", "kubernetes")
            .header("accept", accept)
            .header("authorization", format!("Bearer {}", self.token))
            .body(Empty::new())?;
        let answer = async {
            self.sender.ready().await?;
            let answer = self.sender.send_request(request).await?;
            let status = answer.status();
            Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(ANSWER_WITHIN, answer).await.context("no answer")??;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// Requests a JSON document that must exist on the server.
    pub async fn get(&mut self, path: &str) -> Result<Value> {
        self.get_as(path, "application/json").await
    }

    /// Returns the API groups below `api` or `apis`, in the aggregated form of discovery.
    pub async fn groups(&mut self, root: &str) -> Result<Vec<Value>> {
        let list = self.get_as(&format!("/{root}"), AGGREGATED).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Returns the columns of a collection in kubectl's table.
    pub async fn columns(&mut self, path: &str) -> Result<Vec<Value>> {
        let table = self.get_as(&format!("{path}?limit=1"), TABLE).await?;
        Ok(table["columnDefinitions"].as_array().cloned().unwrap_or_default())
    }

    /// Whether a field selector for a collection may name this field.
    pub async fn selects(&mut self, path: &str, field: &str) -> Result<bool> {
        let path = format!("{path}?limit=1&fieldSelector={field}%3Dx");
        Ok(self.ask(&path, "application/json").await?.0 == StatusCode::OK)
    }

    async fn get_as(&mut self, path: &str, accept: &str) -> Result<Value> {
        let (status, value) = self.ask(path, accept).await.with_context(|| format!("failed to get {path}"))?;
        ensure!(status == StatusCode::OK, "GET {path} answered {status}: {value}");
        Ok(value)
    }
}
