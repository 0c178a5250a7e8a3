//! `longhaul soak`: runs a scenario or reproduces a documented bug, and exits with the verdict.

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

/// File name of the service with planted bugs. A build puts the program beside `longhaul`.
const PLANTED_SERVICE: &str = "longhaul-service-planted";
const SERVICE: &str = "longhaul-service";
/// Features that the built-in service lacks, because the service watches one kind and writes no objects.
const SERVICE_CANNOT: [Need; 4] = [Need::ManyKinds, Need::HandlerWrites, Need::StreamingLists, Need::SlowHandler];
const DEFAULT: &str = "smoke";
/// The argument that selects all documented bugs; `bugs/NAME` selects one bug.
const BUGS: &str = "bugs";
/// Maximum of `--jobs`. More runs at the same time only delay each other.
const JOBS_MAX: u16 = 64;

/// Arguments of `longhaul soak`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Arguments {
    /// A scenario file, a name from the library, `bugs/NAME` for a documented bug, or `bugs` for a table of all bugs. Default: `smoke`, or
    /// with --plant the scenario that catches the planted bug.
    scenario: Option<String>,
    #[command(flatten)]
    outside: Outside,
    /// The seed of random choices. Default: the seed in the scenario file.
    #[arg(long)]
    seed: Option<u64>,
    /// The length of the whole run, such as 3h, instead of the length in the scenario file. The length includes warm-up and drain; the
    /// steady phase gets the rest.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<Span>,
    /// Divide the lifetimes of watches, tokens, history and idle connections of the mock control plane by N. A
    /// compressed run of minutes has as many reconnects as a day. Faults and phases keep their times.
    #[arg(long, value_name = "N")]
    compress: Option<u32>,
    /// Run the subject's own clock N times faster, and shorten lifetimes on the server by the same factor. Works for any 64-bit program,
    /// also static programs and Go programs. Needs ptrace.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// The control plane, instead of the control plane in the scenario file. Faults that only the mock can inject are
    /// skipped, and the report lists them.
    #[arg(long, value_enum)]
    control_plane: Option<ControlPlaneKind>,
    #[command(flatten, next_help_heading = "An existing cluster, or a kind cluster")]
    cluster: Cluster,
    /// The folder for run records.
    #[arg(long, default_value = "runs")]
    runs: PathBuf,
    /// The folder for the record of this run, so that a CI pipeline knows the path beforehand. If the folder exists, it must be empty.
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    run_dir: Option<PathBuf>,
    /// Print JSON instead of text: the verdict as in `verdict.json`, and for a documented bug its history.
    #[arg(long)]
    json: bool,
    /// Exit 0 if some budgets had too little data to be decided, and every decided budget passed.
    #[arg(long)]
    allow_inconclusive: bool,
    /// Switch on this planted bug in the subject, to check that a judge catches it.
    #[arg(long)]
    plant: Option<String>,
    /// The service to test, instead of `longhaul-service` beside `longhaul`.
    #[arg(long)]
    service: Option<PathBuf>,
    /// Record and draw this series of the subject's own metrics, such as `workqueue_depth{name="pods"}`. May be given several times.
    #[arg(long, value_name = "NAME")]
    metrics_series: Vec<String>,
    /// Keep every commit and observation in the record, not only aggregates and anomalies.
    #[arg(long)]
    keep_events: bool,
    /// Serve metrics for Prometheus at this address during the run: a port (this machine only), or an address with a port.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    metrics: Option<SocketAddr>,
    /// Serve the report so far, and the metrics, at this address during the run.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    serve: Option<SocketAddr>,
    /// A text that replaces the contents of the scenario file; relative paths stay relative to the scenario file. `hunt` uses this.
    #[arg(long, value_name = "FILE", hide = true)]
    trial: Option<PathBuf>,
    /// The file for the audit of the run. `hunt` uses this.
    #[arg(long, value_name = "FILE", hide = true)]
    audit: Option<PathBuf>,
    /// Ask the subject's webhooks instead of a run: the folder has a plan and gets a report. `hunt` uses this.
    #[arg(long, value_name = "DIR", hide = true)]
    ask: Option<PathBuf>,
    /// Do not print the progress line.
    #[arg(long, short)]
    quiet: bool,
    /// With `bugs`: the number of documented bugs that are run at the same time. Each run takes its own ports.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(JOBS_MAX)))]
    jobs: u16,
    /// The client: a name from `cargo xtask matrix --list`, or a folder with a `subject.yaml` (`FOLDER#COLUMN` if that
    /// file has several columns). The `subject.yaml` gives the client's command and the features that the client lacks.
    #[arg(long, value_name = "WHAT", conflicts_with = "command", help_heading = "A client")]
    subject: Option<String>,
    #[command(flatten, next_help_heading = "A client")]
    play: Play,
    #[command(flatten, next_help_heading = "Objects of the client")]
    own: OwnKind,
}

