//! `longhaul envtest`: runs a project's own test suite against the mock API server, with faults.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use mock_faults::{Fault, Schedule};
use reports::exit;
use units::Span;

use super::soak;
use crate::envtest::hunt::Limits;
use crate::envtest::{Chaos, LinkFolder, Repetition, Suite, install, links};
use crate::out::out;
use crate::scenario::Outside;

/// Maximum of `--repeat`. With this maximum, a suite of one second runs for more than a day.
const REPEAT_MAX: u64 = 100_000;

/// Default number of repetitions of the suite with a seed that failed: enough to separate "always" from "sometimes".
const REPLAYS: u64 = 3;
/// Default time of `--hunt`.
const HUNT_LASTS: Span = Span::from_secs(15 * 60);
/// Maximum of `--replays`. For more runs, use `--repeat`.
const REPLAYS_MAX: u64 = 100;

/// Arguments of `longhaul envtest`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only print the path of a folder with `kube-apiserver`, `etcd` and `kubectl`, for `KUBEBUILDER_ASSETS`.
    #[arg(long, conflicts_with = "command")]
    path: bool,
    /// Faults for all clients of the API server, or with --manager-agent or --manager-user for that client alone: a
    /// YAML list as under `faults:` in a scenario, a scenario file, or a name from the library (also `bugs/NAME`).
    /// Times of faults count from the moment at which the API server is ready. The key `resources` of a fault from the
    /// library is ignored.
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
    /// Draw random faults from this seed. A correct suite passes in spite of random faults.
    #[arg(long, value_name = "SEED")]
    chaos: Option<u64>,
    /// The seed of all random choices, if --chaos gives none.
    #[arg(long, value_name = "SEED", conflicts_with = "chaos")]
    seed: Option<u64>,
    /// Run the suite N times, each time with the next seed, until it fails.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=REPEAT_MAX))]
    repeat: u64,
    /// Repeat the suite for this time, each time with the next seed.
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "repeat")]
    lasts: Option<Span>,
    /// Continue after a failed seed, and count the failures.
    #[arg(long)]
    keep_going: bool,
    /// Run the suite N more times with the first seed that failed, to report how often the suite fails.
    #[arg(long, value_name = "N", default_value_t = REPLAYS, value_parser = clap::value_parser!(u64).range(0..=REPLAYS_MAX))]
    replays: u64,
    /// Search for a disturbance with which the suite fails, instead of one run: see `longhaul hunt`. The points are the writes of the
    /// manager. The time is that of --for, 15 minutes by default.
    #[arg(long, conflicts_with_all = ["chaos", "faults", "repeat", "order", "stale", "judge", "keep_going"])]
    hunt: bool,
    /// The number of trials of --hunt. Default: as many as fit into the time.
    #[arg(long, value_name = "N", requires = "hunt", value_parser = clap::value_parser!(u32).range(1..))]
    trials: Option<u32>,
    /// In some intervals, change the order of events between different watches. The order of events within each watch
    /// stays.
    #[arg(long)]
    order: bool,
    /// In some intervals, delay watches by up to K versions, so that caches are stale. The result says that the suite
    /// tolerates stale caches, or names a stale read and the write that followed from the read.
    #[arg(long, value_name = "K")]
    stale: Option<u64>,
    /// Make each workload ready after this time. Default: workloads never become ready, as in a real envtest, which has no kubelet and no
    /// controllers.
    #[arg(long, value_name = "DURATION")]
    workloads: Option<Span>,
    /// The minor release of Kubernetes whose kinds are served.
    #[arg(long, value_name = "RELEASE", default_value = mock_kube::DEFAULT_RELEASE)]
    kubernetes: String,
    /// Treat the client with this text in its user agent as the manager under test. With this flag, faults hit only the
    /// manager, and --chaos also refuses the manager's writes.
    #[arg(long, value_name = "TEXT")]
    manager_agent: Option<String>,
    /// Treat this user, the common name of a client certificate, as the manager under test.
    #[arg(long, value_name = "NAME")]
    manager_user: Option<String>,
    /// The folder for run records.
    #[arg(long, default_value = "runs")]
    runs: PathBuf,
    /// A file with results of the suite: JUnit, or the output of `go test -json`. The flag may be given several times.
    #[arg(long, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// If the suite passes: exit 1 if the record shows hot loops or requests that RBAC refused, and 2 if a fault hit nothing.
    #[arg(long)]
    judge: bool,
    /// The command that runs the suite, such as `make test`.
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Install the programs where `setup-envtest use -i` and fabric8's test kit look for them.
    Install {
        /// The version of Kubernetes under which to install the programs. Suites that ask for another version do not
        /// find the programs.
        #[arg(long, default_value = mock_kube::VERSION)]
        version: String,
        /// The `--bin-dir` of setup-envtest, such as `bin`, if the suite does not use the default.
        #[arg(long, value_name = "DIR")]
        bin_dir: Option<PathBuf>,
        /// Replace kube-apiserver and etcd if the folder has real ones.
        #[arg(long)]
        force: bool,
    },
}

