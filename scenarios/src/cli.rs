//! The command line of `longhaul`: parses, builds the runtime, hands over, turns results into exit codes.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use reports::exit;
use reports::judge::Verdict;

use crate::run::plan_of;
use crate::scenario::Outside;

mod calibrate;
mod cluster;
mod compare;
#[cfg(feature = "dist")]
mod definitions;
mod envtest;
mod gate;
mod init;
mod load;
mod matrix;
mod mock;
mod objects;
mod report;
mod senders;
mod show;
mod soak;
mod traffic;
mod worker;
mod worlds;

/// Commands of earlier versions, and what does the same now.
const RENAMED: [(&str, &str); 9] = [
    ("repro", "`longhaul soak bugs/NAME -- COMMAND`, and `longhaul show library` names the bugs"),
    ("plan", "`longhaul check --plan FILE`"),
    ("list", "`longhaul show library`"),
    ("diff", "`longhaul compare A B`"),
    ("history", "`longhaul compare RUN --into HISTORY`, which adds, and `longhaul compare HISTORY`, which shows"),
    ("capacity", "`longhaul load URL --capacity`"),
    ("replay", "`longhaul load URL --replay FILE`"),
    ("doctor", "`longhaul show doctor`"),
    ("schema", "`longhaul show schema`"),
];

/// Soak tests and benchmarks for admission webhooks and watch controllers.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 110)]
struct Cli {
    /// Whether output has colours; `auto`: on a terminal, unless `NO_COLOR` is set.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

/// When output has colours.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and judge it, or play a documented bug against the service or any command. Exit 0 pass, 1 fail, 2 inconclusive, 3
    /// invalid, 64 wrong usage or file, 69 a program is missing, 70 the tool itself failed; so do all commands.
    Soak(Box<soak::Arguments>),
    /// Check scenario files without running them.
    Check {
        /// Files, or names from the library.
        #[arg(required = true)]
        scenarios: Vec<String>,
        #[command(flatten)]
        outside: Outside,
        /// Say what each will do, how long it takes, and which budgets that length can decide.
        #[arg(long)]
        plan: bool,
    },
    /// Judge a run record again and write its reports anew.
    #[command(after_help = reports::render::files())]
    Report {
        /// The run's directory.
        directory: PathBuf,
        /// Print a series (`samples.subject.rssBytes`) or a whole table (`samples`) as CSV instead, and judge nothing; `list`, or no name, names
        /// those that there are.
        #[arg(long, value_name = "SERIES", num_args = 0..=1, default_missing_value = "list")]
        csv: Option<String>,
    },
    /// Play one scenario with several subjects and put them into one table and one page; or put run records side by side (budgets, figures, and
    /// what of scenario, machine and program differs), or keep a file with one line a run and show where figures changed their level. No
    /// verdict: exit 0.
    Compare(Box<compare::Arguments>),
    /// Say whether build B is worse than build A, both measured side by side on this machine. Exit 0 same or better, 1 worse, 2 not decided.
    Gate(Box<gate::Arguments>),
    /// Send admission reviews to any webhook at a planned rate and measure its answers, or find the highest rate at which it meets its limits.
    /// Exit 0 pass or found, 1 a limit is broken or no rate meets them, 2 not decided.
    Load(Box<load::Arguments>),
    /// Run a project's own test-suite, unchanged, against an API server with faults that is there in milliseconds. Exit is the suite's own, and
    /// with --judge 1 or 2 for what the ledger shows.
    Envtest(Box<envtest::Arguments>),
    /// Run one part of the pretend outside world alone.
    #[command(subcommand)]
    Mock(mock::Command),
    /// A real control plane that outlives the command.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Look at a project's folder (custom resources, webhooks, language, image) and write a scenario with comments for it.
    Init(init::Arguments),
    /// Show the library of scenarios and bugs, the schema of scenario files, or what is on this machine.
    #[command(subcommand)]
    Show(show::What),
    /// Run real clients against documented bugs and write one table; `cargo xtask matrix`.
    #[command(hide = true)]
    Matrix(matrix::Arguments),
    /// Play planted bugs and clean twins, and tell how often each judge is right; `cargo xtask calibrate`. Exit 0 every plant is caught by its
    /// own judge alone and every twin passes, 1 one is not, 2 not decided, 3 the canary lived.
    #[command(hide = true)]
    Calibrate(Box<calibrate::Arguments>),
    /// Play the library and planted bugs on every control plane, and write one table; `cargo xtask worlds`.
    #[command(hide = true)]
    Worlds(worlds::Arguments),
    /// One of several processes that send one plan; `load --workers` starts it, or `load --worker` elsewhere.
    #[command(hide = true)]
    Worker {
        /// Say nothing before an empty line came: for a Pod, to which its coordinator attaches later.
        #[arg(long)]
        attached: bool,
    },
    /// Tidy up after a run that is killed; `longhaul` starts it by itself.
    #[command(hide = true)]
    Keeper,
    /// Become the first process of a node; `longhaul` starts it by itself.
    #[command(hide = true)]
    Node {
        /// The node's folder.
        directory: PathBuf,
    },
    /// Print completions for a shell, for example `longhaul completions bash > /etc/bash_completion.d/longhaul`.
    #[cfg(feature = "dist")]
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages of all commands; `cargo xtask dist` packs them.
    #[cfg(feature = "dist")]
    #[command(hide = true)]
    Man {
        /// A folder that exists.
        directory: PathBuf,
    },
}

