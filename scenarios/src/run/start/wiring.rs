//! How the subject of a run is started and reached: its commands and variables, by what it is known to be ready, where reviews are sent.
//!
//! Owns the wiring. It starts nothing itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::run::attach::{Handed, Who};
use crate::run::calls::Door;
use crate::run::ready::{Port, Ready};
use crate::run::world::{World, free_port};
use crate::run::{Options, registration};
use crate::scenario::{self, Given, Ground, NamedCommand, Readiness, Scenario, SubjectKind, Which};
use crate::subject::{self, Attached, Launch, Line};

/// The variable that the planted service reads.
const PLANT_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";
/// What is wrong where no certificate can be read.
const BAD_CA: &str = "`ca` of the subject holds no certificate as PEM";
/// A bundle of all authorities that a machine trusts has a quarter of that.
const CA_BYTES_MAX: u64 = 1 << 20;
/// What the subject is to watch: `plural.group/version`, the judged ones first, with commas between them.
const WATCH_VARIABLE: &str = "LONGHAUL_WATCH";
/// In which namespace; empty for all of them.
const NAMESPACE_VARIABLE: &str = "LONGHAUL_NAMESPACE";

/// How the subject is started, the first time and every other.
pub(in crate::run) struct Again<'a> {
    pub(super) options: &'a Options,
    pub(super) variables: Vec<(&'static str, String)>,
    /// Where the first one serves reviews.
    pub(in crate::run) first: Option<SocketAddr>,
    /// Where it has its pages, if the harness knows.
    pub(in crate::run) health: Option<SocketAddr>,
    /// Where it is to show its metrics, if the scenario leaves that to the harness.
    pub(super) metrics: Option<u16>,
    /// Where it offers its API over Deployments, if the scenario calls.
    pub(super) door: Option<Door>,
}

/// Where reviews are sent.
pub(super) struct Reviews {
    pub(super) url: String,
    /// What its certificate must be for; empty: the host of the URL.
    pub(super) server_name: String,
    pub(super) ca_pem: String,
}

/// The SHA-256 of what makes up the subject, where that can be read.
pub(super) async fn digest(options: &Options, launches: &[Launch]) -> Result<Option<String>> {
    let subject = &options.source.scenario.subject;
    let running = subject.pid.map(|pid| PathBuf::from(format!("/proc/{pid}/exe")));
    let programs: Vec<PathBuf> = launches.iter().map(|launch| launch.program.clone()).chain(running).collect();
    let (ground, files) = (ground(options), subject.files.clone());
    // Reading a large program takes a while, and with `--jobs` other runs have their clocks on this thread.
    let digest = tokio::task::spawn_blocking(move || {
        if files.is_empty() {
            return Ok(scenario::digest_of_programs(&programs));
        }
        scenario::files_digest(&ground, &files).map(Some)
    });
    let digest = digest.await.context("the subject's program could not be read to its end")?;
    digest.map_err(|why| anyhow::anyhow!("{why}; mend `subject` of the scenario"))
}

/// All programs with their arguments, as the manifest names them.
pub(super) fn command_line(launches: &[Launch]) -> Vec<String> {
    let words = |launch: &Launch| {
        let name = launch.name.as_ref().map(|name| format!("{name}:"));
        name.into_iter().chain(launch.command_line()).collect::<Vec<_>>()
    };
    launches.iter().flat_map(words).collect()
}

/// Who is going to be started, or told of the run.
pub(super) fn who(options: &Options, world: &World, again: &Again<'_>, launches: Vec<Launch>) -> Result<Who> {
    let subject = &options.source.scenario.subject;
    if subject.kind != SubjectKind::Attach {
        return Ok(Who::Started(launches));
    }
    anyhow::ensure!(
        options.plant.is_none(),
        "--plant: nobody plants a bug in a subject that runs already (`kind: attach`)"
    );
    let attached = attached(options)?;
    let mut environment = again.environment(world)?;
    let mut handed = None;
    if let Some(path) = &subject.kubeconfig {
        let text = std::fs::read_to_string(world.kubeconfig()?).context("the kubeconfig could not be read again")?;
        let file = Handed::write(&options.source.directory.join(path), &text)?;
        let wanted = environment.iter_mut().filter(|(name, _)| name == "KUBECONFIG");
        wanted.for_each(|(_, value)| *value = text_of(file.path()));
        handed = Some(file);
    }
    Ok(Who::Attached(attached, handed, environment))
}

/// The subject that runs already. An error says what of it cannot be.
fn attached(options: &Options) -> Result<Attached> {
    let subject = &options.source.scenario.subject;
    if let Some(path) = &subject.kubeconfig {
        Handed::check(&options.source.directory.join(path))?;
    }
    Attached::find(subject.pid).map_err(|why| anyhow::anyhow!("{why}; mend `subject` of the scenario"))
}

