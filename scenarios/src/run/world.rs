//! The environment of a subject: control plane, registry, certificates, and the files that tell the subject where they
//! are.
//!
//! All servers and files are made for one run and removed after it. Keys and tokens are in a temporary folder that only
//! this user can read; the run record contains no secret.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base64::Engine as _;
use loadgen::admission::Truth;
use mock_faults::{Family, Fault, FaultId, Fired, Hit, Player};

use super::clocks::Clocks;
use super::deploy::Deployed;
use super::drift::Drifts;
use super::endpoint::Endpoint;
use super::keys::Trusted;
use super::kills::Kills;
use super::payloads;
use super::plane::{Plane, token};
use super::redis::Redis;
use super::trouble::{self, Ground, Serving, Troubles};
use crate::keeper::Folder;
use crate::scenario::{Auth, RateLimit, Scenario};

/// Maximum size of a control plane's log that is copied into the record, so that a record of 100 hours stays below 200
/// MB.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// The subject's user name at the registry.
const LOGIN: &str = "subject";
/// The name of the symbolic link to the current certificate files, as in a kubelet's volume.
const LINK: &str = "..data";
/// The folder below `$TMPDIR` in which controller-runtime looks for certificates by default
/// (`webhook.Options.CertDir`). Many programs use the default and have no flag for it.
const USUAL: &str = "k8s-webhook-server";
const USUAL_INSIDE: &str = "serving-certs";
/// Counts the certificates, for the names of their folders.
static VERSIONS: AtomicU32 = AtomicU32::new(1);

pub(super) struct World {
    pub(super) plane: Plane,
    endpoint: Endpoint,
    /// The moment from which times of hits are counted.
    pub(super) epoch: Instant,
    pub(super) clocks: Clocks,
    /// Kills the subject's processes.
    pub(super) kills: Kills,
    pub(super) registry: mock_registry::Server,
    /// The subject's login, if the registry requires authentication.
    login: Option<Login>,
    pub(super) authority: Arc<mock_pki::Authority>,
    /// Injects faults of Pods and of programs.
    pub(super) troubles: Troubles,
    pub(super) images: Vec<mock_registry::Image>,
    /// The trusted keys, if images are signed.
    pub(super) trusted: Option<Trusted>,
    /// Time since which the clock of all the subject's processes runs faster, in ns.
    pub(super) clock_since_ns: i64,
    /// The faster clock of the subject, for checks of the subject's certificates.
    pub(super) pace: Option<go_rules::tls::Pace>,
    /// Validity of the subject's serving certificate, on the subject's clock.
    valid: Option<Duration>,
    services: Vec<String>,
    directory: Folder,
}

/// The folder in a record with the logs of a real control plane.
const LOGS: &str = "control-plane";

struct Login {
    name: String,
    password: String,
}

pub(super) struct Credentials {
    pub(super) name: String,
    pub(super) password: PathBuf,
    /// The folder with `config.json`, the format of docker and of every registry client.
    pub(super) docker: PathBuf,
}

pub(super) struct Certificate {
    pub(super) chain: PathBuf,
    pub(super) key: PathBuf,
    /// The folder with the certificate and the key.
    pub(super) folder: PathBuf,
}

impl World {
    /// Starts the control plane and the registry on free loopback ports.
    pub(super) async fn start(scenario: &Scenario, counts_bytes: bool) -> Result<Self> {
        let directory = Folder::make()?;
        let authority = Arc::new(mock_pki::Authority::generate("longhaul")?);
        let rate = scenario.clock_rate();
        let clock_since_ns = mock_clock::now();
        let pace = (rate > 1).then(|| go_rules::tls::Pace::from_now(rate));
        let namespace = Endpoint::namespace(&scenario.faults)?;
        let names: Vec<String> = namespace.iter().map(|namespace| namespace.address().to_string()).collect();
        let plane = Plane::start(scenario, &authority, directory.path(), names, pace).await?;
        let epoch = plane.mock().map_or_else(Instant::now, |mock| mock.epoch);
        let wanted = counts_bytes || Endpoint::is_needed(&scenario.faults);
        // Pods reach this machine at the address that the node uses, and local processes at the loopback address.
        let near = if scenario.subject.profile().needs_node { plane.machine() } else { Ipv4Addr::LOCALHOST };
        let near = SocketAddr::from((near, 0));
        let endpoint = Endpoint::open(wanted, namespace, plane.subject_address(), near, epoch, scenario.seed).await?;
        let login = Login { name: LOGIN.to_owned(), password: token(scenario.seed, "registry") };
        let mut config = mock_registry::Config::new();
        config.listen = SocketAddr::from((plane.machine(), 0));
        config.epoch = epoch;
        config.seed = scenario.seed;
        config.own_door = true;
        config.advertise = payloads::host(scenario);
        config.auth = scenario.registry.auth.of(&login.name, &login.password, false);
        config.rate_limit = scenario.registry.rate_limit.map(RateLimit::limit);
        let registry = mock_registry::Server::start(config).await.context("failed to start the mock registry")?;
        let trusted = scenario.registry.signed.then(|| Trusted::generate(directory.path().join("keys"))).transpose()?;
        let population = payloads::population(scenario);
        let images = match &trusted {
            Some(trusted) => registry.seed_signed(&population, trusted.keys()),
            None => registry.seed(&population),
        };
        let mut images = images.context("failed to seed the mock registry")?;
        let heavy = registry.seed_heavy(payloads::heavy(scenario)).context("failed to seed the mock registry")?;
        images.extend(heavy);
        let valid = trouble::first_valid(&scenario.faults);
        let login = (scenario.registry.auth != Auth::None).then_some(login);
        let services = services(scenario);
        let troubles = Troubles::new(epoch, scenario.seed);
        let (clocks, kills) = (Clocks::new(epoch), Kills::new(epoch));
        Ok(Self {
            plane,
            endpoint,
            epoch,
            clocks,
            kills,
            registry,
            login,
            authority,
            troubles,
            images,
            trusted,
            clock_since_ns,
            pace,
            valid,
            services,
            directory,
        })
    }

