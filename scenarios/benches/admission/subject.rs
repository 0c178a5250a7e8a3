//! Starts the measured webhooks, with the certificate, registry and images that they share.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use loadgen::admission::{Image, Target};
use mock_pki::Authority;
use mock_registry::Population;
use serde_json::{Value, json};

use crate::kit::client::Endpoint;
use crate::kit::cores::Cores;
use crate::kit::floor;
use crate::kit::process::{Measured, Running, beside, free};

/// The path at which the service takes reviews.
pub(super) const PATH: &str = "/mutate";
/// Time limit of a webhook's start. Even on a machine that compiles at the same time, a webhook starts within a second.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Number of threads of the plain hyper server, as many as the service has on its processor.
const FLOOR_THREADS: usize = 1;
/// Number of images in the registry. One image in ten is missing in the registry on purpose; the benchmark needs eight
/// images that exist.
const IMAGES: usize = 20;
const SEED: u64 = 7;

/// The inputs of every measured webhook: certificate, registry and images.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    ca_pem: String,
    registry: mock_registry::Server,
    images: Vec<Image>,
    /// Whether the measured webhook has a processor that no other process uses.
    pub(crate) is_alone: bool,
}

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// Description of the webhook in the printed table.
    pub(crate) about: String,
    pub(crate) target: Target,
    /// Whether the webhook replaces tags of images by digests. The plain hyper server does not do so.
    pub(crate) pins: bool,
    /// Whether the webhook sends the content type `application/json`. kube-apiserver ignores the content type, but the
    /// load generator counts answers without it as invalid.
    pub(crate) typed: bool,
    /// The address of the webhook's metrics, if the benchmark can read them.
    pub(crate) metrics: Option<SocketAddr>,
    address: SocketAddr,
    running: Running,
}

impl World {
    pub(crate) async fn start(cores: &Cores) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = Authority::generate("longhaul bench")?;
        let pair = authority.server(&["127.0.0.1", "localhost"])?;
        std::fs::write(folder.path().join("tls.crt"), &pair.certificate_pem)?;
        std::fs::write(folder.path().join("tls.key"), &pair.key_pem)?;
        let registry = mock_registry::Server::start(mock_registry::Config::new()).await?;
        let population = registry.seed(&Population { count: IMAGES, seed: SEED, signed: false })?;
        let images = population.into_iter().filter(|image| image.digest.is_some());
        let images = images.map(|image| Image::new(image.reference, image.digest)).collect();
        Ok(Self { folder, ca_pem: authority.ca_pem().to_owned(), registry, images, is_alone: cores.are_divided() })
    }

    /// The first `count` images that exist in the registry.
    pub(crate) fn images(&self, count: usize) -> &[Image] {
        &self.images[..count]
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("tls.key")
    }

    /// Waits for a webhook until it accepts a connection.
    pub(crate) async fn subject(
        &self,
        name: &'static str,
        about: String,
        (address, path): (SocketAddr, &str),
        child: Child,
    ) -> Result<Subject> {
        let running = Running::start(name, child, START_LIMIT, async || TcpStream::connect(address).is_ok()).await?;
        let url = format!("https://{address}{path}");
        let target = Target { url, ca_pem: self.ca_pem.clone(), ..Target::default() };
        Ok(Subject { name, about, target, pins: true, typed: true, metrics: None, address, running })
    }
}

pub(crate) async fn floor(world: &World, cores: &Cores) -> Result<Subject> {
    let address = free()?;
    let child = cores.spawn(&mut floor::command(address, &world.certificate(), &world.key(), FLOOR_THREADS)?)?;
    let about = "hyper and rustls, one thread: reads the body, answers a constant".to_owned();
    let subject = world.subject("floor", about, (address, PATH), child).await?;
    Ok(Subject { pins: false, ..subject })
}

/// Starts the service with its usual settings.
pub(crate) async fn service(world: &World, cores: &Cores) -> Result<Subject> {
    let registries = json!([{"host": world.registry.host(), "plainHttp": true}]);
    configured(world, cores, "admission", &json!({"resolve": {"registries": registries}})).await
}

/// Starts the service with the role `role`. `sections` are added to the service's configuration that every measurement
/// uses.
pub(crate) async fn configured(world: &World, cores: &Cores, role: &str, sections: &Value) -> Result<Subject> {
    let (address, health) = (free()?, free()?);
    let mut config = json!({
        "admission": {"listen": address, "certificate": world.certificate(), "key": world.key()},
        "health": {"listen": health},
        "log": {"level": "warn"},
    });
    for (name, section) in sections.as_object().into_iter().flatten() {
        match (config.get_mut(name).and_then(Value::as_object_mut), section) {
            (Some(known), Value::Object(more)) => known.extend(more.clone()),
            _ => config[name] = section.clone(),
        }
    }
    let file = world.folder.path().join(format!("service-{role}-{}.yaml", address.port()));
    // JSON is YAML.
    std::fs::write(&file, config.to_string())?;
    let mut command = Command::new(beside("longhaul-service"));
    command.args(["run", "--role", role, "--config"]).arg(&file).stdin(Stdio::null());
    let child = cores.spawn(&mut command).context("`cargo xtask bench admission` builds it")?;
    let about = format!("longhaul-service, role {role}, one thread, its defaults");
    let subject = world.subject("service", about, (address, PATH), child).await?;
    Ok(Subject { metrics: Some(health), ..subject })
}

impl Subject {
    pub(crate) fn measured(&self) -> &Measured {
        &self.running.measured
    }

    /// The webhook's address and TLS settings for a client that sends one request after the other.
    pub(crate) fn endpoint(&self) -> Result<Endpoint> {
        Endpoint::new(self.address, &self.target.ca_pem, None, "")
    }
}
