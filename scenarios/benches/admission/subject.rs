//! The webhooks that are measured, and what they share: certificate, registry, images.
//!
//! Owns starting and stopping them, and reading their CPU time and memory from `/proc`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::{Image, Target};
use mock_pki::Authority;
use mock_registry::Population;
use procfs::WithCurrentSystemInfo as _;
use procfs::process::Process;
use serde_json::{Value, json};

use crate::cores::Cores;

/// On a machine that compiles beside it a subject needs a second at most.
const START_DEADLINE: Duration = Duration::from_secs(30);
const START_LOOK: Duration = Duration::from_millis(50);
/// Enough that eight that exist are among them: one in ten is missing.
const IMAGES: usize = 20;
const SEED: u64 = 7;

/// What every subject is given.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    ca_pem: String,
    registry: mock_registry::Server,
    images: Vec<Image>,
    /// Whether each subject has a processor that nobody else uses.
    pub(crate) is_alone: bool,
}

/// A running webhook.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// What the table says about it.
    pub(crate) about: String,
    pub(crate) target: Target,
    /// Whether it pins images; the floor does not.
    pub(crate) pins: bool,
    /// Whether its answers say that they are JSON. kube-apiserver does not look; the generator does, and calls others invalid.
    pub(crate) typed: bool,
    /// Where it shows its metrics, if the benchmark knows how to read them.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) running: Running,
}

/// Its process, which ends with it.
pub(crate) struct Running {
    child: Child,
    process: Process,
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

    /// So many images that exist.
    pub(crate) fn images(&self, count: usize) -> &[Image] {
        &self.images[..count]
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("tls.crt")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("tls.key")
    }

    /// Webhooks show that they are there by taking a connection.
    pub(crate) async fn subject(
        &self,
        name: &'static str,
        about: String,
        at: (SocketAddr, &str),
        mut child: Child,
    ) -> Result<Subject> {
        let (address, path) = at;
        let deadline = Instant::now() + START_DEADLINE;
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("{name} ended at once with {status}");
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                bail!("{name} does not listen after {START_DEADLINE:?}");
            }
            tokio::time::sleep(START_LOOK).await;
        }
        let process = Process::new(i32::try_from(child.id())?)?;
        let url = format!("https://{address}{path}");
        let target = Target { url, ca_pem: self.ca_pem.clone(), ..Target::default() };
        Ok(Subject { name, about, target, pins: true, typed: true, metrics: None, running: Running { child, process } })
    }
}

/// The bare server.
pub(crate) async fn floor(world: &World, cores: &Cores) -> Result<Subject> {
    let address = free()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("floor").arg(address.to_string()).arg(world.certificate()).arg(world.key()).stdin(Stdio::null());
    let child = cores.spawn(&mut command)?;
    let about = "hyper and rustls, one thread: reads the body, answers a constant".to_owned();
    let subject = world.subject("floor", about, (address, "/mutate"), child).await?;
    Ok(Subject { pins: false, ..subject })
}

/// The service as anybody would start it.
pub(crate) async fn service(world: &World, cores: &Cores) -> Result<Subject> {
    let registries = json!([{"host": world.registry.host(), "plainHttp": true}]);
    configured(world, cores, "manager", &json!({"resolve": {"registries": registries}})).await
}

/// The service in this role, with these sections of its configuration beside what every one has.
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
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_longhaul")).with_file_name("longhaul-service");
    let mut command = Command::new(program);
    command.args(["run", "--role", role, "--config"]).arg(&file).stdin(Stdio::null());
    let child = cores.spawn(&mut command).context("`cargo xtask bench admission` builds it")?;
    let about = format!("longhaul-service, role {role}, one thread, its defaults");
    let subject = world.subject("service", about, (address, "/mutate"), child).await?;
    Ok(Subject { metrics: Some(health), ..subject })
}

/// A loopback address whose port was free a moment ago.
pub(crate) fn free() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port")?;
    Ok(listener.local_addr()?)
}

impl Subject {
    /// CPU time of all its threads, in microseconds.
    pub(crate) fn cpu_us(&self) -> Result<f64> {
        let tasks = self.running.process.tasks().with_context(|| format!("the {} has ended", self.name))?;
        let mut total_ns = 0;
        for task in tasks {
            total_ns += task?.schedstat()?.sum_exec_runtime;
        }
        Ok(total_ns as f64 / 1e3)
    }

    /// Resident memory now.
    pub(crate) fn rss_bytes(&self) -> Result<u64> {
        let stat = self.running.process.stat().with_context(|| format!("the {} has ended", self.name))?;
        Ok(stat.rss_bytes().get())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
