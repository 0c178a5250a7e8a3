//! The command line of `longhaul`: parses, builds the runtime, hands over, turns results into exit codes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use reports::judge::Verdict;

use crate::scenario::Outside;

mod calibrate;
mod capacity;
mod cluster;
#[cfg(feature = "dist")]
mod definitions;
mod diff;
mod doctor;
mod files;
mod gate;
mod history;
mod init;
mod load;
mod matrix;
mod mock;
mod objects;
mod replay;
mod report;
mod repro;
mod senders;
mod soak;
mod traffic;
mod worker;

/// Soak tests and benchmarks for admission webhooks and watch controllers.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 110)]
struct Cli {
    /// Whether what is told has colours; `auto`: on a terminal, unless `NO_COLOR` is set.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

/// When what is told has colours.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and judge it. Exit 0 pass, 1 fail, 2 inconclusive or invalid, 64 bad scenario file.
    Soak(soak::Arguments),
    /// Play a documented missed-event bug against the service or any command, and tell what happened. Exit codes as `soak`.
    Repro(repro::Arguments),
    /// Check scenario files without running them.
    Check {
        /// Files, or names from the library.
        #[arg(required = true)]
        scenarios: Vec<String>,
        #[command(flatten)]
        outside: Outside,
    },
    /// Say what a scenario will do, how long it takes, and which budgets that length can decide.
    Plan {
        /// A file, or a name from the library.
        #[arg(default_value = "smoke")]
        scenario: String,
        #[command(flatten)]
        outside: Outside,
    },
    /// List the scenarios of the library with the question that each answers.
    List,
    /// Run real clients against documented bugs and write one table.
    Matrix(matrix::Arguments),
    /// Play planted bugs and clean twins, and tell how often each judge is right. Exit 0 every plant is caught by its own judge alone and
    /// every twin passes, 1 one is not, 2 not decided or the canary lived, 64 bad arguments or a missing program.
    Calibrate(Box<calibrate::Arguments>),
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
    /// Put two run records side by side: budgets, figures, and what of scenario, machine and program differs. No verdict: exit 0, or 64
    /// where one cannot be read.
    Diff(diff::Arguments),
    /// Say whether build B is worse than build A, both measured side by side on this machine. Exit 0 same or better, 1 worse, 2 not decided or
    /// invalid, 64 bad arguments or a build that does not start.
    Gate(Box<gate::Arguments>),
    /// Keep a file with one line a run, and show where figures changed their level. No verdict: exit 0, or 64 where something cannot be read.
    #[command(subcommand)]
    History(history::Command),
    /// Send admission reviews to any webhook at a planned rate and measure its answers. Exit 0 pass, 1 a limit is broken, 2 the
    /// numbers cannot be trusted or are too few, 64 bad arguments or no webhook.
    Load(Box<load::Arguments>),
    /// Find and confirm the highest rate at which a webhook meets its limits. Exit 0 found, 1 no rate meets them, 2 not decided,
    /// 64 as `load`.
    Capacity(Box<capacity::Arguments>),
    /// Send what a file says, when it says so, to any webhook. Exit codes as `load`.
    Replay(Box<replay::Arguments>),
    /// One of several processes that send one plan; `load --workers` starts it.
    Worker(worker::Arguments),
    /// Run one part of the pretend outside world alone.
    #[command(subcommand)]
    Mock(mock::Command),
    /// A real control plane that outlives the command.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Look at a project's folder (custom resources, webhooks, language, image) and write a scenario with comments for it.
    Init(init::Arguments),
    /// Say what is on this machine, and what is left out without what is not.
    Doctor,
    /// Print the JSON Schema of scenario files.
    Schema,
    /// Print completions for a shell, for example `longhaul completions bash > /etc/bash_completion.d/longhaul`.
    #[cfg(feature = "dist")]
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
    /// Tidy up after a run that is killed; `longhaul` starts it by itself.
    #[command(hide = true)]
    Keeper,
}

/// The binary's `main`.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; everything else is bad usage.
            let code = if error.use_stderr() { reports::exit::USAGE } else { reports::exit::PASS };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    init_log();
    match cli.color {
        Color::Auto => {}
        Color::Always => crate::out::colours(true),
        Color::Never => crate::out::colours(false),
    }
    crate::keeper::allow();
    let code = run_command(cli.command);
    crate::keeper::end();
    let Some(why) = crate::out::lost() else { return code };
    crate::out::err!("longhaul: failed to write to stdout: {why}");
    if code == ExitCode::SUCCESS { ExitCode::from(reports::exit::INCONCLUSIVE) } else { code }
}

fn run_command(command: Command) -> ExitCode {
    match command {
        Command::Soak(arguments) => soak::soak(arguments),
        Command::Repro(arguments) => repro::repro(&arguments),
        Command::Check { scenarios, outside } => files::check(&scenarios, outside.reach()),
        Command::Plan { scenario, outside } => files::plan(&scenario, outside.reach()),
        Command::List => files::list(),
        Command::Matrix(arguments) => matrix::matrix(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::History(command) => history::history(&command),
        Command::Report { directory, csv: None } => report::report(&directory),
        Command::Report { directory, csv: Some(series) } => report::csv(&directory, &series),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Capacity(arguments) => capacity::capacity(&arguments),
        Command::Replay(arguments) => replay::replay(&arguments),
        Command::Worker(arguments) => worker::worker(&arguments),
        Command::Load(arguments) => load::load(&arguments),
        Command::Mock(command) => mock::mock(command),
        Command::Cluster(command) => cluster::cluster(command),
        Command::Init(arguments) => init::init(&arguments),
        Command::Doctor => doctor::doctor(),
        Command::Schema => files::schema(),
        #[cfg(feature = "dist")]
        Command::Completions { shell } => definitions::completions(shell),
        #[cfg(feature = "dist")]
        Command::Man { directory } => definitions::man(&directory),
        Command::Keeper => crate::keeper::keeper(),
    }
}

/// Logs go to stderr, warnings and worse unless `RUST_LOG` says otherwise: stdout belongs to the verdict. They show what peers said,
/// so every event is kept to its line.
fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| crate::shown::Lines(std::io::stderr())).init();
}

/// The runtime of everything that talks to the outside world.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Runs a command whose result is a verdict; an error means that nothing was started.
fn run(command: impl Future<Output = anyhow::Result<Verdict>>) -> ExitCode {
    let result = runtime().and_then(|runtime| {
        let result = runtime.block_on(command);
        // Nothing of a finished run may keep the process alive.
        runtime.shutdown_timeout(std::time::Duration::from_secs(2));
        result
    });
    match result {
        Ok(verdict) => ExitCode::from(verdict.exit_code()),
        Err(error) => fail(reports::exit::USAGE, &error),
    }
}

/// Prints an error with its causes and returns `code`, or that of a missing program where one is the reason.
fn fail(code: u8, error: &anyhow::Error) -> ExitCode {
    crate::out::err!("longhaul: {error:#}");
    let code = if code == reports::exit::USAGE && misses_program(error) { reports::exit::UNAVAILABLE } else { code };
    ExitCode::from(code)
}

/// Whether an error is that a program is not there.
fn misses_program(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(crate::subject::Error::Missing { .. }))
            || matches!(cause.downcast_ref(), Some(kind::local::Error::NoProgram { .. }))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

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
