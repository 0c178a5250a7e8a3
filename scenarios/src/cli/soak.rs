//! `longhaul soak`: run a scenario and exit with its verdict.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use mock_faults::Fault;
use reports::judge::Verdict;
use units::Span;

use crate::calibrate::PLANTS;
use crate::run::{self, Options};
use crate::scenario::{ControlPlaneKind, Outside, Scenario, Source, Subject};

/// The planted service, beside `longhaul` when it was built.
const PLANTED_SERVICE: &str = "longhaul-service-planted";
const SERVICE: &str = "longhaul-service";
/// The scenario of who names none.
const DEFAULT: &str = "smoke";

/// Arguments of `longhaul soak`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Arguments {
    /// A scenario file, or a name from the library. Without one it is `smoke`, or the stage of `longhaul calibrate` in which a planted bug
    /// is caught.
    scenario: Option<String>,
    #[command(flatten)]
    outside: Outside,
    /// Another seed than the file's.
    #[arg(long)]
    seed: Option<u64>,
    /// Another length than the file's, such as 3h, warm-up and drain included: the steady phase is made to fit.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<Span>,
    /// Let watches, tokens, history and idle connections of the mock control plane live so many times shorter, so that a day's watches are remade
    /// in minutes. Faults and phases keep their times.
    #[arg(long, value_name = "N")]
    compress: Option<u32>,
    /// Let the subject's own clock run so many times faster, and compress the server's side alike. Needs libfaketime and a subject that is
    /// linked dynamically and not written in Go.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// Another control plane than the file's. Faults that only the mock can play are left out, and the report says so.
    #[arg(long, value_enum)]
    control_plane: Option<ControlPlaneKind>,
    /// The folder for run records.
    #[arg(long, default_value = "runs")]
    runs: PathBuf,
    /// The folder for the record of this very run, for pipelines that want to know it beforehand. It may exist and be empty.
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    run_dir: Option<PathBuf>,
    /// Print the verdict as JSON instead of text, as in `verdict.json`.
    #[arg(long)]
    json: bool,
    /// Exit with 0 when there was not enough data to decide, and nothing that was decided is wrong.
    #[arg(long)]
    allow_inconclusive: bool,
    /// Plant this bug in the subject, to see the judges catch it.
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
    /// Tell metrics at this address while the run goes on, for a Prometheus: a port (of this machine only), or an address with one.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    metrics: Option<SocketAddr>,
    /// Show the report at this address while the run goes on, as far as it is; metrics are there as well.
    #[arg(long, value_name = "ADDR", value_parser = run::address)]
    serve: Option<SocketAddr>,
    /// No live line.
    #[arg(long, short)]
    quiet: bool,
}

impl Arguments {
    fn scenario(&self) -> &str {
        let stage = |name: &String| PLANTS.iter().find(|plant| plant.name == *name).map(|plant| plant.stage);
        let given = self.scenario.as_deref();
        given.or_else(|| self.plant.as_ref().and_then(stage)).unwrap_or(DEFAULT)
    }
}

