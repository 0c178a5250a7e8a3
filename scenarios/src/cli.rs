//! The command line of `longhaul`: parses it, builds the runtime, starts the command, and turns results into exit
//! codes.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use kind::MissingProgram;
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
mod hunt;
mod init;
mod load;
mod matrix;
mod mock;
mod objects;
mod report;
mod senders;
mod show;
mod size;
mod soak;
mod traffic;
mod worker;
mod worlds;

/// Commands of earlier versions, each with the command that replaces it.
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
    /// When output has colours. With `auto`, output has colours on a terminal, unless `NO_COLOR` is set.
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
    /// Run a scenario and judge it, or reproduce a documented bug with the service or any command. Exit 0 pass, 1 fail, 2 inconclusive, 3
    /// invalid. Exit codes of all commands: 64 wrong usage or file, 69 a program is missing, 70 an error in Longhaul itself.
    Soak(Box<soak::Arguments>),
    /// Check scenario files without running them.
    Check {
        /// Scenario files, or names from the library.
        #[arg(required = true)]
        scenarios: Vec<String>,
        #[command(flatten)]
        outside: Outside,
        /// Print the plan of each scenario: its events, its length, and the budgets that this length can decide.
        #[arg(long)]
        plan: bool,
    },
    /// Judge a run record again and rewrite its reports.
    #[command(after_help = reports::render::files())]
    Report {
        /// The run's directory.
        directory: PathBuf,
        /// Print a series (`samples.subject.rssBytes`) or a whole table (`samples`) as CSV, without judging the record. If no name or
        /// `list` is given, print the names of all series.
        #[arg(long, value_name = "SERIES", num_args = 0..=1, default_missing_value = "list")]
        csv: Option<String>,
    },
    /// Compare subjects, runs or a history. With --subject, runs one scenario with several subjects, and writes one
    /// table and one HTML page. With run directories, shows their budgets, figures, and differences of scenario,
    /// machine and program side by side. With --into, keeps a history file with one line per run. With a history file,
    /// shows the runs at which a figure shifted. Gives no verdict: exit 0.
    Compare(Box<compare::Arguments>),
    /// Decide whether build B is worse than build A. Both builds are measured side by side on this machine. Exit 0 B is the same or better,
    /// 1 B is worse, 2 not decided.
    Gate(Box<gate::Arguments>),
    /// Send admission reviews to any webhook at a planned rate and measure its answers, or find the highest rate within the limits. Exit 0
    /// pass or rate found, 1 a limit is broken or no rate meets the limits, 2 not decided.
    Load(Box<load::Arguments>),
    /// Measure how memory and start of a program grow with the number of objects, the cost of each kind and of a relist, and how much
    /// memory to ask for. Writes HTML, Markdown and JSON. Exit 0 measured, 1 killed at --limit, 2 a row has no result.
    Size(Box<size::Arguments>),
    /// Search for bugs that nobody wrote a scenario for: disturb each write of the program in many short trials, compare
    /// the result with undisturbed plays, and save each finding as a scenario. Exit 0 nothing found, 1 findings, 2 too
    /// little was tried, 3 no search was possible.
    Hunt(Box<hunt::Arguments>),
    /// Run a project's own test suite, unchanged, against a mock API server that starts in milliseconds and can inject faults. The exit
    /// code is that of the suite. With --judge, a passing suite exits 1 or 2 if the record shows a problem.
    Envtest(Box<envtest::Arguments>),
    /// Run the mock API server or the mock registry alone.
    #[command(subcommand)]
    Mock(mock::Command),
    /// Start, list or stop a real control plane that keeps running after the command.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Read a project's folder (custom resources, webhooks, language, image) and write a commented scenario for it.
    Init(init::Arguments),
    /// Show the library of scenarios and bugs, the schema of scenario files, or the programs found on this machine.
    #[command(subcommand)]
    Show(show::Topic),
    /// Run real clients against documented bugs and write one table of the results; `cargo xtask matrix`.
    #[command(hide = true)]
    Matrix(matrix::Arguments),
    /// Run programs with planted bugs, and the same programs without them, and count how often each judge is right; `cargo xtask
    /// calibrate`. Exit 0: each planted bug is caught by the judge for this bug alone, and each program without bugs passes. 1: a judge is
    /// wrong. 2: not decided. 3: the control run with an obvious bug was not caught.
    #[command(hide = true)]
    Calibrate(Box<calibrate::Arguments>),
    /// Run the library's scenarios and planted bugs on every control plane, and write one table; `cargo xtask worlds`.
    #[command(hide = true)]
    Worlds(worlds::Arguments),
    /// Send some of the requests of a load plan, as one of several workers. Started by `load --workers` on this
    /// machine, or by `load --worker` on another machine.
    #[command(hide = true)]
    Worker {
        /// Print nothing until an empty line arrives on stdin. Needed by a worker in a Pod, because the coordinator
        /// attaches to the Pod later.
        #[arg(long)]
        attached: bool,
    },
    /// Stop the processes and remove the files of a run that is killed. `longhaul` itself starts this process.
    #[command(hide = true)]
    Keeper,
    /// Become the first process of a node's container. `longhaul` itself starts this process.
    #[command(hide = true)]
    Node {
        /// The folder of the node.
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
        /// The folder for the man pages; the folder must exist.
        directory: PathBuf,
    },
}

pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == crate::subject::CLOCK_COMMAND) {
        // This comes before a second thread exists, because this process is copied and becomes the subject.
        return mock_clock::command_line(words);
    }
    if let Some(program) = std::env::args_os().next().as_deref().and_then(mock_envtest::Program::called) {
        // A test suite started the program under this name and waits for it, so nothing else is prepared.
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        return program.run(&arguments);
    }
    let cli = match Cli::try_parse_from(words_of(std::env::args_os())) {
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
    // A panic has already printed its message.
    let code = done.map_or(exit::SOFTWARE, |done| done.unwrap_or_else(|error| failed(&error)));
    let Some(why) = crate::out::lost() else { return ExitCode::from(code) };
    crate::out::err!("longhaul: failed to write to stdout: {why}");
    ExitCode::from(if code == exit::PASS { exit::SOFTWARE } else { code })
}

/// The arguments of the command line. The first argument becomes `kubectl longhaul` if the program was started as a
/// plug-in of kubectl.
fn words_of(mut words: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let first = words.next().map(|word| if crate::is_plugin(&word) { OsString::from(crate::AS_PLUGIN) } else { word });
    first.into_iter().chain(words)
}

/// Prints a parse error and returns its exit code. Requests for help or the version exit 0, all other errors are wrong
/// usage.
fn refused(error: &clap::Error) -> u8 {
    let named = error.get(ContextKind::InvalidSubcommand).filter(|_| error.kind() == ErrorKind::InvalidSubcommand);
    let renamed = named.and_then(|named| match named {
        ContextValue::String(name) => RENAMED.iter().find(|(old, _)| old == name),
        _ => None,
    });
    match renamed {
        Some((old, new)) => crate::out::err!("longhaul: `{old}` no longer exists: write {new}"),
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
        Command::Size(arguments) => size::size(&arguments),
        Command::Hunt(arguments) => hunt::run(&arguments),
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

/// Checks all scenarios and prints an error for each wrong scenario. With `plan`, prints the plan of each correct
/// scenario.
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

/// Sends logs to stderr, because stdout belongs to the verdict. Logs show warnings and errors unless `RUST_LOG` sets
/// another level. Logs may contain text from other programs, so every event is kept on one line.
fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| crate::shown::Lines(std::io::stderr())).init();
}

fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().context(Broken("failed to start threads"))?;
    let result = runtime.block_on(command);
    // No task that is left may keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    result
}

fn json(result: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(result).context(Broken("failed to write the result as JSON"))
}

/// An error of Longhaul itself, not of the user's request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(&'static str);

/// Prints an error with its causes. Returns the exit code of wrong usage, unless a program is missing or Longhaul
/// itself failed.
fn failed(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<crate::scenario::Error>() {
        // The text begins with the name of the file.
        crate::out::err!("{error}");
    } else {
        crate::out::err!("longhaul: {error:#}");
    }
    match () {
        () if MissingProgram::is_cause_of(error.as_ref()) => exit::UNAVAILABLE,
        () if error.is::<Broken>() => exit::SOFTWARE,
        () if error.is::<crate::run::Interrupted>() => exit::INVALID,
        () => exit::USAGE,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// For a command of an earlier version, the error names a command that exists.
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

    /// If the program is called `kubectl-longhaul`, its help shows `kubectl longhaul`.
    #[test]
    fn a_plug_in_of_kubectl_says_how_it_is_typed() {
        let words = ["/bin/kubectl-longhaul", "soak", "--help"].map(OsString::from);
        let help = Cli::try_parse_from(words_of(words.into_iter())).err().unwrap().to_string();
        assert!(help.contains("Usage: kubectl longhaul soak "), "{help}");
    }

    /// The help texts of a command and its subcommands, for a terminal of this width.
    fn helps(command: &mut clap::Command, width: usize, all: &mut Vec<String>) {
        let mut narrow = command.clone().term_width(width);
        all.push(narrow.render_help().to_string());
        all.push(narrow.render_long_help().to_string());
        for below in command.get_subcommands_mut() {
            helps(below, width, all);
        }
    }

    /// On a narrow terminal, no line of a help text is wider than the terminal.
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
                // A usage line is a command to copy, so it is never broken.
                assert!(columns <= width || line.starts_with("Usage: "), "{columns} columns: {line}");
            }
        }
    }
}
