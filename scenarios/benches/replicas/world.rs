//! Starts the environment of the measured servers: an API server with Deployments, certificates, and other clients that
//! write.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use hyper::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::kit::apiserver::ApiServer;

/// Number of connections that create the Deployments and later write replica counts.
const WRITERS: usize = 16;
/// The namespace of the Deployments.
pub(crate) const NAMESPACE: &str = "bench";

/// An API server with Deployments.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    kube: ApiServer,
    pub(crate) authority: mock_pki::Authority,
    deployments: u32,
}

/// The clients that write replica counts, while they run.
pub(crate) struct Writing {
    tasks: JoinSet<Result<()>>,
    written: Arc<AtomicU64>,
    begun: Instant,
}

impl World {
    /// Starts an API server with this many Deployments.
    pub(crate) async fn start(deployments: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = mock_pki::Authority::generate("longhaul bench")?;
        let kube = ApiServer::here().await?;
        std::fs::write(folder.path().join("kubeconfig"), &kube.kubeconfig)?;
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
        let world = Self { folder, kube, authority, deployments };
        world.fill().await?;
        Ok(world)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn fill(&self) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let mut first = self.kube.endpoint.connect().await?;
        first.call(Method::POST, "/api/v1/namespaces", namespace.to_string()).await?;
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let mut client = self.kube.endpoint.connect().await?;
            let numbers = (0..self.deployments).skip(writer).step_by(WRITERS);
            tasks.spawn(async move {
                let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
                for number in numbers {
                    client.call(Method::POST, &path, deployment(number).to_string()).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Starts clients that write replica counts at this rate until they are stopped.
    pub(crate) fn write(&self, per_second: u32) -> Writing {
        let written = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let pause = Duration::from_secs(1) * u32::try_from(WRITERS).unwrap_or(1) / per_second;
        for writer in 0..WRITERS {
            let (written, endpoint, deployments) = (Arc::clone(&written), self.kube.endpoint.clone(), self.deployments);
            tasks.spawn(async move {
                let mut client = endpoint.connect().await?;
                let mut turns = tokio::time::interval(pause);
                for turn in 0.. {
                    turns.tick().await;
                    let number = (turn * 7919 + u32::try_from(writer).unwrap_or(0)) % deployments;
                    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{}/scale", name(number));
                    let patch = json!({"spec": {"replicas": turn % 1000}});
                    client.call(Method::PATCH, &path, patch.to_string()).await?;
                    written.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Writing { tasks, written, begun: Instant::now() }
    }
}

impl Writing {
    /// Stops the writing clients. Returns the number of writes per second.
    pub(crate) async fn stop(mut self) -> Result<f64> {
        let per_second = self.written.load(Ordering::Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        self.tasks.shutdown().await;
        Ok(per_second)
    }
}

pub(crate) fn name(number: u32) -> String {
    format!("deployment-{number:06}")
}

/// A Deployment as large as those in real clusters, because an informer keeps whole objects.
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
