//! `longhaul gate`: decides whether one build is worse than another.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use reports::gate::Judgement;
use tokio_util::sync::CancellationToken;
use units::{Bytes, Span};

use crate::gate::init::Project;
use crate::gate::size::Starts;
use crate::gate::{self, Choice, Contestant, suite};
use crate::out::out;
use crate::scenario::{Outside, Source};
use crate::signals::stoppable;
use crate::size::{free_bytes, plan::Plan};

const DEFAULT: &str = "gate";
/// Default number of blocks per session. A block has four slices (short measurements of one build); with slices of 20
/// s, nine blocks take 18 minutes.
const BLOCKS: u32 = 9;
/// Blocks per session with `--quick`. With measurements of 4 s, five blocks take less than two minutes.
const QUICK_BLOCKS: u32 = 5;
const QUICK_SLICE: Span = Span::from_secs(3);
const QUICK_SETTLE: Span = Span::from_millis(700);
const QUICK_REST: Span = Span::from_millis(300);
/// Default of `--at-most`: the time for both sessions together.
const LIMIT: Span = Span::from_secs(40 * 60);
const QUICK_LIMIT: Span = Span::from_secs(5 * 60);
/// Default number of seeds for a suite. Twenty seeds find a change that breaks one run in two. A change that breaks one
/// run in ten needs more seeds.
const SEEDS: u64 = 20;
/// Default number of objects with `--size`.
const OBJECTS: u64 = 3_000;
/// Default size of an object with `--size`.
const OBJECT_SIZE: Bytes = Bytes(10 << 10);
/// Blocks per session with `--size`. A start takes about ten seconds, so five blocks take three to four minutes.
const START_BLOCKS: u32 = 5;
/// Blocks per session with `--size` and `--quick`. Fewer blocks have too few pairs for a decision.
const QUICK_START_BLOCKS: u32 = 3;
/// Allowed numbers of blocks per session. Fewer blocks give too few pairs of measurements to decide; more blocks take
/// days.
const BLOCKS_RANGE: std::ops::RangeInclusive<i64> = 3..=250;

/// Arguments of `longhaul gate`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A scenario file, or a name from the library. The scenario's phases describe one slice (a short measurement of
    /// one build): warm-up, measured phase, drain.
    #[arg(default_value = DEFAULT, conflicts_with = "again")]
    scenario: String,
    #[command(flatten)]
    outside: Outside,
    /// Build A, the baseline: the path of a service program, or a command if the scenario has `subject: {command:
    /// […]}`.
    #[arg(long, value_name = "COMMAND", required_unless_present = "again")]
    a: Option<String>,
    /// Build B, which is compared with build A: a program or a command, as for --a.
    #[arg(long, value_name = "COMMAND", required_unless_present = "again")]
    b: Option<String>,
    /// Compare the failure rates of a test suite instead of two builds under load. The command, such as `make test`, runs in the checkouts
    /// `--a` and `--b`, with the faults of `longhaul envtest --chaos`.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["scenario", "quick", "blocks", "at_most", "no_callgrind", "plant_a", "plant_b", "again", "json", "allow_outside"])]
    suite: Option<String>,
    /// The number of seeds for faults. The suite runs with each seed in both checkouts.
    #[arg(long, value_name = "N", default_value_t = SEEDS, requires = "suite", value_parser = clap::value_parser!(u64).range(suite::SEEDS_MIN..=10_000))]
    seeds: u64,
    /// With --suite: treat the client with this text in its user agent as the manager under test, so that faults hit
    /// only the manager.
    #[arg(long, value_name = "TEXT", requires = "suite")]
    manager_agent: Option<String>,
    /// With --suite: treat this user, the common name of a client certificate, as the manager under test.
    #[arg(long, value_name = "NAME", requires = "suite")]
    manager_user: Option<String>,
    /// Compare the memory of starts against an API server with many objects, instead of two builds under load.
    #[arg(long, conflicts_with_all = ["suite", "at_most", "no_callgrind", "again"])]
    size: bool,
    /// With --size: the number of objects, which all kinds that the builds list or watch share.
    #[arg(long, value_name = "N", default_value_t = OBJECTS, requires = "size")]
    objects: u64,
    /// With --size: the size of an object as JSON.
    #[arg(long, value_name = "SIZE", default_value_t = OBJECT_SIZE, requires = "size")]
    object_size: Bytes,
    /// With --size: the maximum time for a build to become ready.
    #[arg(long, value_name = "TIME", default_value_t = super::size::PATIENCE, requires = "size")]
    patience: Span,
    /// Take at most five minutes, for a pull request, with fewer and shorter measurements.
    #[arg(long)]
    quick: bool,
    /// Number of blocks per session; a block measures each build twice. Default: 9, or 5 with --quick, but no more than
    /// fit into --at-most; with --size 5, or 3 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(BLOCKS_RANGE))]
    blocks: Option<u32>,
    /// The maximum time of the whole gate, including the second session, which confirms the first. Default: 40m, or 5m
    /// with --quick.
    #[arg(long, value_name = "DURATION")]
    at_most: Option<Span>,
    /// Do not count instructions and allocations with callgrind, which takes a minute or more.
    #[arg(long)]
    no_callgrind: bool,
    /// The seed of the order of measurements and of the payloads. Default: the seed in the scenario file.
    #[arg(long)]
    seed: Option<u64>,
    /// Switch on this planted bug in build A. Build A must be a program with planted bugs.
    #[arg(long, value_name = "BUG")]
    plant_a: Option<String>,
    /// Switch on this planted bug in build B.
    #[arg(long, value_name = "BUG")]
    plant_b: Option<String>,
    /// The folder for the record (slices.jsonl) and the reports (gate.html, gate.md, gate.json). Default: a new folder in `gates`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only judge the record in this folder again, and rewrite its reports.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["a", "b", "quick", "blocks", "at_most", "no_callgrind", "seed", "plant_a", "plant_b", "out"])]
    again: Option<PathBuf>,
    /// Print the verdict as JSON, as in `gate.json`, instead of text.
    #[arg(long)]
    json: bool,
    /// Print no line per measurement.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write workflows for GitHub Actions and GitLab CI into a repository: a soak, and a gate that compares each pull request with its
    /// target branch. The scenario's subject must be a `command`.
    Init {
        /// The root folder of the repository.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// The command that builds your program, in a checkout of the repository.
        #[arg(long, value_name = "COMMAND", default_value = "make")]
        build: String,
        /// The path of the built program, relative to the repository's root.
        #[arg(long, value_name = "PATH")]
        program: String,
        /// The path of the scenario file, relative to the repository's root.
        #[arg(long, value_name = "PATH", default_value = "longhaul.yaml")]
        scenario: String,
    },
}

