//! How a run's subject is started: commands, environment variables, addresses, readiness condition, and review
//! endpoint.
//!
//! Owns the settings of the subject, but starts no process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use mock_faults::Name;

use crate::run::alerts::{self, Receiver};
use crate::run::attach::{Handed, Who};
use crate::run::calls::ApiAccess;
use crate::run::clocks::Clocks;
use crate::run::deploy::{Deployed, Watched};
use crate::run::front::Front;
use crate::run::mounted::Mounted;
use crate::run::ports::free_port;
use crate::run::ready::{Port, Ready};
use crate::run::redis::{self, Redis};
use crate::run::world::World;
use crate::run::{Options, registration};
use crate::scenario::{self, Given, Ground, LockUse, Other, Readiness, Scenario, Scene, Start, Which, Wiring};
use crate::subject::{self, Launch, Line};

const PLANT_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";
/// The error for a `ca` file without a certificate.
const BAD_CA: &str = "`ca` of the subject holds no certificate as PEM";
/// Maximum size of a file with certificates; the CA bundle of an operating system has a quarter of this size.
const CA_BYTES_MAX: u64 = 1 << 20;

/// Starts the subject's processes, the first time and again. The value never changes during a run.
pub(in crate::run) struct Launcher<'a> {
    pub(super) options: &'a Options,
    pub(super) variables: Vec<(&'static str, String)>,
    /// The port of the subject's metrics, if the scenario leaves the choice to the harness.
    pub(super) metrics: Option<u16>,
    /// The service's API for Deployments, if the scenario calls it.
    pub(super) door: Option<ApiAccess>,
    pub(super) receiver: Option<Arc<Receiver>>,
    /// The shared cache for verdicts, if the scenario has one.
    pub(super) redis: Option<SocketAddr>,
    /// The subject's validators (the processes that verify signatures). Restarted processes of the subject find the
    /// validators at the same addresses.
    pub(super) validators: Vec<Other>,
    /// Folders that the subject's processes find where a kubelet would mount them.
    pub(super) mounted: Option<Mounted>,
}

/// The addresses of the subject's running process.
pub(in crate::run) struct Endpoints {
    /// The address at which the process serves reviews.
    serves: Option<SocketAddr>,
    /// The address of the process's health pages, if the harness knows it.
    pub(in crate::run) health: Option<SocketAddr>,
    /// The address in front of the subject's processes, if a fault replaces the process.
    pub(in crate::run) front: Option<Arc<Front>>,
}

impl Endpoints {
    /// Opens the address in front of the subject's processes, if a fault replaces the process.
    pub(super) async fn open(
        scenario: &Scenario,
        machine: Ipv4Addr,
        serves: Option<SocketAddr>,
        health: Option<SocketAddr>,
    ) -> Result<Self> {
        if !scenario.faults.has(Name::SubjectRestart) {
            return Ok(Self { serves, health, front: None });
        }
        let front = Front::open(machine).await?;
        if let Some(address) = serves {
            front.add(address);
        }
        Ok(Self { serves, health, front: Some(Arc::new(front)) })
    }

    /// The address to which reviews are sent.
    pub(super) fn reviews(&self) -> Option<SocketAddr> {
        self.front.as_ref().map(|front| front.address()).or(self.serves)
    }

    /// Sets the addresses of the process that runs now. Returns the address of the process before it.
    pub(in crate::run) fn take_over(
        &mut self,
        serves: Option<SocketAddr>,
        health: Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        self.health = health;
        std::mem::replace(&mut self.serves, serves)
    }
}

/// The webhook to which reviews are sent, and how its certificate is verified.
pub(super) struct Reviews {
    pub(super) url: String,
    /// The name that the certificate must have; if empty, the host of the URL.
    pub(super) server_name: String,
    pub(super) ca_pem: String,
}

/// The SHA-256 of the subject's program files, if they can be read.
pub(super) async fn digest(options: &Options, start: &Start) -> Result<Option<String>> {
    let (programs, ground) = (start.programs(), ground(options));
    let files = options.source.scenario.subject.profile().build.to_vec();
    // Reading a large program takes a while, and with `--jobs` this thread also runs the timers of other runs.
    let digest = tokio::task::spawn_blocking(move || {
        if files.is_empty() {
            return Ok(scenario::digest_of_programs(&programs));
        }
        scenario::files_digest(&ground, &files).map(Some)
    });
    let digest = digest.await.context("the subject's program could not be read to its end")?;
    digest.map_err(|why| anyhow::anyhow!("{why}; correct `subject` of the scenario"))
}

