//! Before the run: the world, the plans, the subject's wiring and the manifest. Nothing of the subject has been started
//! when this is done, so every error here is an error of the scenario or of the machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use loadgen::script::{self, Script};
use reports::record::{Manifest, MetricsPlan};

use super::feed::Feed;
use super::front::Front;
use super::ready::Ready;
use super::registration::{self, Registration};
use super::world::{World, free_port};
use super::{Options, manifest, payloads};
use crate::clock::Clock;
use crate::machine;
use crate::scenario::{self, METRICS_PORT, Readiness, Scenario, SubjectKind, Which};
use crate::subject::{self, Launch, Line};
use crate::witness::{self, Ear, Heard};

/// Runs of one scenario and seed that may start in the same second in one folder.
const SAME_SECOND_MAX: u32 = 100;
/// What a subject logs into its record is for the eyes of who ran it.
const RECORD_MODE: u32 = 0o700;
/// The variable that the planted service reads.
const PLANT_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";
/// Where the subject posts what it saw.
/// What the subject is to watch: `plural.group/version`, the judged ones first, with commas between them.
const WATCH_VARIABLE: &str = "LONGHAUL_WATCH";
/// In which namespace; empty for all of them.
const NAMESPACE_VARIABLE: &str = "LONGHAUL_NAMESPACE";

/// Everything that is ready before the subject starts.
pub(super) struct Prepared<'a> {
    pub(super) directory: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) world: World,
    pub(super) subject: SubjectPlan<'a>,
    pub(super) load: LoadPlan,
}

/// How the subject is started, known to be ready, and heard.
pub(super) struct SubjectPlan<'a> {
    pub(super) launch: Launch,
    pub(super) ready: Ready,
    pub(super) heard: Heard,
    pub(super) ear: Ear,
    /// Listens for what the subject proves.
    pub(super) witness: witness::Open,
    pub(super) clock: Clock,
    /// Where commits come from.
    pub(super) feed: Feed,
    /// How it is started once more.
    pub(super) again: Again<'a>,
    /// The address in front of its processes, where there are several.
    pub(super) front: Option<Arc<Front>>,
    /// What of its own metrics is followed.
    pub(super) metrics: Option<MetricsPlan>,
}

/// How the subject is started, the first time and every other.
pub(super) struct Again<'a> {
    options: &'a Options,
    variables: Vec<(&'static str, String)>,
    /// Where the first one serves reviews.
    pub(super) first: Option<SocketAddr>,
    /// Where it has its pages, if the harness knows.
    pub(super) health: Option<SocketAddr>,
    /// Where it is to show its metrics, if the scenario leaves that to the harness.
    metrics: Option<u16>,
}

/// What load does.
pub(super) struct LoadPlan {
    pub(super) admission: Option<(payloads::Planned, loadgen::admission::Target)>,
    /// Made when the subject is ready, before anything of the load.
    pub(super) registration: Option<Registration>,
    pub(super) churn: Option<loadgen::churn::Plan>,
    /// Its objects exist already.
    pub(super) script: Option<Script>,
}

