//! What the servers share: an API server with Deployments, and certificates; and the writes of others.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Connections that make the Deployments, and that write.
const WRITERS: usize = 16;
/// Where they are.
pub(crate) const NAMESPACE: &str = "bench";
const TOKEN: &str = "bench";

/// An API server with Deployments.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    kube: mock_kube::Server,
    ca_pem: String,
    pub(crate) authority: mock_pki::Authority,
    deployments: u32,
}

/// Writes under way.
pub(crate) struct Writing {
    tasks: JoinSet<Result<()>>,
    written: Arc<AtomicU64>,
    begun: Instant,
}

impl World {
    /// With so many Deployments.
    pub(crate) async fn start(deployments: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = mock_pki::Authority::generate("longhaul bench")?;
        let mut config = mock_kube::Config::new();
        config.users = vec![mock_kube::User::admin("bench", TOKEN)];
        let kube = mock_kube::Server::start(config, &authority).await?;
        let kubeconfig = kube.kubeconfig("bench").context("the user is known")?;
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig)?;
        for (name, pair) in [
            ("server", authority.server(&["127.0.0.1", "localhost"])?),
            ("client", authority.client("bench-client", &[])?),
        ] {
            std::fs::write(folder.path().join(format!("{name}.crt")), &pair.certificate_pem)?;
            let key = folder.path().join(format!("{name}.key"));
            std::fs::write(&key, &pair.key_pem)?;
            std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o400))?;
        }
        std::fs::write(folder.path().join("ca.crt"), authority.ca_pem())?;
        let ca_pem = authority.ca_pem().to_owned();
        let world = Self { folder, kube, ca_pem, authority, deployments };
        world.fill().await?;
        Ok(world)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let tls = mock_pki::client_config(&self.ca_pem, None, &["http/1.1"])?;
        let tcp = TcpStream::connect(self.kube.address()).await?;
        tcp.set_nodelay(true)?;
        let stream = TlsConnector::from(tls).connect("127.0.0.1".try_into()?, tcp).await?;
        let (send, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(send)
    }

    async fn fill(&self) -> Result<()> {
        let mut first = self.connect().await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        send(&mut first, Method::POST, "/api/v1/namespaces", "application/json", &namespace).await?;
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let mut sender = self.connect().await?;
            let numbers = (0..self.deployments).skip(writer).step_by(WRITERS);
            tasks.spawn(async move {
                let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
                for number in numbers {
                    send(&mut sender, Method::POST, &path, "application/json", &deployment(number)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Counts are written by others, so many a second, until it is stopped.
    pub(crate) fn write(&self, per_second: u32) -> Writing {
        let written = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let pause = Duration::from_secs(1) * u32::try_from(WRITERS).unwrap_or(1) / per_second;
        let (address, tls) = (self.kube.address(), mock_pki::client_config(&self.ca_pem, None, &["http/1.1"]));
        for writer in 0..WRITERS {
            let (written, tls, deployments) = (Arc::clone(&written), tls.as_ref().ok().cloned(), self.deployments);
            tasks.spawn(async move {
                let tcp = TcpStream::connect(address).await?;
                let stream = TlsConnector::from(tls.context("the settings are good")?);
                let stream = stream.connect("127.0.0.1".try_into()?, tcp).await?;
                let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                let mut turns = tokio::time::interval(pause);
                for turn in 0.. {
                    turns.tick().await;
                    let number = (turn * 7919 + u32::try_from(writer).unwrap_or(0)) % deployments;
                    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{}/scale", name(number));
                    let patch = json!({"spec": {"replicas": turn % 1000}});
                    send(&mut sender, Method::PATCH, &path, "application/merge-patch+json", &patch).await?;
                    written.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Writing { tasks, written, begun: Instant::now() }
    }
}

impl Writing {
    /// Ends them; how many there were a second.
    pub(crate) async fn stop(mut self) -> Result<f64> {
        let per_second = self.written.load(Ordering::Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        self.tasks.shutdown().await;
        Ok(per_second)
    }
}

async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<()> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", media_type)
        .body(Full::new(Bytes::from(body.to_string())))?;
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        bail!("{path}: {status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(())
}

/// The name of a Deployment.
pub(crate) fn name(number: u32) -> String {
    format!("deployment-{number:06}")
}

/// As large as those of a real cluster: what an informer that keeps whole objects has to keep.
fn deployment(number: u32) -> Value {
    let labels = json!({"app": name(number), "team": "bench", "pod-template-hash": "6c9f7d5b8"});
    let environment: Vec<Value> =
        (0..12).map(|index| json!({"name": format!("SETTING_{index}"), "value": "some text of some length"})).collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": NAMESPACE, "name": name(number), "labels": labels, "annotations": {"longhaul.dev/text": "x".repeat(256)}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": name(number)}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{
                "name": "main", "image": "registry.example.com/team/application:v1.2.3", "env": environment,
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            }]}},
        },
    })
}

/// A free port.
pub(crate) fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