/// All programs with their arguments, as the manifest shows them.
pub(super) fn command_line(launches: &[Launch]) -> Vec<String> {
    let words = |launch: &Launch| {
        let name = launch.name.as_ref().map(|name| format!("{name}:"));
        name.into_iter().chain(launch.command_line()).collect::<Vec<_>>()
    };
    launches.iter().flat_map(words).collect()
}

/// The subject: processes to start, a running process, or Deployments to apply.
pub(super) fn who(
    world: &World,
    launcher: &Launcher<'_>,
    start: Start,
    deployed: Option<Deployed>,
    watched: Option<Watched>,
) -> Result<Who> {
    if let Some(deployed) = deployed {
        return Ok(Who::Deployed(Box::new(deployed)));
    }
    let (attached, path) = match start {
        Start::Programs(launches, _) => return Ok(Who::Started(launches)),
        Start::Runs(attached, path) => (attached, path),
        Start::Deployed(_) => bail!("what is to be deployed was not prepared"),
    };
    let mut environment = launcher.environment(world)?;
    let mut handed = None;
    if let Some(path) = &path {
        let text = std::fs::read_to_string(world.kubeconfig()?).context("the kubeconfig could not be read again")?;
        let file = Handed::write(path, &text)?;
        let wanted = environment.iter_mut().filter(|(name, _)| name == scenario::KUBECONFIG);
        wanted.for_each(|(_, value)| *value = text_of(file.path()));
        handed = Some(file);
    }
    Ok(Who::Attached(attached, handed, environment, watched.map(Box::new)))
}