impl Again<'_> {
    /// What to start next, how it is known to be ready, and where it serves reviews.
    pub(in crate::run) fn launch(&self, world: &World) -> Result<(Vec<Launch>, Ready, Option<SocketAddr>)> {
        let (options, scenario) = (self.options, &self.options.source.scenario);
        let webhook = webhook(scenario)?;
        let (mut launches, ready) = match scenario.subject.kind {
            SubjectKind::Service => service(options, world, webhook, self.door.as_ref())?,
            SubjectKind::Command => command(options, world, webhook)?,
            SubjectKind::Attach => {
                // Before there is a folder for the record.
                attached(options)?;
                (Vec::new(), ready(options, world, None)?.0)
            }
        };
        let given = self.given(world, webhook.filter(|_| scenario.subject.kind == SubjectKind::Command))?;
        let shared: Vec<_> = self.environment(world)?.into_iter().chain(given.variables()).collect();
        for launch in &mut launches {
            let words = launch.arguments.iter_mut().chain(launch.environment.iter_mut().map(|(_, value)| value));
            words.for_each(|word| *word = given.put(word));
            // The scenario has the last word: one of several processes may be told nothing of the witness.
            launch.environment.splice(0..0, shared.iter().cloned());
            if let Some(rate) = scenario.subject.clock_rate.filter(|rate| *rate > 1) {
                subject::make_faster(launch, rate)?;
            }
        }
        Ok((launches, ready, webhook))
    }

    /// What it is told by variables that also stand for their values in its words.
    fn given(&self, world: &World, webhook: Option<SocketAddr>) -> Result<Given> {
        let mut given = metrics_given(self.metrics);
        if let Some(address) = webhook {
            let files = world.certificate()?;
            given.give(scenario::WEBHOOK_PORT, address.port().to_string());
            given.give(scenario::TLS_CERT, text_of(&files.chain));
            given.give(scenario::TLS_KEY, text_of(&files.key));
            given.give(scenario::TLS_DIR, text_of(&files.folder));
        }
        Ok(given)
    }

    /// What every process of it is told by variables.
    fn environment(&self, world: &World) -> Result<Vec<(String, String)>> {
        let mut environment = Vec::new();
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set("KUBECONFIG", world.kubeconfig()?.display().to_string());
        self.variables.iter().for_each(|(name, value)| set(name, value.clone()));
        if let Some(plant) = &self.options.plant {
            set(PLANT_VARIABLE, plant.clone());
        }
        if let Some(login) = world.credentials()? {
            set("DOCKER_CONFIG", text_of(&login.docker));
        }
        let judged = self.options.source.scenario.judged();
        let watches: Vec<&str> = judged.iter().map(|(_, watch)| watch.as_str()).collect();
        set(WATCH_VARIABLE, watches.join(","));
        set(NAMESPACE_VARIABLE, String::new());
        Ok(environment)
    }
}