    /// Writes the subject's kubeconfig and returns its path. If a fault replaces the token during the run, the token is
    /// in a separate file beside the kubeconfig.
    pub(super) fn kubeconfig(&self) -> Result<PathBuf> {
        let text = self.plane.kubeconfig().context("the control plane does not know the subject's user")?;
        self.write("kubeconfig.yaml", &self.endpoint.direct(&text)?)
    }

    /// The subject's login to the registry, if the registry requires one.
    pub(super) fn credentials(&self) -> Result<Option<Credentials>> {
        let Some(Login { name, password }) = &self.login else { return Ok(None) };
        let docker = self.directory.path().join("docker");
        std::fs::create_dir_all(&docker).with_context(|| format!("failed to make {}", docker.display()))?;
        let auth = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
        let config = serde_json::json!({"auths": {self.registry.host(): {"auth": auth}}});
        self.write("docker/config.json", &config.to_string())?;
        let password = self.write("registry-password", password)?;
        Ok(Some(Credentials { name: name.clone(), password, docker }))
    }

    /// The folder with the client certificate for calls between the subject's processes, and the CA of all these
    /// processes.
    pub(super) fn installation(&self) -> Result<PathBuf> {
        let folder = self.folder("installation");
        if !folder.exists() {
            std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
            let pair = self.authority.client("longhaul-manager", &[])?;
            self.write("installation/ca.crt", self.authority.ca_pem())?;
            self.write("installation/client.crt", &pair.certificate_pem)?;
            self.write("installation/client.key", &pair.key_pem)?;
        }
        Ok(folder)
    }

    /// The serving certificate of the subject's webhook, shared by all its processes.
    pub(super) fn certificate(&self) -> Result<Certificate> {
        let tls = self.directory.path().join("tls");
        if !tls.exists() {
            std::fs::create_dir(&tls).with_context(|| format!("failed to make {}", tls.display()))?;
            self.rotate_certificate(self.valid)?;
            for name in ["tls.crt", "tls.key"] {
                std::os::unix::fs::symlink(Path::new(LINK).join(name), tls.join(name))?;
            }
            std::fs::create_dir(tls.join(USUAL))?;
            std::os::unix::fs::symlink("..", tls.join(USUAL).join(USUAL_INSIDE))?;
        }
        Ok(Certificate { chain: tls.join("tls.crt"), key: tls.join("tls.key"), folder: tls })
    }