impl Launcher<'_> {
    pub(in crate::run) fn scenario(&self) -> &Scenario {
        &self.options.source.scenario
    }

    /// The processes to start next, their readiness condition, and their review endpoint.
    pub(in crate::run) fn launch(&self, world: &World) -> Result<(Start, Ready, Option<SocketAddr>)> {
        let (options, scenario) = (self.options, &self.options.source.scenario);
        let (webhook, kind) = (webhook(scenario, world.plane.machine())?, scenario.subject.kind());
        let (ready, awaited) = ready(options, world, webhook)?;
        let mut start = kind.start(&Scene {
            ground: &ground(options),
            awaited,
            is_planted: options.plant.is_some(),
            program: options.service.as_deref(),
            wiring: &|| self.wiring(world, webhook),
            write: &|name, text| world.write(name, text),
        })?;
        match &mut start {
            Start::Programs(launches, _) => {
                let given = self.given(world, webhook.filter(|_| !scenario.subject.profile().is_service))?;
                for launch in launches {
                    fill(launch, &given);
                    launch.mounts = self.mounted.as_ref().map(Mounted::mounts);
                    let line = Clocks::are_needed(&scenario.faults).then(|| world.clocks.line(launch.name.as_deref()));
                    let rate = scenario.clock_rate();
                    if rate > 1 || line.is_some() {
                        let since_ns = world.clock_since_ns;
                        subject::make_faster(launch, &subject::OwnClock { rate, since_ns, line })?;
                    }
                }
            }
            // This is checked before there is a folder for the record.
            Start::Runs(_, Some(path)) => Handed::check(path)?,
            Start::Runs(_, None) | Start::Deployed(_) => {}
        }
        let ready = match &start {
            Start::Programs(_, Some(health)) => Ready::Http(*health, "/readyz"),
            Start::Programs(_, None) | Start::Runs(..) | Start::Deployed(_) => ready,
        };
        Ok((start, ready, webhook))
    }

    /// Addresses and files of this run for the service's configuration.
    fn wiring(&self, world: &World, webhook: Option<SocketAddr>) -> Result<Wiring> {
        let files = world.certificate()?;
        let is_handed = self.options.source.scenario.registry.lock == Some(LockUse::Handed);
        Ok(Wiring {
            admission: webhook.context("the service has no admission address")?,
            health: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)?)),
            certificate: files.chain,
            key: files.key,
            authority: world.authority.ca_pem().to_owned(),
            registry: world.registry.host().to_owned(),
            endpoint: world.registry.address(),
            login: world.credentials()?.map(|login| (login.name, login.password)),
            replicas: self.door.as_ref().map(ApiAccess::section),
            alerts: self.alerts(world)?,
            shared_cache: self.shared_cache(world)?,
            lock: is_handed.then(|| world.lock()).transpose()?,
            trust: world.trusted.as_ref().map(|trusted| trusted.sections(world.registry.host())),
            installation: world.installation()?,
            others: self.validators.clone(),
        })
    }

    /// The service's configuration section for the shared cache; `None` without a shared cache.
    fn shared_cache(&self, world: &World) -> Result<Option<serde_json::Value>> {
        let Some(address) = self.redis else { return Ok(None) };
        Ok(Some(Redis::section(address, &world.write("shared-cache.key", redis::KEY)?)))
    }

    /// The service's configuration section for the receivers of alerts; `None` without receivers.
    fn alerts(&self, world: &World) -> Result<Option<serde_json::Value>> {
        let Some(receiver) = &self.receiver else { return Ok(None) };
        let template = world.write("alert.json", alerts::TEMPLATE)?;
        Ok(Some(receiver.section(&template)))
    }

    /// Values of the subject's environment variables, which also replace placeholders in the subject's arguments.
    fn given(&self, world: &World, webhook: Option<SocketAddr>) -> Result<Given> {
        let mut given = metrics_given(self.metrics);
        self.environment(world)?.into_iter().for_each(|(name, value)| given.give(name, value));
        let texts = self.options.source.scenario.subject.profile().texts;
        for name in scenario::FREE_PORTS {
            if scenario::is_written(name, texts.iter().map(|text| text.text)) {
                given.give(name, free_port(Ipv4Addr::LOCALHOST)?.to_string());
            }
        }
        if let Some(address) = webhook {
            let files = world.certificate()?;
            given.give(scenario::WEBHOOK_PORT, address.port().to_string());
            given.give(scenario::TLS_CERT, text_of(&files.chain));
            given.give(scenario::TLS_KEY, text_of(&files.key));
            given.give(scenario::TLS_DIR, text_of(&files.folder));
        }
        Ok(given)
    }

    /// Prepares a subject in Pods; `None` for another kind of subject.
    pub(super) async fn deploy(&self, world: &World, start: &mut Start) -> Result<Option<Deployed>> {
        let Start::Deployed(planned) = start else { return Ok(None) };
        let nodes = world.plane.nodes().context("`deployment` needs a control plane with nodes")?;
        let mut planned = planned.as_ref().clone();
        let service = || self.options.source.scenario.subject.own_service();
        planned.webhook = planned.webhook.take().or_else(service);
        // Files of this machine do not exist in a Pod, which has an account of its own.
        let is_file = |name: &str| [scenario::KUBECONFIG, scenario::DOCKER_CONFIG].contains(&name);
        let mut variables: Vec<_> = self.environment(world)?.into_iter().filter(|(name, _)| !is_file(name)).collect();
        // The variables by which clients in Pods find the API server (Kubernetes documentation, "Accessing the
        // Kubernetes API from a Pod").
        if let Some(way) = world.way() {
            variables.push(("KUBERNETES_SERVICE_HOST".to_owned(), way.ip().to_string()));
            variables.push(("KUBERNETES_SERVICE_PORT".to_owned(), way.port().to_string()));
        }
        Deployed::prepare(planned, nodes, world.api(), &variables).await.map(Some)
    }

    /// Finds the subject's existing Pods.
    pub(super) async fn watch(&self, world: &World) -> Result<Option<Watched>> {
        let Some(of) = self.options.source.scenario.subject.profile().attached_pods else { return Ok(None) };
        let nodes = world.plane.nodes().context("`attach: {pods: …}` needs a control plane with nodes")?;
        Watched::find(of, nodes, world.api()).await.map(Some)
    }

    /// Environment variables for every process of the subject.
    fn environment(&self, world: &World) -> Result<Vec<(String, String)>> {
        let mut environment = Vec::new();
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set(scenario::KUBECONFIG, world.kubeconfig()?.display().to_string());
        self.variables.iter().for_each(|(name, value)| set(name, value.clone()));
        if let Some(plant) = &self.options.plant {
            set(PLANT_VARIABLE, plant.clone());
        }
        if let Some(login) = world.credentials()? {
            set(scenario::DOCKER_CONFIG, text_of(&login.docker));
        }
        let judged = self.options.source.scenario.judged_resources();
        let watches: Vec<&str> = judged.iter().map(|(_, watch)| watch.as_str()).collect();
        set(scenario::WATCH, watches.join(","));
        set(scenario::NAMESPACE, String::new());
        for (name, value) in self.mounted.iter().flat_map(Mounted::environment) {
            set(name, value.clone());
        }
        Ok(environment)
    }
}