/// The binary's `main`.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == crate::subject::CLOCK_COMMAND) {
        // Before there is a second thread: this process is copied, and becomes the subject.
        return mock_clock::command_line(words);
    }
    if let Some(program) = std::env::args_os().next().as_deref().and_then(mock_envtest::Program::called) {
        // A test-suite called it by this name, and waits: nothing else is read or made.
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        return program.run(&arguments);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(refused(&error)),
    };
    init_log();
    match cli.color {
        Color::Auto => {}
        Color::Always => crate::out::colours(true),
        Color::Never => crate::out::colours(false),
    }
    crate::keeper::allow();
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| run_command(cli.command)));
    crate::keeper::end();
    // A panic has said by itself what it was.
    let code = done.map_or(exit::SOFTWARE, |done| done.unwrap_or_else(|error| failed(&error)));
    let Some(why) = crate::out::lost() else { return ExitCode::from(code) };
    crate::out::err!("longhaul: failed to write to stdout: {why}");
    ExitCode::from(if code == exit::PASS { exit::SOFTWARE } else { code })
}

/// The exit code of a command line that is not run: help and version are no errors, everything else is wrong usage.
fn refused(error: &clap::Error) -> u8 {
    let named = error.get(ContextKind::InvalidSubcommand).filter(|_| error.kind() == ErrorKind::InvalidSubcommand);
    let renamed = named.and_then(|named| match named {
        ContextValue::String(name) => RENAMED.iter().find(|(old, _)| old == name),
        _ => None,
    });
    match renamed {
        Some((old, new)) => crate::out::err!("longhaul: there is no `{old}` any more: write {new}"),
        None => {
            let _ = error.print();
        }
    }
    if error.use_stderr() { exit::USAGE } else { exit::PASS }
}

fn run_command(command: Command) -> Result<u8> {
    match command {
        Command::Soak(arguments) => soak::soak(*arguments),
        Command::Check { scenarios, outside, plan } => Ok(check(&scenarios, outside, plan)),
        Command::Report { directory, csv } => report::report(&directory, csv.as_deref()),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Load(arguments) => block_on(load::load(&arguments)).map(Verdict::exit_code),
        Command::Envtest(arguments) => block_on(envtest::envtest(&arguments)),
        Command::Mock(command) => block_on(mock::mock(command)),
        Command::Cluster(command) => block_on(cluster::cluster(command)),
        Command::Init(arguments) => init::init(&arguments),
        Command::Show(what) => show::show(&what),
        Command::Matrix(arguments) => block_on(matrix::matrix(arguments)),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::Worlds(arguments) => worlds::worlds(arguments),
        Command::Worker { attached } => Ok(worker::worker(attached)),
        Command::Keeper => {
            crate::keeper::keeper();
            Ok(exit::PASS)
        }
        Command::Node { directory } => {
            match kind::node::first_process(&directory).context("the first process of a node failed")? {}
        }
        #[cfg(feature = "dist")]
        Command::Completions { shell } => Ok(definitions::completions(shell)),
        #[cfg(feature = "dist")]
        Command::Man { directory } => definitions::man(&directory),
    }
}