    /// Replaces both files of the subject's serving certificate at once, as a kubelet does. With `None` the certificate
    /// is valid for longer than any run.
    pub(super) fn rotate_certificate(&self, valid: Option<Duration>) -> Result<()> {
        let names = self.serving_names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let pair = match (valid, self.pace) {
            (Some(valid), Some(pace)) => self.authority.server_at(&names, pace, valid),
            (Some(valid), None) => self.authority.server_for(&names, valid),
            (None, _) => self.authority.server(&names),
        }?;
        let version = format!("tls/..{}", VERSIONS.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir(self.directory.path().join(&version))?;
        self.write(&format!("{version}/tls.crt"), &pair.certificate_pem)?;
        self.write(&format!("{version}/tls.key"), &pair.key_pem)?;
        let tls = self.directory.path().join("tls");
        let (link, fresh) = (tls.join(LINK), tls.join("..fresh"));
        let old = std::fs::read_link(&link).ok();
        std::os::unix::fs::symlink(version.trim_start_matches("tls/"), &fresh)?;
        std::fs::rename(&fresh, &link)?;
        if let Some(old) = old {
            std::fs::remove_dir_all(tls.join(old))?;
        }
        Ok(())
    }

    fn serving_names(&self) -> Vec<String> {
        let usual = ["127.0.0.1".to_owned(), "localhost".to_owned(), self.plane.machine().to_string()];
        usual.into_iter().chain(self.services.iter().cloned()).collect()
    }

    /// Sets the Pods, programs and addresses on which the faults of this run act.
    pub(super) fn trouble(&self, deployed: Option<&Deployed>, redis: Option<&Redis>, drifts: Option<Arc<Drifts>>) {
        let serving = |secret: &(String, String)| Serving {
            secret: secret.clone(),
            authority: Arc::clone(&self.authority),
            // The names that the API server uses to call it.
            names: self.services.iter().cloned().chain(self.serving_names()).collect(),
        };
        let subject = |deployed: &Deployed| trouble::Subject {
            rollout: Arc::clone(&deployed.rollout),
            pods: deployed.pods.clone(),
            serving: deployed.secret.as_ref().map(serving),
        };
        self.troubles.act_on(Ground {
            deployed: deployed.map(subject),
            machinery: self.plane.machinery(),
            leaders: self.plane.leaders(),
            firewall: self.plane.nodes().and_then(|nodes| nodes.firewall()),
            api: Some(self.api()),
            registry: Some(self.registry.address()),
            cache: redis.map(Redis::cache),
            drifts,
        });
    }

    /// Writes the file with the digest lock of every existing image, as the images are before the run.
    pub(super) fn lock(&self) -> Result<PathBuf> {
        let entry = |image: &mock_registry::Image| {
            let digest = image.digest.as_ref()?;
            let (image, host) = (&image.reference, self.registry.host());
            let resolved = "2026-01-01T00:00:00Z";
            Some(serde_json::json!({"image": image, "digest": digest, "resolved": resolved, "registry": host}))
        };
        let images: Vec<_> = self.images.iter().filter_map(entry).collect();
        // JSON is YAML.
        self.write("images.lock", &serde_json::json!({"version": 1, "images": images}).to_string())
    }

    /// The path of a new folder of this run, not yet created.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The API access for objects of load and churn.
    pub(super) fn api(&self) -> loadgen::churn::Api {
        loadgen::churn::Api {
            url: self.plane.url(),
            ca_pem: self.plane.ca_pem().to_owned(),
            token: self.plane.harness_token().to_owned(),
            mark: self.plane.mark().map(|(key, value)| (key.to_owned(), value.to_owned())),
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
    pub(super) async fn keep_logs(&self, record: &Path) -> Result<()> {
        self.plane.keep_logs(&record.join(LOGS)).await?;
        let Some(logs) = self.plane.logs() else { return Ok(()) };
        let kept = record.join(LOGS);
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

    /// The proxy's address that the subject uses instead of the control plane's address, if the run has a proxy.
    pub(super) fn way(&self) -> Option<SocketAddr> {
        self.endpoint.address()
    }

    /// Bytes between the subject and the control plane so far, in both directions; `None` if they are not counted.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.endpoint.bytes()
    }

    /// The part of this run that injects the fault; `None` if no part can inject it.
    fn player(&self, fault: &Fault) -> Option<&dyn Player> {
        match fault.name.row().family {
            Family::Network => self.endpoint.faults().map(|faults| faults as &dyn Player),
            Family::Registry => Some(self.registry.faults()),
            Family::Pods | Family::Plane | Family::Subject => Some(&self.troubles),
            Family::Clock => Some(&self.clocks),
            Family::Process => Some(&self.kills),
            _ => self.plane.faults().map(|faults| faults as &dyn Player),
        }
    }

    pub(super) fn begin(&self, id: FaultId, fault: &Fault) -> Result<()> {
        let player = self.player(fault).context("it cannot be played here")?;
        player.begin(id, fault).with_context(|| format!("failed to begin the fault {}", fault.name.as_str()))?;
        if let (Some(passed), Some(mock)) = (mock_faults::passed(fault), self.plane.mock()) {
            mock.server.jump(passed);
        }
        Ok(())
    }

    /// Begins these faults with the writes in their `when`.
    pub(super) fn await_writes(&self, faults: impl IntoIterator<Item = (FaultId, Fault)>) {
        if let Some(plane) = self.plane.faults() {
            plane.await_writes(faults);
        }
    }

    /// The faults whose writes have come since the last call, with the times of the writes.
    pub(super) fn take_fired(&self) -> Vec<(Instant, Fired)> {
        let fired = self.plane.faults().map(mock_faults::Faults::take_fired).unwrap_or_default();
        fired.into_iter().map(|fired| (self.epoch + Duration::from_micros(fired.at_us), fired)).collect()
    }

    /// Lets a write of the subject continue that waits until a fault has begun.
    pub(super) fn began(&self, id: FaultId) {
        self.plane.faults().into_iter().for_each(|plane| plane.began(id));
    }

    pub(super) fn end(&self, id: FaultId, fault: &Fault) {
        self.player(fault).into_iter().for_each(|player| player.end(id));
    }

    pub(super) fn hits(&self, id: FaultId, fault: &Fault) -> u64 {
        self.player(fault).map_or(0, |player| player.hits(id))
    }

    /// Returns after a hit of a fault, which [`World::take_hits`] then returns.
    pub(super) async fn struck(&self) {
        let plane = async {
            match self.plane.faults() {
                Some(faults) => faults.struck().await,
                None => std::future::pending().await,
            }
        };
        let network = async {
            match self.endpoint.faults() {
                Some(faults) => faults.struck().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = plane => {}
            () = network => {}
            () = self.registry.faults().struck() => {}
            () = self.troubles.struck() => {}
            () = self.clocks.struck() => {}
            () = self.kills.struck() => {}
        }
    }

    /// The hits of faults since the last call, with the time of each hit.
    pub(super) fn take_hits(&self) -> Vec<(Instant, Hit)> {
        let plane = self.plane.faults().map(mock_faults::Faults::take_hits).unwrap_or_default();
        let network = self.endpoint.faults().map(mock_proxy::Faults::take_hits).unwrap_or_default();
        let registry = self.registry.faults().take_hits();
        plane
            .into_iter()
            .chain(network)
            .chain(registry)
            .chain(self.troubles.take_hits())
            .chain(self.clocks.take_hits())
            .chain(self.kills.take_hits())
            .map(|hit| (self.epoch + Duration::from_micros(hit.at_us), hit))
            .collect()
    }

    /// The references of images that a fault of the registry affects; `None` means all images.
    pub(super) fn references(&self, fault: &Fault) -> Option<BTreeSet<String>> {
        let pattern = fault.repository.as_deref()?;
        let about = |image: &&mock_registry::Image| {
            let rest = image.reference.strip_prefix(self.registry.host()).and_then(|rest| rest.strip_prefix('/'));
            let repository = rest.and_then(|rest| rest.rsplit_once(':')).map(|(repository, _)| repository);
            repository.is_some_and(|repository| match pattern.strip_suffix('*') {
                Some(prefix) => repository.starts_with(prefix),
                None => repository == pattern,
            })
        };
        Some(self.images.iter().filter(about).map(|image| image.reference.clone()).collect())
    }

    /// Reports every moved tag to the load, which then knows the right answers.
    pub(super) fn tell_moves(&self, truth: Arc<Truth>) {
        let digests = |image: &mock_registry::Image| Some((image.reference.clone(), image.digest.clone()?));
        let known: BTreeMap<String, String> = self.images.iter().filter_map(digests).collect();
        self.registry.on_move(move |reference, digest| {
            if let Some(was) = known.get(reference) {
                truth.moved(reference, was, digest);
            }
        });
    }

    /// The registry's address without faults, limits and authentication, and the path of an existing image, for
    /// canaries.
    pub(super) fn registry_canary(&self) -> Option<(SocketAddr, String)> {
        let image = self.images.iter().find(|image| image.digest.is_some());
        let path = image.and_then(|image| {
            let (name, tag) =
                image.reference.strip_prefix(self.registry.host())?.strip_prefix('/')?.rsplit_once(':')?;
            Some(format!("/v2/{name}/manifests/{tag}"))
        });
        Some((self.registry.own_address()?, path.unwrap_or_else(|| "/v2/".to_owned())))
    }

    pub(super) async fn stop(self) {
        self.troubles.stop().await;
        self.endpoint.close().await;
        self.plane.stop().await;
        self.registry.shutdown().await;
    }
}

/// The names by which an API server calls the subject's webhooks, if they are behind a Service.
fn services(scenario: &Scenario) -> Vec<String> {
    let own = scenario.subject.own_webhooks().unwrap_or_default();
    let hooks = own.iter().flat_map(|configuration| configuration.object["webhooks"].as_array().into_iter().flatten());
    let service = |hook: &serde_json::Value| {
        let service = &hook["clientConfig"]["service"];
        Some(format!("{}.{}.svc", service["name"].as_str()?, service["namespace"].as_str()?))
    };
    scenario.subject.profile().service_names.into_iter().chain(hooks.filter_map(service)).collect()
}
