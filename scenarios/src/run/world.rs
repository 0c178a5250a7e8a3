//! The world of a run: control plane, registry, certificates, and the files through which the subject finds them.
//!
//! Everything here is made for one run and gone with it. Keys and tokens live in a temporary folder that only this
//! user can read; nothing secret goes into the run record.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mocks::faults::{Family, Fault, FaultId, Hit};
use mocks::{pki, registry};

use super::gate::Gate;
use super::payloads;
use super::plane::Plane;
use crate::keeper::Folder;
use crate::scenario::Scenario;

/// The user of load and churn.
pub(super) const HARNESS: &str = "harness";
/// A log of a control plane that is larger is not kept: a run record of 100 hours stays below 200 MB.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// The control plane, the registry and the wiring.
pub(super) struct World {
    pub(super) plane: Plane,
    gate: Gate,
    /// Zero of the times of hits.
    epoch: Instant,
    pub(super) registry: registry::Server,
    pub(super) authority: pki::Authority,
    pub(super) images: Vec<registry::Image>,
    directory: Folder,
}

/// The files of the subject's webhook certificate.
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl World {
    /// Brings the world up on free loopback ports.
    pub(super) async fn start(scenario: &Scenario) -> Result<Self> {
        let directory = Folder::make()?;
        let authority = pki::Authority::generate("longhaul")?;
        let namespace = Gate::namespace(&scenario.faults)?;
        let names: Vec<String> = namespace.iter().map(|namespace| namespace.address().to_string()).collect();
        let plane = Plane::start(scenario, &authority, directory.path(), names).await?;
        let epoch = plane.mock().map_or_else(Instant::now, |mock| mock.epoch);
        let gate = Gate::open(&scenario.faults, namespace, plane.subject_address()?, 0, epoch, scenario.seed).await?;
        let mut config = registry::Config::new();
        config.listen = loopback();
        config.advertise = payloads::host(scenario);
        let registry = registry::Server::start(config).await.context("failed to start the mock registry")?;
        let images = registry.seed(&payloads::population(scenario)).context("failed to seed the mock registry")?;
        Ok(Self { plane, gate, epoch, registry, authority, images, directory })
    }

    /// The subject's kubeconfig, written to a file. Where a fault replaces the token while the subject runs, the control plane
    /// keeps it in a file of its own beside it.
    pub(super) fn kubeconfig(&self) -> Result<PathBuf> {
        let text = self.plane.kubeconfig().context("the control plane does not know the subject's user")?;
        self.write("kubeconfig.yaml", &self.gate.direct(&text)?)
    }

    /// A serving certificate for the subject's webhook.
    pub(super) fn certificate(&self) -> Result<Certificate> {
        let pair = self.authority.server(&["127.0.0.1", "localhost"])?;
        Ok(Certificate {
            certificate: self.write("tls.crt", &pair.certificate_pem)?,
            key: self.write("tls.key", &pair.key_pem)?,
        })
    }

    /// Where load and churn write objects.
    pub(super) fn api(&self) -> loadgen::churn::Api {
        loadgen::churn::Api {
            url: self.plane.url(),
            ca_pem: self.plane.ca_pem().to_owned(),
            token: self.plane.harness_token().to_owned(),
        }
    }

    /// Writes a file that only this user can read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(path)
    }

    /// Copies the logs of a real control plane into the run record.
    pub(super) fn keep_logs(&self, record: &Path) -> Result<()> {
        let Some(logs) = self.plane.logs() else { return Ok(()) };
        let kept = record.join("control-plane");
        std::fs::create_dir_all(&kept).with_context(|| format!("failed to make {}", kept.display()))?;
        for entry in std::fs::read_dir(&logs).with_context(|| format!("failed to read {}", logs.display()))? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() && metadata.len() <= LOG_BYTES_MAX {
                std::fs::copy(entry.path(), kept.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Begins a fault.
    pub(super) fn begin(&self, id: FaultId, fault: &Fault) -> Result<()> {
        let begun = match fault.name.family() {
            Family::Network => self.gate.faults().context("there is no proxy")?.begin(id, fault),
            _ => self.plane.faults().context("this control plane cannot play it")?.begin(id, fault),
        };
        begun.with_context(|| format!("failed to begin the fault {}", fault.name.as_str()))
    }

    /// Ends a fault.
    pub(super) fn end(&self, id: FaultId, fault: &Fault) {
        match fault.name.family() {
            Family::Network => self.gate.faults().into_iter().for_each(|faults| faults.end(id)),
            _ => self.plane.faults().into_iter().for_each(|faults| faults.end(id)),
        }
    }

    /// How often a fault was hit.
    pub(super) fn hits(&self, id: FaultId, fault: &Fault) -> u64 {
        match fault.name.family() {
            Family::Network => self.gate.faults().map_or(0, |faults| faults.hits(id)),
            _ => self.plane.faults().map_or(0, |faults| faults.hits(id)),
        }
    }

    /// Returns when something was hit; [`World::take_hits`] says what.
    pub(super) async fn struck(&self) {
        let plane = async {
            match self.plane.faults() {
                Some(faults) => faults.struck().await,
                None => std::future::pending().await,
            }
        };
        let network = async {
            match self.gate.faults() {
                Some(faults) => faults.struck().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = plane => {}
            () = network => {}
        }
    }

    /// The hits since the last call, with the moment of each.
    pub(super) fn take_hits(&self) -> Vec<(Instant, Hit)> {
        let plane = self.plane.faults().map(mocks::faults::Faults::take_hits).unwrap_or_default();
        let network = self.gate.faults().map(mocks::proxy::Faults::take_hits).unwrap_or_default();
        plane.into_iter().chain(network).map(|hit| (self.epoch + Duration::from_micros(hit.at_us), hit)).collect()
    }

    /// Takes the world down.
    pub(super) async fn stop(self) {
        self.gate.close().await;
        self.plane.stop().await;
        self.registry.shutdown().await;
    }
}

/// A loopback port that was free a moment ago. The subject binds it later; should another program be faster, the
/// subject says so and the run ends as "not ready" with its message.
pub(super) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(loopback()).context("failed to find a free port")?;
    Ok(listener.local_addr()?.port())
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