/// Prepares a run.
pub(super) async fn prepare(options: &Options) -> Result<Prepared<'_>> {
    let scenario = &options.source.scenario;
    let world = World::start(scenario).await?;
    let clock = Clock::default();
    let (ear, heard) = witness::channel(clock.clone());
    let witness = scenario.subject.witness.open(&ear).await.context("failed to start the witness")?;
    let mut again = Again {
        options,
        variables: witness.variables.clone(),
        first: None,
        health: None,
        metrics: metrics_port(scenario)?,
    };
    let (launch, mut ready, webhook) = again.launch(&world)?;
    (again.first, again.health) = (webhook, ready.health());
    let front = front(scenario, webhook).await?;
    let is_told = scenario.subject.ready.is_some() || scenario.subject.is_webhook_only();
    if super::timeline::begins_before(&scenario.faults) && !is_told {
        // What it says of itself may wait for the very list that a fault holds back.
        ready = Ready::FirstRequest { webhook: webhook.filter(|_| scenario.admission.is_some()), any: false };
    }
    let judged = scenario.judged();
    let reached = front.as_ref().map(|front| front.address()).or(webhook);
    let mut load = load_plan(scenario, &world, reached)?;
    // Reading a large program takes a while, and with `--jobs` other runs have their clocks on this thread.
    let program = launch.program.clone();
    let (folder, files) = (options.source.directory.clone(), scenario.subject.files.clone());
    let digest = tokio::task::spawn_blocking(move || {
        if files.is_empty() {
            return Ok(machine::digest(&program).ok());
        }
        scenario::files_digest(&folder, &files).map(Some)
    });
    let digest = digest.await.context("the subject's program could not be read to its end")?;
    let digest = digest.map_err(|why| anyhow::anyhow!("{why}; mend `subject` of the scenario"))?;
    let metrics = metrics(scenario, again.health, again.metrics);
    let mut manifest = manifest::manifest(options, &launch, digest, &load, &world.plane, metrics.clone());
    let directory = match &options.run_dir {
        Some(named) => named_directory(named)?,
        None => directory(&options.runs, &mut manifest)?,
    };
    let goes_back = scenario.faults.iter().any(|fault| fault.name == mock_faults::Name::Rewind);
    let pointer = scenario.subject.witness.progress().map(str::to_owned);
    let feed = Feed::follow(&world.plane, world.api(), &judged, pointer, goes_back).await?;
    // After the feed, so that the first objects are commits as well; before the subject, which has to find them.
    load.script = script(scenario, &world).await?;
    let subject = SubjectPlan { launch, ready, heard, ear, witness, clock, feed, again, front, metrics };
    Ok(Prepared { directory, manifest, world, subject, load })
}

impl Again<'_> {
    /// What to start next, how it is known to be ready, and where it serves reviews.
    pub(super) fn launch(&self, world: &World) -> Result<(Launch, Ready, Option<SocketAddr>)> {
        let (options, scenario) = (self.options, &self.options.source.scenario);
        let webhook = webhook(scenario)?;
        let (mut launch, ready) = match scenario.subject.kind {
            SubjectKind::Service => service(options, world, webhook)?,
            SubjectKind::Command => command(options, world, webhook)?,
        };
        let mut set = |name: &str, value: String| launch.environment.push((name.to_owned(), value));
        set("KUBECONFIG", world.kubeconfig()?.display().to_string());
        self.variables.iter().for_each(|(name, value)| set(name, value.clone()));
        if let Some(plant) = &options.plant {
            set(PLANT_VARIABLE, plant.clone());
        }
        if let Some(login) = world.credentials()? {
            set("DOCKER_CONFIG", text(&login.docker));
        }
        if let Some(port) = self.metrics {
            set("LONGHAUL_METRICS_PORT", port.to_string());
        }
        launch.arguments.iter_mut().for_each(|argument| *argument = with_port(argument, self.metrics));
        let judged = scenario.judged();
        let watches: Vec<&str> = judged.iter().map(|(_, watch)| watch.as_str()).collect();
        set(WATCH_VARIABLE, watches.join(","));
        set(NAMESPACE_VARIABLE, String::new());
        if let Some(rate) = scenario.subject.clock_rate.filter(|rate| *rate > 1) {
            subject::make_faster(&mut launch, rate)?;
        }
        Ok((launch, ready, webhook))
    }
}

/// What of the subject's own metrics is followed. The service has a page of them; where its processes follow each other, each has
/// another, and none is followed unless the scenario says where.
fn metrics(scenario: &Scenario, health: Option<SocketAddr>, port: Option<u16>) -> Option<MetricsPlan> {
    let subject = &scenario.subject;
    let own = health.filter(|_| subject.restarts.is_none()).map(|address| format!("http://{address}/metrics"));
    let told = subject.metrics.as_ref();
    let url = told.and_then(|metrics| metrics.url.as_ref()).map(|url| with_port(url, port)).or(own)?;
    let heap = told.and_then(|metrics| metrics.heap.clone());
    let every_ms = crate::clock::millis(crate::metrics::every(scenario.phases.steady.0));
    Some(MetricsPlan { url, every_ms, heap, series: scenario::series(scenario) })
}

