//! `longhaul size`: measures memory and start of a program by number of objects.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use reports::exit;
use reports::size::{Fate, Row, WITHOUT_FILE};
use tokio_util::sync::CancellationToken;
use units::{Bytes, Span};

use crate::out::{err, out};
use crate::run::Options;
use crate::scenario::{Command, ControlPlaneKind, Faults, Outside, Source, SubjectKind};
use crate::signals::stoppable;
use crate::size::{Choice, FILES, free_bytes, plan, plan::Plan, play};

/// The scenario, if the user names no scenario file.
const SCENARIO: &str = "\
apiVersion: longhaul/v1
name: size
description: What does this program cost by number of objects?
phases: {warmUp: 0s, steady: 10s, drain: 1s}
subject: {command: [program], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 1, rate: 1/s, mix: {update: 1}}
";
/// Default time for a program to become ready.
pub(super) const PATIENCE: Span = Span::from_secs(120);
/// Maximum number of relists in each row.
const RELISTS_MAX: i64 = 20;

/// Arguments of `longhaul size`.
#[derive(Args)]
pub(super) struct Arguments {
    /// A scenario file, as `longhaul init` writes it. Only its control plane and its subject are used.
    #[arg(required_unless_present = "command")]
    scenario: Option<String>,
    #[command(flatten)]
    outside: Outside,
    /// Total numbers of objects, separated by commas. The objects are divided evenly among the kinds that the program lists or watches.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = plan::OBJECTS)]
    objects: Vec<u64>,
    /// Sizes of an object as JSON, separated by commas.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values_t = plan::SIZES)]
    sizes: Vec<Bytes>,
    /// A memory limit for the program, such as 512MiB. A cgroup enforces the limit, if the machine permits one.
    #[arg(long, value_name = "SIZE")]
    limit: Option<Bytes>,
    /// Number of relists in each row with all kinds. Three or more show whether relists leak memory.
    #[arg(long, value_name = "N", default_value_t = plan::RELISTS, value_parser = clap::value_parser!(u32).range(0..=RELISTS_MAX))]
    relists: u32,
    /// Do not measure each kind alone.
    #[arg(long)]
    no_kinds: bool,
    /// Longest time for the program to become ready in a row.
    #[arg(long, value_name = "TIME", default_value_t = PATIENCE)]
    patience: Span,
    /// The seed of the objects. Default: the seed in the scenario file.
    #[arg(long)]
    seed: Option<u64>,
    /// The folder for size.html, size.md and size.json. It must be empty or not exist yet. Default: a new folder below `runs`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Do not print a line for each row.
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments, instead of the subject of the scenario. The program finds the API server through `$KUBECONFIG`.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Measures and prints the result. Exit 0 measured, 1 killed at the limit, 2 a row has no result.
pub(super) fn size(arguments: &Arguments) -> Result<u8> {
    let choice = choice(arguments)?;
    let (stop, quiet) = (CancellationToken::new(), arguments.quiet || arguments.json);
    let say = |line: String| {
        if !quiet {
            err!("{}", crate::shown::line(&line));
        }
    };
    let done = super::block_on(async {
        stoppable(&stop, Box::pin(play(&choice, &stop, &say))).await.context("failed to listen for Ctrl-C")?
    })?;
    let sizes = &done.sizes;
    if arguments.json {
        out!("{}", super::json(sizes)?);
    } else {
        out!("{}", reports::render::size(sizes).trim_end());
        out!("page: {}", choice.out.join(FILES[0]).display());
    }
    let rows = || sizes.steps.iter().chain(sizes.kinds.iter().flat_map(|kind| &kind.rows));
    let is = |fate: fn(&Row) -> bool| rows().any(fate);
    Ok(match () {
        () if is(|row| row.fate == Fate::LimitKilled) => exit::FAIL,
        () if done.interrupted || is(|row| row.fate != Fate::Lived) => exit::INCONCLUSIVE,
        () => exit::PASS,
    })
}

/// The checked settings.
fn choice(arguments: &Arguments) -> Result<Choice> {
    let plan = Plan::new(&arguments.objects, &arguments.sizes, arguments.relists, !arguments.no_kinds);
    let plan = plan.map_err(|why| anyhow!(why))?;
    let mut source = match &arguments.scenario {
        Some(name) => super::soak::named(name, arguments.outside)?,
        None => Source::parse(SCENARIO, WITHOUT_FILE, std::path::Path::new("."))?,
    };
    if let Some(seed) = arguments.seed {
        source.sow(seed)?;
    }
    aim(&mut source, &arguments.command)?;
    if let Some(free) = free_bytes() {
        plan.check(free).map_err(|why| anyhow!(why))?;
    }
    let out = arguments.out.clone().unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from("runs").join(format!("{now}-size"))
    });
    crate::private::folder(&out, "--out")?;
    let service = crate::subject::sibling("longhaul-service").ok();
    let options = Options { service, ..Options::new(source, out.clone(), repeat(arguments)) };
    let limit = arguments.limit.map(|limit| limit.0);
    Ok(Choice { options, plan, limit, patience: arguments.patience.0, out })
}

/// Keeps only the control plane and the subject of a scenario.
pub(super) fn aim(source: &mut Source, command: &[String]) -> Result<()> {
    let scenario = &mut source.scenario;
    ensure!(
        scenario.control_plane.kind == ControlPlaneKind::Mock,
        "{}: `size` needs `controlPlane: {{kind: mock}}`",
        source.origin
    );
    scenario.faults = Faults::default();
    scenario.script = None;
    scenario.admission = None;
    if !command.is_empty() {
        let was = scenario.subject.command().cloned().unwrap_or_default();
        let client = Command { run: command.to_vec(), processes: Vec::new(), cwd: None, ..was };
        scenario.subject.kind = SubjectKind::Command(client);
    }
    Ok(())
}

/// The command that repeats this measurement.
fn repeat(arguments: &Arguments) -> String {
    let list = |values: Vec<String>| values.join(",");
    let mut words = vec![crate::started_as(), "size".to_owned()];
    words.extend(arguments.scenario.iter().map(|name| crate::quoted(name)));
    words.push(format!("--objects {}", list(arguments.objects.iter().map(u64::to_string).collect())));
    words.push(format!("--sizes {}", list(arguments.sizes.iter().map(Bytes::to_string).collect())));
    words.extend(arguments.limit.map(|limit| format!("--limit {limit}")));
    words.push(format!("--relists {}", arguments.relists));
    words.extend(arguments.no_kinds.then(|| "--no-kinds".to_owned()));
    words.extend(arguments.seed.map(|seed| format!("--seed {seed}")));
    if !arguments.command.is_empty() {
        words.push("--".to_owned());
        words.extend(crate::secrets::arguments(&arguments.command).iter().map(|word| crate::quoted(word)));
    }
    words.join(" ")
}