/// Reads, runs, judges.
pub(super) fn soak(arguments: Arguments) -> ExitCode {
    let mut source = match Source::read_within(arguments.scenario(), arguments.outside.reach()) {
        Ok(source) => source,
        Err(error) => {
            crate::out::err!("{error}");
            return ExitCode::from(reports::exit::USAGE);
        }
    };
    if let Some(seed) = arguments.seed
        && let Err(error) = source.sow(seed)
    {
        crate::out::err!("{error}");
        return ExitCode::from(reports::exit::USAGE);
    }
    if let Some(length) = arguments.length
        && let Err(error) = source.last(length)
    {
        crate::out::err!("{error}");
        return ExitCode::from(reports::exit::USAGE);
    }
    if let Err(error) = source.follow(&arguments.metrics_series) {
        crate::out::err!("{error}");
        return ExitCode::from(reports::exit::USAGE);
    }
    if let Err(error) = source.hurry(arguments.compress, arguments.clock_rate) {
        crate::out::err!("{error}");
        return ExitCode::from(reports::exit::USAGE);
    }
    let left_out = arguments.control_plane.and_then(|kind| switch(&mut source.scenario, kind));
    if left_out.is_some()
        && let Err(error) = source.draw("--control-plane")
    {
        crate::out::err!("{error}");
        return ExitCode::from(reports::exit::USAGE);
    }
    let service = match service(&arguments, &source.scenario.subject) {
        Ok(service) => service,
        Err(error) => return super::fail(reports::exit::USAGE, &error),
    };
    let repeat = repeat(&arguments, source.scenario.seed);
    let options = Options {
        source,
        runs: arguments.runs,
        run_dir: arguments.run_dir,
        plant: arguments.plant,
        service,
        keep_events: arguments.keep_events,
        quiet: arguments.quiet,
        left_out,
        counts_bytes: false,
        repeat,
        window: run::Addresses { metrics: arguments.metrics, page: arguments.serve },
    };
    let result = super::runtime().and_then(|runtime| {
        let said = if arguments.json { run::Said::Json } else { run::Said::Text };
        let result = runtime.block_on(run::run(options, said));
        // Nothing of a finished run may keep the process alive.
        runtime.shutdown_timeout(std::time::Duration::from_secs(2));
        result
    });
    match result {
        Ok(judgement) if arguments.allow_inconclusive && judgement.verdict == Verdict::Inconclusive => {
            ExitCode::from(reports::exit::PASS)
        }
        Ok(judgement) => ExitCode::from(judgement.verdict.exit_code()),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

/// Runs the scenario on another control plane. Returns what that leaves out.
fn switch(scenario: &mut Scenario, kind: ControlPlaneKind) -> Option<String> {
    scenario.control_plane.kind = kind;
    if kind == ControlPlaneKind::Mock {
        return None;
    }
    let names = scenario.faults.retain(plays_anywhere);
    if names.is_empty() {
        return None;
    }
    Some(format!("left out, because only the mock API server can play them: {}", names.join(", ")))
}

/// Whether a fault can be played with any control plane, and so can be what it waits for.
fn plays_anywhere(fault: &Fault, all: &[Fault]) -> bool {
    let waits = fault.when.as_ref().is_none_or(|when| all.iter().any(|other| other.id.as_ref() == Some(&when.hit)));
    fault.name.row().family.is_played_anywhere() && waits
}

/// Which service binary to test.
fn service(arguments: &Arguments, subject: &Subject) -> anyhow::Result<Option<PathBuf>> {
    if !subject.kind().is_service() {
        return Ok(None);
    }
    if let Some(path) = &arguments.service {
        anyhow::ensure!(path.is_file(), "--service {}: no such file", path.display());
        return Ok(Some(path.clone()));
    }
    let name = if arguments.plant.is_some() { PLANTED_SERVICE } else { SERVICE };
    let found = crate::subject::sibling(name);
    let remedy = "build it first: `cargo xtask soak` does that (with `--plant NAME` also the planted one), or name one with --service";
    found.map(Some).with_context(|| remedy.to_owned())
}

/// The command that repeats this run.
fn repeat(arguments: &Arguments, seed: u64) -> String {
    let plant = arguments.plant.as_ref().map(|plant| format!(" --plant {plant}")).unwrap_or_default();
    let plane = arguments.control_plane.map(|kind| format!(" --control-plane {}", kind.name())).unwrap_or_default();
    let length = arguments.length.map(|length| format!(" --for {length}")).unwrap_or_default();
    let compress = arguments.compress.map(|times| format!(" --compress {times}")).unwrap_or_default();
    let rate = arguments.clock_rate.map(|rate| format!(" --clock-rate {rate}")).unwrap_or_default();
    let named = arguments.metrics_series.iter();
    let series = named.map(|name| format!(" --metrics-series {}", crate::quoted(name))).collect::<Vec<_>>().concat();
    let service = arguments.service.as_ref();
    let service =
        service.map(|path| format!(" --service {}", crate::quoted(&path.to_string_lossy()))).unwrap_or_default();
    let outside = arguments.outside.repeated();
    let events = if arguments.keep_events { " --keep-events" } else { "" };
    format!(
        "{} soak{plant} {}{outside} --seed {seed}{length}{compress}{rate}{plane}{series}{service}{events}",
        crate::started_as(),
        crate::quoted(arguments.scenario())
    )
}