/// Checks every scenario and reports all that are wrong; of the others the plan, where it is wanted.
fn check(scenarios: &[String], outside: Outside, plan: bool) -> u8 {
    let mut code = exit::PASS;
    for name in scenarios {
        match soak::named(name, outside) {
            Ok(source) if plan => crate::out::out!("{}", plan_of(&source.scenario).trim_end()),
            Ok(source) => crate::out::out!("{}: ok", source.origin),
            Err(error) => {
                crate::out::err!("{error}");
                code = exit::USAGE;
            }
        }
    }
    code
}

/// Logs go to stderr, warnings and worse unless `RUST_LOG` says otherwise: stdout belongs to the verdict. They show what peers said,
/// so every event is kept to its line.
fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| crate::shown::Lines(std::io::stderr())).init();
}

/// Runs what talks to the outside world, to its end.
fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().context(Broken("failed to start threads"))?;
    let result = runtime.block_on(command);
    // Nothing of what is done may keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    result
}

/// A result for programs.
fn json(result: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(result).context(Broken("failed to write the result as JSON"))
}

/// What failed is the tool itself, whatever it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(&'static str);

/// Says an error with its causes. Its exit code: what was asked for is wrong, unless a program is missing or the tool failed.
fn failed(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<crate::scenario::Error>() {
        // It begins with its file.
        crate::out::err!("{error}");
    } else {
        crate::out::err!("longhaul: {error:#}");
    }
    match () {
        () if misses_program(error) => exit::UNAVAILABLE,
        () if error.is::<Broken>() => exit::SOFTWARE,
        () if error.is::<crate::run::Interrupted>() => exit::INVALID,
        () => exit::USAGE,
    }
}

/// Whether an error means that a program is missing: the types of errors say so.
fn misses_program(error: &anyhow::Error) -> bool {
    let of_a_subject = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<crate::subject::Error>().is_some_and(crate::subject::Error::misses_program)
    };
    error.chain().any(|cause| of_a_subject(cause) || kind::misses_program(cause))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Who types a name of earlier versions is told the new one, which exists.
    #[test]
    fn renamed_commands_are_gone_and_name_commands_that_are_there() {
        let commands: Vec<String> = Cli::command().get_subcommands().map(|below| below.get_name().to_owned()).collect();
        for (old, new) in RENAMED {
            assert!(!commands.iter().any(|command| command == old), "{old}");
            let now = new.trim_start_matches("`longhaul ").split(' ').next().unwrap();
            assert!(commands.iter().any(|command| command == now), "{old}: {now}");
            assert_eq!(refused(&Cli::try_parse_from(["longhaul", old]).err().unwrap()), exit::USAGE);
        }
    }

    /// The help of a command and of those below it, on a terminal of this width.
    fn helps(command: &mut clap::Command, width: usize, all: &mut Vec<String>) {
        let mut narrow = command.clone().term_width(width);
        all.push(narrow.render_help().to_string());
        all.push(narrow.render_long_help().to_string());
        for below in command.get_subcommands_mut() {
            helps(below, width, all);
        }
    }

    /// No line of any help is broken by the terminal, however narrow that is.
    #[test]
    fn every_help_fits_into_a_narrow_terminal() {
        for width in [50, 80] {
            let mut all = Vec::new();
            let mut command = Cli::command();
            command.build();
            helps(&mut command, width, &mut all);
            assert!(all.len() > 40, "{}", all.len());
            for line in all.iter().flat_map(|help| help.lines()) {
                let columns = line.chars().count();
                // A usage line is a command to copy, and stays one.
                assert!(columns <= width || line.starts_with("Usage: "), "{columns} columns: {line}");
            }
        }
    }
}