/// The subject's address for admission reviews, if it serves reviews and the run chooses the address.
fn webhook(scenario: &Scenario, machine: Ipv4Addr) -> Result<Option<SocketAddr>> {
    let subject = &scenario.subject;
    if !subject.serves() || subject.profile().url.is_some() {
        return Ok(None);
    }
    let fixed = subject.profile().serves.and_then(|serves| serves.port);
    let port = fixed.map_or_else(|| free_port(machine), Ok)?;
    Ok(Some(SocketAddr::from((machine, port))))
}

/// The readiness condition of a subject other than the service. Also returns the line of output that shows readiness,
/// if the scenario names one.
fn ready(options: &Options, world: &World, webhook: Option<SocketAddr>) -> Result<(Ready, Option<Arc<Line>>)> {
    let scenario = &options.source.scenario;
    let (subject, port) = (&scenario.subject, port(scenario, webhook)?);
    let ready = match (subject.profile().ready, port.clone().filter(|_| subject.watches_nothing())) {
        (Some(Readiness::Url(url)), _) => Ready::page(&url).map_err(anyhow::Error::msg)?,
        (Some(Readiness::Log(text)), _) => {
            // Each process has its own: output of an earlier process says nothing about the next.
            let line = Arc::new(Line::with(&text));
            return Ok((Ready::Line(Arc::clone(&line)), Some(line)));
        }
        (Some(Readiness::Request(Which::First)), _) => Ready::FirstRequest { webhook: port, any: true },
        (None, Some(port)) => {
            let ca_pem = ca(options, world)?;
            Ready::Tls(port, mock_pki::client_config_at(world.pace, &ca_pem, &["http/1.1"]).context(BAD_CA)?)
        }
        (None, None) => Ready::FirstRequest { webhook: port, any: false },
    };
    Ok((ready, None))
}

/// The endpoint at which the subject serves reviews.
pub(super) fn port(scenario: &Scenario, webhook: Option<SocketAddr>) -> Result<Option<Port>> {
    match (webhook, scenario.subject.profile().url) {
        (Some(address), _) => Ok(Some(Port::ours(address))),
        (None, Some(url)) => Port::theirs(url, scenario.subject.profile().server_name).map(Some),
        (None, None) => Ok(None),
    }
}

/// The CA certificates for the webhook's certificate, as PEM.
fn ca(options: &Options, world: &World) -> Result<String> {
    let Some(path) = options.source.scenario.subject.profile().ca else {
        return Ok(world.authority.ca_pem().to_owned());
    };
    let text = ground(options).text(path, CA_BYTES_MAX);
    let text = text.map_err(|why| anyhow::anyhow!("failed to read `ca`: {}: {why}", path.display()))?;
    Ok(text.text)
}

/// Access to the files of the scenario, which were checked when the scenario was read.
fn ground(options: &Options) -> Ground {
    Ground::looked_at(&options.source.directory)
}

/// The target of reviews, with the CA of its certificate.
pub(super) fn reviews(options: &Options, world: &World, address: Option<SocketAddr>) -> Result<Option<Reviews>> {
    let scenario = &options.source.scenario;
    Ok(match (address, scenario.subject.profile().url) {
        (Some(address), _) => Some(Reviews {
            url: format!("https://{address}{}", registration::path(scenario)),
            server_name: "localhost".to_owned(),
            ca_pem: world.authority.ca_pem().to_owned(),
        }),
        (None, Some(url)) => {
            let server_name = scenario.subject.profile().server_name.unwrap_or_default().to_owned();
            Some(Reviews { url: url.to_owned(), server_name, ca_pem: ca(options, world)? })
        }
        (None, None) => None,
    })
}

/// Replaces placeholders in a program's arguments and variables, and adds all values as environment variables.
fn fill(launch: &mut Launch, given: &Given) {
    launch.environment.iter_mut().for_each(|(_, value)| *value = given.put(value));
    let mut all = given.clone();
    launch.environment.iter().for_each(|(name, value)| all.give(name, value));
    launch.arguments.iter_mut().for_each(|word| *word = all.put(word));
    // Variables of the scenario take precedence, so that one of several processes can get no witness address.
    launch.environment.splice(0..0, given.variables());
}

/// The text, with the port in place of the placeholder for the port.
pub(super) fn with_port(text: &str, port: Option<u16>) -> String {
    metrics_given(port).put(text)
}

fn metrics_given(port: Option<u16>) -> Given {
    let mut given = Given::default();
    if let Some(port) = port {
        given.give(scenario::METRICS_PORT_NAME, port.to_string());
    }
    given
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