pub(super) async fn envtest(arguments: &Arguments) -> Result<u8> {
    if let Some(Action::Install { version, bin_dir, force }) = &arguments.action {
        for folder in install(version, bin_dir.as_deref(), *force)? {
            out!("{}", folder.display());
        }
        return Ok(exit::PASS);
    }
    if arguments.path {
        out!("{}", links(LinkFolder::Cache)?.display());
        return Ok(exit::PASS);
    }
    if arguments.command.is_empty() {
        bail!("write the command of the suite after `--`: `longhaul envtest -- make test`");
    }
    mock_kube::choose_release(&arguments.kubernetes)?;
    let faults = arguments.faults.as_deref().map(faults).transpose()?.unwrap_or_default();
    let suite = Suite {
        command: arguments.command.clone(),
        faults,
        written: arguments.faults.clone(),
        chaos: Chaos { seed: arguments.chaos, order: arguments.order, stale: arguments.stale },
        seed: arguments.seed,
        workloads: arguments.workloads,
        kubernetes: Some(arguments.kubernetes.clone()),
        manager: mock_envtest::Manager { agent: arguments.manager_agent.clone(), user: arguments.manager_user.clone() },
        runs: arguments.runs.clone(),
        results: arguments.results.clone(),
        judged: arguments.judge,
        folder: None,
    };
    if arguments.hunt {
        let lasts = arguments.lasts.unwrap_or(HUNT_LASTS);
        let limits = Limits { lasts, trials: arguments.trials, seed: arguments.seed.unwrap_or(1) };
        return Box::pin(suite.hunt(&limits)).await;
    }
    let times = if arguments.lasts.is_some() { REPEAT_MAX } else { arguments.repeat };
    let lasts = arguments.lasts.map(|lasts| lasts.0);
    suite.repeat(Repetition { times, lasts, goes_on: arguments.keep_going, replays: arguments.replays }).await
}

/// Reads the faults from a YAML list, a scenario file or the library. Refuses a fault that the mock API server cannot
/// inject.
fn faults(name: &str) -> Result<Vec<Fault>> {
    let listed = std::fs::read_to_string(Path::new(name)).ok();
    let listed = listed.filter(|text| text.lines().any(|line| line.starts_with('-')) && !text.contains("apiVersion:"));
    let faults: Vec<Fault> = if let Some(text) = listed {
        serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{name}: {error}"))?
    } else {
        let source =
            soak::named(name, Outside::default()).context("`--faults` is neither a list of faults nor a scenario")?;
        let faults = source.scenario.faults.iter().cloned();
        // Faults of the library name the library's resources; a suite has others.
        faults.map(|fault| Fault { resource: None, ..fault }).collect()
    };
    let plays = |fault: &Fault| !fault.name.row().family.is_played_anywhere();
    if let Some(other) = faults.iter().find(|fault| !plays(fault)) {
        bail!(
            "{name}: `{}` is played by another part of Longhaul: `longhaul soak` plays all of them",
            other.name.as_str()
        );
    }
    if let Err((index, error)) = Schedule::new(&faults) {
        bail!("{name}: fault {} (`{}`): {error}", index + 1, faults[index].name.as_str());
    }
    Ok(faults)
}
