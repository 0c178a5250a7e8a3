//! The world of a run: control plane, registry, certificates, and the files through which the subject finds them.
//!
//! Everything here is made for one run and gone with it. Keys and tokens live in a temporary folder that only this
//! user can read; nothing secret goes into the run record.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use mocks::{kube, pki, registry};
use tempfile::TempDir;

use crate::scenario::{Scenario, SubjectKind};

/// The subject's user. Faults, gaps and traffic are kept by user: this one is the subject and nobody else.
pub(super) const SUBJECT: &str = "subject";
/// The user of load and churn.
pub(super) const HARNESS: &str = "harness";
/// The registry's host in images. Reserved for tests by RFC 6761.
const REGISTRY: &str = "registry.test:5000";
/// Versions that the control plane keeps. A hundred hours never need more than the newest few.
const HISTORY_EVENTS_MAX: usize = 100_000;

/// The control plane, the registry and the wiring.
pub(super) struct World {
    pub(super) kube: kube::Server,
    pub(super) registry: registry::Server,
    pub(super) authority: pki::Authority,
    pub(super) images: Vec<registry::Image>,
    /// Zero of the control plane's times.
    pub(super) epoch: Instant,
    harness_token: String,
    directory: TempDir,
}

/// The files of the subject's webhook certificate.
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl World {
    /// Brings the world up on free loopback ports.
    pub(super) async fn start(scenario: &Scenario) -> Result<Self> {
        let epoch = Instant::now();
        let directory =
            tempfile::Builder::new().prefix("longhaul-").tempdir().context("failed to make a folder for keys")?;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700))?;
        let authority = pki::Authority::generate("longhaul")?;
        let (subject_token, harness_token) = (token(scenario.seed, SUBJECT), token(scenario.seed, HARNESS));
        let mut config = kube::Config::new();
        config.listen = loopback();
        config.epoch = epoch;
        config.bookmarks_every = scenario.control_plane.bookmarks_every.0;
        config.history_max_events = HISTORY_EVENTS_MAX;
        config.seed = scenario.seed;
        if let Some(pointer) = &scenario.subject.witness.pointer {
            config.observed_generation.clone_from(pointer);
        }
        config.crds = vec![kind::manifests::package_crd().context("failed to read the Package CRD")?];
        config.users = vec![kube::User::admin(SUBJECT, &subject_token), kube::User::admin(HARNESS, &harness_token)];
        let kube = kube::Server::start(config, &authority).await.context("failed to start the mock API server")?;
        kube.faults().target_users([SUBJECT]);
        let mut config = registry::Config::new();
        config.listen = loopback();
        config.epoch = epoch;
        // The service can be told where a host really is. Its images then have one name in every run, and the payloads of
        // a seed are the same bytes; a foreign subject needs the address itself.
        let fixed = scenario.subject.kind == SubjectKind::Service;
        config.advertise = fixed.then(|| REGISTRY.to_owned());
        let registry = registry::Server::start(config).await.context("failed to start the mock registry")?;
        let population = registry::Population { count: scenario.registry.images, seed: scenario.seed };
        let images = registry.seed(&population).context("failed to seed the mock registry")?;
        Ok(Self { kube, registry, authority, images, epoch, harness_token, directory })
    }

    /// The subject's kubeconfig, written to a file.
    pub(super) fn kubeconfig(&self) -> Result<PathBuf> {
        let text = self.kube.kubeconfig(SUBJECT).context("the control plane does not know the subject's user")?;
        self.write("kubeconfig.yaml", &text)
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
            url: self.kube.url(),
            ca_pem: self.authority.ca_pem().to_owned(),
            token: self.harness_token.clone(),
        }
    }

    /// The images of the registry as load needs them.
    pub(super) fn load_images(&self) -> Vec<loadgen::admission::Image> {
        let image = |image: &registry::Image| loadgen::admission::Image {
            reference: image.reference.clone(),
            digest: image.digest.clone(),
        };
        self.images.iter().map(image).collect()
    }

    /// Writes a file that only this user can read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(path)
    }

    /// Takes the world down.
    pub(super) async fn stop(self) {
        self.kube.shutdown().await;
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

/// A token for this run. It guards nothing but loopback ports against mistakes: the process id keeps two runs on one
/// machine apart.
fn token(seed: u64, user: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(format!("{seed}/{user}/{}", std::process::id()));
    hex::encode(&digest[..16])
}