fn init(folder: &Path, project: &Project) -> Result<u8> {
    for path in gate::init::write(folder, project)? {
        out!("written: {}", path.display());
    }
    out!(
        "set the variable LONGHAUL_RELEASES to the address at which your pipeline finds the files of `cargo xtask dist`"
    );
    Ok(reports::exit::PASS)
}

/// Runs the gate and returns the exit code of the verdict: 0 same or better, 1 worse, 2 not decided, 3 invalid.
pub(super) fn gate(arguments: &Arguments) -> Result<u8> {
    if let Some(Command::Init { folder, build, program, scenario }) = &arguments.command {
        let project = Project { build: build.clone(), program: program.clone(), scenario: scenario.clone() };
        return init(folder, &project);
    }
    if let Some(command) = &arguments.suite {
        return super::block_on(suite::play(&of_suite(arguments, command)?));
    }
    let (folder, judgement) = if let Some(folder) = &arguments.again {
        (folder.clone(), gate::again(folder)?)
    } else {
        let mut choice = choice(arguments)?;
        let judgement = if arguments.size {
            compare_starts(arguments, &mut choice)?
        } else {
            super::block_on(gate::play(&choice))?
        };
        (choice.out, judgement)
    };
    tell(arguments.json, &folder, &judgement)?;
    Ok(judgement.exit_code)
}

/// Runs a gate of starts against many objects.
fn compare_starts(arguments: &Arguments, choice: &mut Choice) -> Result<Judgement> {
    super::size::aim(&mut choice.source, &[])?;
    let plan = Plan::new(&[arguments.objects], &[arguments.object_size], 1, false).map_err(|why| anyhow!(why))?;
    if let Some(free) = free_bytes() {
        plan.check(free).map_err(|why| anyhow!(why))?;
    }
    let step = *plan.steps.first().context("no number of objects is given")?;
    let (starts, stop) = (Starts { step, patience: arguments.patience.0 }, CancellationToken::new());
    super::block_on(async {
        let played = Box::pin(gate::size::play(choice, starts, &stop));
        stoppable(&stop, played).await.context("failed to listen for Ctrl-C")?
    })
}