/// Flags for the cluster that a run uses.
#[derive(clap::Args)]
struct Cluster {
    /// With a `kubeconfig` control plane: the name of the cluster or context that Longhaul may change. Longhaul labels all objects that it
    /// creates and removes them after the run.
    #[arg(long = "i-know-this-cluster", value_name = "NAME")]
    known: Option<String>,
    /// With a `kubeconfig` control plane: the kubeconfig file, instead of `KUBECONFIG` or `~/.kube/config`. Longhaul
    /// only reads the file.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// With a `kind` control plane: the node image.
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
    /// With a `kind` control plane: the version of Kubernetes, such as 1.34.1.
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// With a `kind` control plane: the number of control planes, 1 or 3.
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

/// Flags for the kind of object that the client watches, and for the proof that the client saw a version.
#[derive(clap::Args)]
struct OwnKind {
    /// Files and folders with manifests to apply first, such as the `CustomResourceDefinition` of `--resource`. May be given several times.
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// Write objects of this kind instead of the scenario's kind, for a controller with a custom resource: `caches.cache.example.com/v1`.
    /// Longhaul generates the objects from the schema in the kind's `CustomResourceDefinition`, see `--manifests`.
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// A YAML file with a template for objects of `--resource`, as in `script.template`.
    #[arg(long, value_name = "FILE", requires = "resource")]
    template: Option<PathBuf>,
    /// How the client proves that it saw a version, if it posts no observations: `status`, `'finalizer, name: example.com/cleanup'`, …
    /// Limits that this witness cannot decide are not judged.
    #[arg(long, value_name = "WITNESS", value_parser = Own::witness)]
    witness: Option<Witness>,
}

impl OwnKind {
    /// The name of the first given flag that the built-in service cannot use.
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

    /// Whether the argument is `bugs`, which means all documented bugs.
    fn is_all(&self) -> bool {
        self.scenario() == BUGS
    }

    /// Whether the output shows the events of the run: for a documented bug, or if another client runs a library
    /// scenario.
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
        let options = prepared(arguments, chosen_source(arguments)?)?;
        if let Some(folder) = &arguments.ask {
            super::block_on(run::ask(&options, folder))?;
            return Ok(exit::PASS);
        }
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

/// Replaces the name or folder of a client by the command that starts the client.
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

/// The scenario that the command line names, or the trial that replaces its contents.
fn chosen_source(arguments: &Arguments) -> Result<Source> {
    let Some(trial) = &arguments.trial else { return named(arguments.scenario(), arguments.outside) };
    let text = std::fs::read_to_string(trial).with_context(|| format!("failed to read {}", trial.display()))?;
    Ok(Source::instead(arguments.scenario(), &text, arguments.outside.reach())?)
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

/// The options of a run: the scenario with all changes from the command line.
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
        run_dir: arguments.run_dir.clone(),
        plant: arguments.plant.clone(),
        service,
        keep_events: arguments.keep_events,
        quiet,
        left_out,
        window: run::Addresses { metrics: arguments.metrics, page: arguments.serve },
        audit: arguments.audit.clone(),
        ..Options::new(source, arguments.runs.clone(), repeat)
    })
}

fn is_service(arguments: &Arguments, source: &Source) -> bool {
    source.scenario.subject.profile().is_service && arguments.play.command.is_empty()
}

/// The subject of a scenario, and how Longhaul starts the subject and names it in reports.
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

/// Gives the scenario the objects and the witness of the command line, and prints the budgets that stay undecided.
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

/// Runs the scenario on another control plane. Returns a text that names the faults that this control plane cannot
/// inject.
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

/// Whether a control plane can inject a fault and all faults that this fault waits for.
fn is_played(scenario: &Scenario, kind: ControlPlaneKind, fault: &Fault, all: &[Fault]) -> bool {
    let waits =
        fault.when.as_ref().is_none_or(|when| when.hit.is_none() || all.iter().any(|other| other.id == when.hit));
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
