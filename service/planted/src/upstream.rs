//! The connection to the real API server behind a falsifying server, and the falsifying server's kubeconfig.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;
use service_core::kube::Cluster;
use service_core::wire::{Client, Error, Limits, Protocol, Stream};
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 64 << 20;
const LIMITS: Limits = Limits { open_max: 64, idle_max: 16 };

pub struct Upstream {
    cluster: Cluster,
    client: Client,
}

impl Upstream {
    pub fn new(cluster: Cluster) -> Self {
        let client = Client::new(cluster.origin.clone(), Protocol::Http1, LIMITS);
        Self { cluster, client }
    }

    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        self.client.fetch(self.onward(request), ANSWER_BYTES_MAX, Instant::now() + TIMEOUT).await
    }

    /// Sends a request; returns the answer with a streamed body.
    pub async fn open(&self, request: Request<Bytes>) -> Result<Response<Stream>, Error> {
        self.client.stream(self.onward(request), Instant::now() + TIMEOUT).await
    }

    /// The received request, with the address and headers that the real server needs.
    fn onward(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        let uri = format!("{}{}", self.cluster.base_path, request.uri());
        *request.uri_mut() = uri.parse::<Uri>().unwrap_or_default();
        let headers = request.headers_mut();
        for name in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION] {
            headers.remove(name);
        }
        let token = self.cluster.token.value().map(|token| format!("Bearer {token}"));
        if let Some(token) = token.and_then(|token| token.try_into().ok()) {
            headers.insert(header::AUTHORIZATION, token);
        }
        request
    }
}

/// Writes a kubeconfig for `address` to a file that is removed when the process ends.
pub fn kubeconfig(address: SocketAddr) -> std::io::Result<PathBuf> {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "relay",
        "clusters": [{"name": "relay", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "relay", "user": {}}],
        "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "relay"}}],
    });
    let mut file = File::from(memfd_create("kubeconfig", MemfdFlags::CLOEXEC)?);
    file.write_all(text.to_string().as_bytes())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    std::mem::forget(file);
    Ok(path)
}