fn of_suite(arguments: &Arguments, command: &str) -> Result<suite::Choice> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let folder = |given: &Option<String>| PathBuf::from(given.clone().unwrap_or_default());
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("gates").join(format!("suite-{}", stamp())));
    gate::open(&out)?;
    Ok(suite::Choice {
        command: words.with_context(|| format!("--suite `{command}`: write a command as a shell splits it"))?,
        a: folder(&arguments.a),
        b: folder(&arguments.b),
        seeds: arguments.seeds,
        first: arguments.seed.unwrap_or(1),
        manager: mock_envtest::Manager { agent: arguments.manager_agent.clone(), user: arguments.manager_user.clone() },
        out,
        quiet: arguments.quiet,
    })
}

fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn choice(arguments: &Arguments) -> Result<Choice> {
    let mut source = Source::read_within(&arguments.scenario, arguments.outside.reach()).map_err(anyhow::Error::new)?;
    if let Some(seed) = arguments.seed {
        source.sow(seed).map_err(anyhow::Error::new)?;
    }
    if arguments.quick {
        let phases = &mut source.scenario.phases;
        phases.warm_up = phases.warm_up.min(QUICK_SETTLE);
        phases.steady = phases.steady.min(QUICK_SLICE);
        phases.drain = phases.drain.min(QUICK_REST);
    }
    let contestant = |option: &str, command: &Option<String>, plant: &Option<String>| {
        let command = command.clone().unwrap_or_default();
        if source.scenario.subject.profile().is_service {
            ensure!(
                Path::new(&command).is_file(),
                "--{option} {command}: no such file; {} starts the built-in service, so name its program, or a scenario with `subject: {{command: […]}}`",
                arguments.scenario
            );
        }
        Ok(Contestant { command, plant: plant.clone() })
    };
    let a = contestant("a", &arguments.a, &arguments.plant_a)?;
    let b = contestant("b", &arguments.b, &arguments.plant_b)?;
    let usual = match (arguments.size, arguments.quick) {
        (false, false) => BLOCKS,
        (false, true) => QUICK_BLOCKS,
        (true, false) => START_BLOCKS,
        (true, true) => QUICK_START_BLOCKS,
    };
    let blocks = arguments.blocks.unwrap_or(usual);
    let limit = arguments.at_most.unwrap_or(if arguments.quick { QUICK_LIMIT } else { LIMIT }).0;
    let seed = source.scenario.seed;
    let stamped = || Path::new("gates").join(format!("{}-{}", source.scenario.name, stamp()));
    let out = arguments.out.clone().unwrap_or_else(stamped);
    gate::open(&out)?;
    let repeat = repeat(arguments, blocks, seed);
    Ok(Choice {
        source,
        a,
        b,
        blocks: (blocks, arguments.blocks.is_some()),
        limit,
        quick: arguments.quick,
        out,
        callgrind: !arguments.no_callgrind,
        quiet: arguments.quiet,
        repeat,
    })
}

/// The command that repeats this gate.
fn repeat(arguments: &Arguments, blocks: u32, seed: u64) -> String {
    let given = |option: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(" --{option} {}", crate::quoted(value))).unwrap_or_default()
    };
    let quick = if arguments.quick { " --quick" } else { "" };
    let at_most = arguments.at_most.map(|limit| format!(" --at-most {limit}")).unwrap_or_default();
    let callgrind = if arguments.no_callgrind { " --no-callgrind" } else { "" };
    let size = if arguments.size {
        format!(" --size --objects {} --object-size {}", arguments.objects, arguments.object_size)
    } else {
        String::new()
    };
    format!(
        "longhaul gate{}{}{}{} {}{quick}{at_most}{callgrind}{size} --blocks {blocks} --seed {seed}",
        given("a", &arguments.a),
        given("plant-a", &arguments.plant_a),
        given("b", &arguments.b),
        given("plant-b", &arguments.plant_b),
        crate::quoted(&arguments.scenario) + arguments.outside.repeated()
    )
}

fn tell(json: bool, folder: &Path, judgement: &Judgement) -> Result<()> {
    if json {
        out!("{}", super::json(judgement)?);
    } else {
        for line in reports::render::gate::plain(judgement).lines() {
            out!("{line}");
        }
    }
    gate::conclude(folder, judgement)?;
    if !json {
        out!("page: {}", folder.join("gate.html").display());
    }
    Ok(())
}