/// Where the subject is to serve admission reviews, if it does and the run says where.
fn webhook(scenario: &Scenario) -> Result<Option<SocketAddr>> {
    let is_told = scenario.subject.kind != SubjectKind::Attach;
    if is_told && scenario.subject.serves() {
        let fixed = scenario.subject.webhook.as_ref().and_then(|webhook| webhook.port);
        let port = fixed.map_or_else(free_port, Ok)?;
        Ok(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    } else {
        Ok(None)
    }
}

fn service(
    options: &Options,
    world: &World,
    webhook: Option<SocketAddr>,
    door: Option<&Door>,
) -> Result<(Vec<Launch>, Ready)> {
    let scenario = &options.source.scenario;
    let Some(program) = &options.service else { bail!("no service binary was named") };
    let admission = webhook.context("the service has no admission address")?;
    let health = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let files = world.certificate()?;
    let login = world.credentials()?;
    let wiring = subject::service::Wiring {
        admission,
        health,
        certificate: &files.chain,
        key: &files.key,
        registry: world.registry.host(),
        endpoint: world.registry.address(),
        login: login.as_ref().map(|login| (login.name.as_str(), login.password.as_path())),
        replicas: door.map(Door::section),
        trust: world.trusted.as_ref().map(|trusted| trusted.sections(world.registry.host())),
    };
    let config = subject::service::configuration(&scenario.subject, &ground(options), &wiring)?;
    // Each process has its own: one that is going must not follow the addresses of the next.
    let config = world.write(&format!("service-{}.yaml", admission.port()), &config)?;
    let launch = Launch {
        name: None,
        program: absolute(program)?,
        arguments: ["run", "--role", "all", "--config"]
            .map(str::to_owned)
            .into_iter()
            .chain([text_of(&config)])
            .collect(),
        environment: Vec::new(),
        directory: None,
        awaited: None,
    };
    Ok((vec![launch], Ready::Http(health, "/readyz")))
}

fn command(options: &Options, world: &World, webhook: Option<SocketAddr>) -> Result<(Vec<Launch>, Ready)> {
    let subject = &options.source.scenario.subject;
    let environment: Vec<_> = subject.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (ready, line) = ready(options, world, webhook)?;
    let launch = |name: Option<&NamedCommand>, command: &[String]| {
        let Some((program, arguments)) = command.split_first() else { bail!("the scenario names no command") };
        let own = name.iter().flat_map(|one| &one.env).map(|(name, value)| (name.clone(), value.clone()));
        let cwd = name.and_then(|one| one.cwd.as_ref()).or(subject.cwd.as_ref());
        Ok(Launch {
            name: name.map(|one| one.name.clone()),
            program: find(program, options.plant.is_some()),
            arguments: arguments.to_vec(),
            environment: environment.iter().cloned().chain(own).collect(),
            directory: cwd.map(|cwd| options.source.directory.join(cwd)),
            awaited: line.clone(),
        })
    };
    if subject.commands.is_empty() {
        return Ok((vec![launch(None, &subject.command)?], ready));
    }
    let launches = subject.commands.iter().map(|one| launch(Some(one), &one.command));
    Ok((launches.collect::<Result<_>>()?, ready))
}

/// By what a subject is known to be ready that is not the service, and the line of its output that says so, if one does.
fn ready(options: &Options, world: &World, webhook: Option<SocketAddr>) -> Result<(Ready, Option<Arc<Line>>)> {
    let scenario = &options.source.scenario;
    let (subject, port) = (&scenario.subject, port(scenario, webhook)?);
    let ready = match (&subject.ready, port.clone().filter(|_| subject.is_webhook_only())) {
        (Some(Readiness::Url(url)), _) => Ready::page(url).map_err(anyhow::Error::msg)?,
        (Some(Readiness::Log(text)), _) => {
            // Each process has its own: what the one before it wrote says nothing of the next.
            let line = Arc::new(Line::with(text));
            return Ok((Ready::Line(Arc::clone(&line)), Some(line)));
        }
        (Some(Readiness::Request(Which::First)), _) => Ready::FirstRequest { webhook: port, any: true },
        (None, Some(port)) => {
            let ca_pem = ca(options, world)?;
            Ready::Tls(port, mock_pki::client_config(&ca_pem, None, &["http/1.1"]).context(BAD_CA)?)
        }
        (None, None) => Ready::FirstRequest { webhook: port, any: false },
    };
    Ok((ready, None))
}

/// The port at which it serves reviews.
pub(super) fn port(scenario: &Scenario, webhook: Option<SocketAddr>) -> Result<Option<Port>> {
    match (webhook, &scenario.subject.url) {
        (Some(address), _) => Ok(Some(Port::ours(address))),
        (None, Some(url)) => Port::theirs(url).map(Some),
        (None, None) => Ok(None),
    }
}

/// The certificates of who signed that of its webhook.
fn ca(options: &Options, world: &World) -> Result<String> {
    let Some(path) = &options.source.scenario.subject.ca else { return Ok(world.authority.ca_pem().to_owned()) };
    let text = ground(options).text(path, CA_BYTES_MAX);
    let text = text.map_err(|why| anyhow::anyhow!("failed to read `ca`: {}: {why}", path.display()))?;
    Ok(text.text)
}

/// The files of the scenario, which were looked at when it was read.
fn ground(options: &Options) -> Ground {
    Ground::looked_at(&options.source.directory)
}

/// Where reviews are sent, and who signed the certificate there.
pub(super) fn reviews(options: &Options, world: &World, address: Option<SocketAddr>) -> Result<Option<Reviews>> {
    let scenario = &options.source.scenario;
    Ok(match (address, &scenario.subject.url) {
        (Some(address), _) => Some(Reviews {
            url: format!("https://{address}{}", registration::path(scenario)),
            server_name: "localhost".to_owned(),
            ca_pem: world.authority.ca_pem().to_owned(),
        }),
        (None, Some(url)) => {
            Some(Reviews { url: url.clone(), server_name: String::new(), ca_pem: ca(options, world)? })
        }
        (None, None) => None,
    })
}

/// Programs that come with Longhaul lie beside it and need no path; every other is looked up as a shell would. Our own
/// have their planted bugs in a program of its own; a foreign program may understand the variable by itself.
fn find(program: &str, planted: bool) -> PathBuf {
    if program.contains('/') {
        return PathBuf::from(program);
    }
    let names = [planted.then(|| format!("{program}-planted")), Some(program.to_owned())];
    let found = names.into_iter().flatten().find_map(|name| subject::sibling(&name).ok());
    found.unwrap_or_else(|| PathBuf::from(program))
}

/// A text with the port in the place of its variable.
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

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("failed to resolve {}", path.display()))
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