/// A port for the metrics, where the scenario names the variable instead.
fn metrics_port(scenario: &Scenario) -> Result<Option<u16>> {
    let url = scenario.subject.metrics.as_ref().and_then(|metrics| metrics.url.as_ref());
    url.filter(|url| url.contains(METRICS_PORT)).map(|_| free_port()).transpose()
}

/// A text with the port in the place of its variable.
fn with_port(text: &str, port: Option<u16>) -> String {
    port.map_or_else(|| text.to_owned(), |port| text.replace(METRICS_PORT, &port.to_string()))
}

/// The address in front of the subject's processes, where one follows the other.
async fn front(scenario: &Scenario, webhook: Option<SocketAddr>) -> Result<Option<Arc<Front>>> {
    if scenario.subject.restarts.is_none() {
        return Ok(None);
    }
    let front = Front::open().await?;
    if let Some(address) = webhook {
        front.add(address);
    }
    Ok(Some(Arc::new(front)))
}

/// Makes the folder that was named for this record, or takes it if it is empty.
fn named_directory(folder: &Path) -> Result<PathBuf> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(RECORD_MODE).create(folder);
    made.with_context(|| format!("failed to make the folder {}", folder.display()))?;
    let mut inside = std::fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    if inside.next().is_some() {
        bail!("--run-dir {}: there is something in it already; name another one or empty it", folder.display());
    }
    Ok(folder.to_owned())
}

/// Makes the run's directory. Two runs of one scenario that start in the same second get different names.
fn directory(runs: &Path, manifest: &mut Manifest) -> Result<PathBuf> {
    std::fs::create_dir_all(runs).with_context(|| format!("failed to make the folder {}", runs.display()))?;
    let id = manifest.run_id.clone();
    for number in 1..=SAME_SECOND_MAX {
        if number > 1 {
            manifest.run_id = format!("{id}-{number}");
        }
        let directory = runs.join(&manifest.run_id);
        match std::fs::DirBuilder::new().mode(RECORD_MODE).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to make the folder {}", directory.display()));
            }
        }
    }
    bail!("there are already {SAME_SECOND_MAX} records named {id} in {}", runs.display())
}

/// Where the subject serves admission reviews, if it does.
fn webhook(scenario: &Scenario) -> Result<Option<SocketAddr>> {
    let serves = scenario.subject.kind == SubjectKind::Service || scenario.subject.webhook.is_some();
    if serves { Ok(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)))) } else { Ok(None) }
}

fn service(options: &Options, world: &World, webhook: Option<SocketAddr>) -> Result<(Launch, Ready)> {
    let scenario = &options.source.scenario;
    let Some(program) = &options.service else { bail!("no service binary was named") };
    let admission = webhook.context("the service has no admission address")?;
    let health = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let files = world.certificate()?;
    let login = world.credentials()?;
    let wiring = subject::service::Wiring {
        admission,
        health,
        certificate: &files.certificate,
        key: &files.key,
        registry: world.registry.host(),
        endpoint: world.registry.address(),
        login: login.as_ref().map(|login| (login.name.as_str(), login.password.as_path())),
    };
    let config = subject::service::configuration(&scenario.subject, &options.source.directory, &wiring)?;
    // Each process has its own: one that is going must not follow the addresses of the next.
    let config = world.write(&format!("service-{}.yaml", admission.port()), &config)?;
    let launch = Launch {
        program: absolute(program)?,
        arguments: ["run", "--role", "all", "--config"].map(str::to_owned).into_iter().chain([text(&config)]).collect(),
        environment: Vec::new(),
        directory: None,
        awaited: None,
    };
    Ok((launch, Ready::Http(health, "/readyz")))
}

