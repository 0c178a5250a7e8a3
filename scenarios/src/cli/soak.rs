//! `longhaul soak`: runs a scenario or plays a documented bug, and exits with the verdict.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum as _;
use mock_faults::Fault;
use reports::exit;
use reports::judge::Verdict;
use units::Span;

use crate::calibrate::PLANTS;
use crate::clients::{self, Chosen};
use crate::repro::Play;
use crate::run::{self, Options};
use crate::scenario::{
    ControlPlaneKind, Http, Named, Need, Outside, Own, Scenario, Source, Witness, cannot, library, nearest,
};

mod bugs;

/// The planted service; it lies beside `longhaul` once it is built.
const PLANTED_SERVICE: &str = "longhaul-service-planted";
const SERVICE: &str = "longhaul-service";
/// The built-in service follows one kind and writes nothing.
const SERVICE_CANNOT: [Need; 4] = [Need::ManyKinds, Need::HandlerWrites, Need::StreamingLists, Need::SlowHandler];
/// Default scenario.
const DEFAULT: &str = "smoke";
/// The name for all documented bugs; a single one is `bugs/NAME`.
const BUGS: &str = "bugs";
/// More runs at once only delay each other.
const JOBS_MAX: u16 = 64;

/// Arguments of `longhaul soak`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Arguments {
    /// A scenario file, a name from the library, `bugs/NAME` for a documented bug, or `bugs` for a table of all bugs. Default: `smoke`, or
    /// with --plant the scenario that catches that bug.
    scenario: Option<String>,
    #[command(flatten)]
    outside: Outside,
    /// The seed, instead of the file's.
    #[arg(long)]
    seed: Option<u64>,
    /// The length of the whole run, such as 3h, instead of the file's. Warm-up and drain are included; the steady phase takes the rest.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<Span>,
    /// Shorten the lives of watches, tokens, history and idle connections of the mock control plane N times, so that minutes have a day's
    /// reconnects. Faults and phases keep their times.
    #[arg(long, value_name = "N")]
    compress: Option<u32>,
    /// Run the subject's own clock N times faster, and compress the server's side by the same factor. Works for any 64-bit program, also
    /// static ones and Go programs. Needs ptrace.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// The control plane, instead of the file's. Faults that only the mock can play are skipped, and the report lists them.
    #[arg(long, value_enum)]
    control_plane: Option<ControlPlaneKind>,
    #[command(flatten, next_help_heading = "An existing cluster, or a kind cluster")]
    cluster: Cluster,
    /// The folder for run records.
    #[arg(long, default_value = "runs")]
    runs: PathBuf,
    /// The folder for the record of this run, so that a pipeline knows the path beforehand. If the folder exists, it must be empty.
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    run_dir: Option<PathBuf>,
    /// Print JSON instead of text: the verdict as in `verdict.json`, and for a documented bug its story.
    #[arg(long)]
    json: bool,
    /// Exit 0 if there was not enough data to decide, and every decided budget passed.
    #[arg(long)]
    allow_inconclusive: bool,
    /// Plant this bug in the subject, to check that the judges catch it.
    #[arg(long)]
    plant: Option<String>,
    /// The service to test, instead of the one beside `longhaul`.
    #[arg(long)]
    service: Option<PathBuf>,
    /// Record and draw this series of the subject's own metrics, such as `workqueue_depth{name="pods"}`. May be repeated.
    #[arg(long, value_name = "NAME")]
    metrics_series: Vec<String>,
    /// Keep every commit and observation in the record, not only aggregates and anomalies.
    #[arg(long)]
    keep_events: bool,
    /// Serve metrics for Prometheus at this address during the run: a port (this machine only), or an address with a port.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    metrics: Option<SocketAddr>,
    /// Serve the report so far at this address during the run, and metrics as well.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    serve: Option<SocketAddr>,
    /// Print no live line.
    #[arg(long, short)]
    quiet: bool,
    /// With `bugs`: number of bugs played at once. Each takes its own ports.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(JOBS_MAX)))]
    jobs: u16,
    /// The client: a name from `cargo xtask matrix --list`, or a folder with a `subject.yaml` (`FOLDER#COLUMN` if that file has several
    /// columns). The file gives the client's command and the features that it lacks.
    #[arg(long, value_name = "WHAT", conflicts_with = "command", help_heading = "A client")]
    subject: Option<String>,
    #[command(flatten, next_help_heading = "A client")]
    play: Play,
    #[command(flatten, next_help_heading = "Objects of the client")]
    own: OwnKind,
}