fn command(options: &Options, world: &World, webhook: Option<SocketAddr>) -> Result<(Launch, Ready)> {
    let subject = &options.source.scenario.subject;
    let Some((program, arguments)) = subject.command.split_first() else { bail!("the scenario names no command") };
    let mut environment: Vec<_> = subject.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(address) = webhook {
        let files = world.certificate()?;
        environment.push(("LONGHAUL_WEBHOOK_PORT".to_owned(), address.port().to_string()));
        environment.push(("LONGHAUL_TLS_CERT".to_owned(), text(&files.certificate)));
        environment.push(("LONGHAUL_TLS_KEY".to_owned(), text(&files.key)));
    }
    let directory = subject.cwd.as_ref().map(|cwd| options.source.directory.join(cwd));
    let mut launch = Launch {
        program: find(program, options.plant.is_some()),
        arguments: arguments.to_vec(),
        environment,
        directory,
        awaited: None,
    };
    let ready = match (&subject.ready, webhook.filter(|_| subject.is_webhook_only())) {
        (Some(Readiness::Url(url)), _) => Ready::page(url).map_err(anyhow::Error::msg)?,
        (Some(Readiness::Log(text)), _) => {
            // Each process has its own: what the one before it wrote says nothing of the next.
            let line = Arc::new(Line::with(text));
            launch.awaited = Some(Arc::clone(&line));
            Ready::Line(line)
        }
        (Some(Readiness::Request(Which::First)), _) => Ready::FirstRequest { webhook, any: true },
        (None, Some(address)) => {
            Ready::Tls(address, mock_pki::client_config(world.authority.ca_pem(), None, &["http/1.1"])?)
        }
        (None, None) => Ready::FirstRequest { webhook, any: false },
    };
    Ok((launch, ready))
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

fn load_plan(scenario: &Scenario, world: &World, webhook: Option<SocketAddr>) -> Result<LoadPlan> {
    let length = scenario.phases.loaded();
    let plan = payloads::plan(scenario, &world.images)?;
    if let Some(truth) = plan.as_ref().and_then(payloads::Planned::truth) {
        if let Some(staleness) = scenario.budgets.registry.as_ref().and_then(|registry| registry.staleness) {
            truth.may_be_stale(staleness.0);
        }
        world.tell_moves(truth);
    }
    let admission = match (plan, webhook) {
        (Some(plan), Some(address)) => {
            let path = registration::path(scenario);
            let target = loadgen::admission::Target {
                url: format!("https://{address}{path}"),
                server_name: "localhost".to_owned(),
                ca_pem: world.authority.ca_pem().to_owned(),
                client_certificate: None,
            };
            Some((plan, target))
        }
        _ => None,
    };
    let churn = scenario.churn.as_ref().map(|config| loadgen::churn::Plan::build(config, scenario.seed, length));
    let mut churn = churn.transpose().context("failed to plan the churn")?;
    if world.plane.mock().is_none() {
        // A real control plane has no inside view: what churn wrote is the second witness beside the audit.
        churn = churn.map(loadgen::churn::Plan::recording_writes);
    }
    let registration = match webhook {
        Some(address) => Registration::of(scenario, address, world.authority.ca_pem())?,
        None => None,
    };
    Ok(LoadPlan { admission, registration, churn, script: None })
}

/// Makes the objects of the script.
async fn script(scenario: &Scenario, world: &World) -> Result<Option<Script>> {
    let Some(config) = &scenario.script else { return Ok(None) };
    let mut plan = script::Plan::build(config, scenario.seed).context("failed to plan the script")?;
    if world.plane.mock().is_none() {
        plan = plan.recording_writes();
    }
    Ok(Some(Script::start(plan, &world.api()).await.context("failed to begin the script")?))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("failed to resolve {}", path.display()))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