/// The cluster that a run uses.
#[derive(clap::Args)]
struct Cluster {
    /// With `kubeconfig`: the name of the cluster or context that Longhaul may change. All created objects have a label and are removed
    /// after the run.
    #[arg(long = "i-know-this-cluster", value_name = "NAME")]
    known: Option<String>,
    /// With `kubeconfig`: the kubeconfig file, instead of `KUBECONFIG` or `~/.kube/config`. The file is only read.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// With `kind`: the node image.
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
    /// With `kind`: the version of Kubernetes, such as 1.34.1.
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// With `kind`: the number of control planes, 1 or 3.
    #[arg(long, value_name = "NUMBER")]
    control_planes: Option<u8>,
}

impl Cluster {
    fn named(&self) -> Named {
        let (image, kubernetes) = (self.node_image.clone(), self.kubernetes.clone());
        Named {
            containers: kind::containers::Config { image, kubernetes, control_planes: self.control_planes, file: None },
            kubeconfig: self.kubeconfig.clone(),
            cluster: self.known.clone(),
        }
    }
}

/// What the client's objects are of, and how it proves what it saw.
#[derive(clap::Args)]
struct OwnKind {
    /// Files and folders with manifests to apply first, such as the definition of `--resource`. May be given several times.
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// Write objects of this kind instead of the scenario's, for a controller with its own kind: `caches.cache.example.com/v1`. The objects
    /// are generated from the schema in the definition, see `--manifests`.
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// A YAML file with a template for objects of `--resource`, as in `script.template`.
    #[arg(long, value_name = "FILE", requires = "resource")]
    template: Option<PathBuf>,
    /// The way in which the client proves its observations, if it does not post them: `status`, `'finalizer, name: example.com/cleanup'`, …
    /// Limits that this witness cannot decide are not judged.
    #[arg(long, value_name = "WITNESS", value_parser = Own::witness)]
    witness: Option<Witness>,
}

impl OwnKind {
    /// The first given flag that the built-in service has no use for.
    fn first(&self) -> Option<&'static str> {
        let given = [
            ("--manifests", !self.manifests.is_empty()),
            ("--resource", self.resource.is_some()),
            ("--witness", self.witness.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

impl Arguments {
    fn scenario(&self) -> &str {
        let stage = |name: &String| PLANTS.iter().find(|plant| plant.name == *name).map(|plant| plant.stage);
        let given = self.scenario.as_deref();
        given.or_else(|| self.plant.as_ref().and_then(stage)).unwrap_or(DEFAULT)
    }

    /// Whether all documented bugs are meant.
    fn is_all(&self) -> bool {
        self.scenario() == BUGS
    }

    /// Whether the report is a story: for a documented bug, or a scenario with another client as its subject.
    fn is_story(&self, scenario: &Scenario) -> bool {
        scenario.repro.is_some() || self.play.is_some()
    }
}

/// Reads the scenario, runs it and judges it.
pub(super) fn soak(mut arguments: Arguments) -> Result<u8> {
    if let Some(word) = arguments.subject.take() {
        client(&mut arguments, &word)?;
    }
    let arguments = &arguments;
    if let Some(flag) = arguments.own.first().filter(|_| arguments.play.command.is_empty()) {
        bail!("{flag} needs your own client: name it with --subject, or write its command after `--`");
    }
    let verdict = if arguments.is_all() {
        let bugs = Source::bugs()?;
        let prepared = bugs.into_iter().map(|bug| prepared(arguments, bug)).collect::<Result<_>>()?;
        // The run's own task stays on this thread; its servers and load use the others.
        super::block_on(tokio::task::LocalSet::new().run_until(Box::pin(bugs::all(prepared, arguments))))?
    } else {
        let options = prepared(arguments, named(arguments.scenario(), arguments.outside)?)?;
        if arguments.is_story(&options.source.scenario) {
            super::block_on(bugs::one(options, arguments))?
        } else {
            let format = if arguments.json { run::Format::Json } else { run::Format::Text };
            super::block_on(run::run(options, format))?.verdict
        }
    };
    let allowed = arguments.allow_inconclusive && verdict == Verdict::Inconclusive;
    Ok(if allowed { exit::PASS } else { verdict.exit_code() })
}

/// Replaces a client's name or folder by the command that starts it.
fn client(arguments: &mut Arguments, word: &str) -> Result<()> {
    let clocks = if arguments.play.own_clocks || arguments.is_all() {
        Vec::new()
    } else {
        clients::clocks(&named(arguments.scenario(), arguments.outside)?.scenario)
    };
    let start = Chosen::of(word).with_context(|| format!("--subject {word}"))?;
    let start = super::block_on(async { Ok(start.start(&clocks).await) })?;
    let start = start.with_context(|| format!("--subject {word}: skipped: needs"))?;
    let play = &mut arguments.play;
    play.command = start.command;
    play.http = play.http.or(match start.http {
        Some(1) => Some(Http::One),
        Some(2) => Some(Http::Two),
        _ => None,
    });
    play.cannot.extend(start.cannot.iter().filter_map(|need| Need::from_str(need, false).ok()));
    Ok(())
}

pub(super) fn named(name: &str, outside: Outside) -> Result<Source> {
    let bug = name.strip_prefix(BUGS).and_then(|rest| rest.strip_prefix('/')).filter(|_| !Path::new(name).exists());
    let Some(bug) = bug else { return Ok(Source::read_within(name, outside.reach())?) };
    let known: Vec<&str> = library::bug_names().collect();
    if known.contains(&bug) {
        return Ok(Source::read(bug)?);
    }
    let near = nearest(bug, &known).map(|near| format!(" (did you mean `bugs/{near}`?)")).unwrap_or_default();
    bail!("there is no bug `{bug}` in the library{near}; `longhaul show library` names all {}", known.len())
}

/// The scenario with all changes from the command line.
fn prepared(arguments: &Arguments, mut source: Source) -> Result<Options> {
    if let Some(seed) = arguments.seed {
        source.sow(seed)?;
    }
    if let Some(length) = arguments.length {
        source.last(length)?;
    }
    source.follow(&arguments.metrics_series)?;
    source.hurry(arguments.compress, arguments.clock_rate)?;
    source.scenario.control_plane.named = arguments.cluster.named();
    let left_out = arguments.control_plane.and_then(|kind| switch(&mut source.scenario, kind));
    if left_out.is_some() {
        source.draw("--control-plane")?;
    }
    let service = if is_service(arguments, &source) { Some(service(arguments)?) } else { arguments.service.clone() };
    turn(&arguments.own, &mut source, arguments.is_all())?;
    let repeat = repeat(arguments, &source);
    let quiet = arguments.quiet || arguments.is_all() || (arguments.json && arguments.is_story(&source.scenario));
    Ok(Options {
        source,
        runs: arguments.runs.clone(),
        run_dir: arguments.run_dir.clone(),
        plant: arguments.plant.clone(),
        service,
        keep_events: arguments.keep_events,
        quiet,
        left_out,
        counts_bytes: false,
        repeat,
        window: run::Addresses { metrics: arguments.metrics, page: arguments.serve },
    })
}

/// Whether the built-in service is the subject.
fn is_service(arguments: &Arguments, source: &Source) -> bool {
    source.scenario.subject.kind().is_service() && arguments.play.command.is_empty()
}

/// The subject of a scenario, and how it is played.
fn play_of(arguments: &Arguments, source: &Source) -> Play {
    let mut play = arguments.play.clone();
    if is_service(arguments, source) {
        play.cannot = SERVICE_CANNOT.to_vec();
    }
    play
}

/// The path of the service binary to test.
fn service(arguments: &Arguments) -> Result<PathBuf> {
    if let Some(path) = &arguments.service {
        anyhow::ensure!(path.is_file(), "--service {}: no such file", path.display());
        return Ok(path.clone());
    }
    let name = if arguments.plant.is_some() { PLANTED_SERVICE } else { SERVICE };
    let remedy = "build it first: `cargo xtask soak` does that (with `--plant NAME` also the planted one), or name one with --service";
    crate::subject::sibling(name).context(remedy)
}

/// Gives the scenario other objects and another witness, and prints which limits stay undecided.
fn turn(own: &OwnKind, source: &mut Source, is_quiet: bool) -> Result<()> {
    let OwnKind { manifests, resource, template, witness } = own;
    let (manifests, resource) = (manifests.clone(), resource.clone());
    let own = Own { manifests, resource, template: template.clone(), witness: witness.clone() };
    if own.is_none() {
        return Ok(());
    }
    source.own(&own)?;
    if witness.is_none() {
        return Ok(());
    }
    let unseen = crate::unseen::forget(&mut source.scenario);
    if !unseen.is_empty() && !is_quiet {
        let witness = source.scenario.subject.witness.name();
        let unseen = unseen.join(", ");
        crate::out::err!("longhaul: not judged, because the witness `{witness}` does not report it: {unseen}");
    }
    Ok(())
}

/// Runs the scenario on another control plane. Returns a text about the parts that this leaves out.
fn switch(scenario: &mut Scenario, kind: ControlPlaneKind) -> Option<String> {
    scenario.control_plane.kind = kind;
    let whole = scenario.clone();
    let names = scenario.faults.retain(|fault, all| is_played(&whole, kind, fault, all));
    if names.is_empty() {
        return None;
    }
    let only = if names.iter().any(|name| !is_of_the_mock(name)) {
        format!("cannot be played on `{}`", kind.name())
    } else {
        "only the mock API server can play them".to_owned()
    };
    Some(format!("left out, because {only}: {}", names.join(", ")))
}

/// Whether a fault can be played there, and the faults that it waits for as well.
fn is_played(scenario: &Scenario, kind: ControlPlaneKind, fault: &Fault, all: &[Fault]) -> bool {
    let waits = fault.when.as_ref().is_none_or(|when| all.iter().any(|other| other.id.as_ref() == Some(&when.hit)));
    cannot(scenario, kind, fault).is_none() && waits
}

fn is_of_the_mock(name: &str) -> bool {
    let named = mock_faults::Name::ALL.iter().find(|one| one.as_str() == name);
    named.is_some_and(|name| name.row().family.is_of_the_mock())
}

/// The command that repeats this run.
fn repeat(arguments: &Arguments, source: &Source) -> String {
    let flag = |name: &str, value: Option<String>| {
        value.map(|value| format!(" --{name} {}", crate::quoted(&value))).unwrap_or_default()
    };
    let paths = |name: &str, paths: &[PathBuf]| {
        paths.iter().map(|path| flag(name, Some(path.to_string_lossy().into_owned()))).collect::<String>()
    };
    let path = |name: &str, path: &Option<PathBuf>| paths(name, path.as_slice());
    let own = &arguments.own;
    let asked = if arguments.is_all() {
        format!("{BUGS}/{}", source.scenario.name)
    } else {
        crate::quoted(arguments.scenario())
    };
    let parts = [
        flag("plant", arguments.plant.clone()),
        format!(" {asked}{} --seed {}", arguments.outside.repeated(), source.scenario.seed),
        flag("for", arguments.length.map(|length| length.to_string())),
        flag("compress", arguments.compress.map(|times| times.to_string())),
        flag("clock-rate", arguments.clock_rate.map(|rate| rate.to_string())),
        flag("control-plane", arguments.control_plane.map(|kind| kind.name().to_owned())),
        flag("i-know-this-cluster", arguments.cluster.known.clone()),
        path("kubeconfig", &arguments.cluster.kubeconfig),
        flag("node-image", arguments.cluster.node_image.clone()),
        flag("kubernetes", arguments.cluster.kubernetes.clone()),
        flag("control-planes", arguments.cluster.control_planes.map(|number| number.to_string())),
        arguments.metrics_series.iter().map(|name| flag("metrics-series", Some(name.clone()))).collect(),
        path("service", &arguments.service),
        if arguments.keep_events { " --keep-events" } else { "" }.to_owned(),
        paths("manifests", &own.manifests),
        flag("resource", own.resource.clone()),
        path("template", &own.template),
        flag("witness", own.witness.as_ref().and_then(|witness| serde_json::to_string(witness).ok())),
        arguments.play.repeated(),
    ];
    format!("{} soak{}", crate::started_as(), parts.concat())
}
