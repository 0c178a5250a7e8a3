//! Developer commands. Each command builds programs with Cargo and then runs them, so this program itself builds in
//! seconds and knows nothing of the harness.

mod bench;
mod cargo;
mod check;
mod containers;
mod dist;
mod gate;
mod kinds;
mod plain;
mod seed;
mod skipped;
mod soak;
mod strangers;
mod test;

#[path = "../../reports/src/exit.rs"]
#[expect(dead_code, reason = "this program needs a part of what all of Longhaul's programs share")]
mod exit;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};

/// Developer commands of Longhaul.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build and run a soak: the scenario `smoke` by default. `cargo xtask soak bugs/NAME -- their-controller` runs a
    /// controller against a documented bug. The exit codes are those of `longhaul soak`.
    Soak(PassedOn),
    /// Build the service of another revision and of this revision, and decide whether this revision is worse. The exit
    /// codes are those of `longhaul gate`.
    Gate(gate::Arguments),
    /// Run the quick tests. With `--full`: also the slow tests.
    Test(test::Arguments),
    /// Run all checks: format, lints, tests, documentation, dependency policy, generated files.
    Check(check::Arguments),
    /// Build in release mode and measure the cost of one program of Longhaul. If a comparable program is installed,
    /// measure it as well.
    Bench(bench::Arguments),
    /// Run real clients against documented bugs and write one table of the results.
    Matrix(PassedOn),
    /// Run library scenarios and planted bugs on every kind of control plane, and write one table of the results.
    Worlds(PassedOn),
    /// Run programs with and without planted bugs, and count how often each judge is right.
    Calibrate(PassedOn),
    /// Build the injected program of `longhaul-service inject`, and check that it is static and small enough.
    Seed,
    /// Build the release: static programs, tarballs with checksums, images. `--help` lists the options.
    #[command(disable_help_flag = true)]
    Dist(PassedOn),
    /// Write the table of built-in kinds from a real kube-apiserver. `KUBEBUILDER_ASSETS` names the folder of the
    /// server, `VERSION` its release.
    #[command(disable_help_flag = true)]
    Kinds(PassedOn),
    /// Try published operators and webhooks from package registries, and write docs/measured/strangers.md. `--help`
    /// lists the options.
    #[command(disable_help_flag = true)]
    Strangers(PassedOn),
    /// Build and run any `longhaul` command, for example `cargo xtask longhaul mock kube`.
    Longhaul(PassedOn),
}

/// Arguments for the program that a command runs.
#[derive(clap::Args)]
struct PassedOn {
    /// Arguments that are passed on unchanged.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return refused(&error),
    };
    let result = match command {
        Command::Soak(PassedOn { arguments }) => soak::longhaul(Some("soak"), arguments),
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Test(arguments) => test::test(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Matrix(PassedOn { arguments }) => soak::longhaul(Some("matrix"), arguments),
        Command::Worlds(PassedOn { arguments }) => soak::longhaul(Some("worlds"), arguments),
        Command::Calibrate(PassedOn { arguments }) => soak::longhaul(Some("calibrate"), arguments),
        Command::Seed => seed::seed(),
        Command::Dist(PassedOn { arguments }) => dist::dist(&arguments),
        Command::Kinds(PassedOn { arguments }) => kinds::kinds(&arguments),
        Command::Strangers(PassedOn { arguments }) => strangers::strangers(&arguments),
        Command::Longhaul(PassedOn { arguments }) => soak::longhaul(None, arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(exit::SOFTWARE)
    })
}

/// The exit code of a command line that clap refuses, or that requests help, which is no error.
fn refused(error: &clap::Error) -> ExitCode {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if name == "repro" => {
            eprintln!("xtask: there is no `repro` any more: write `cargo xtask soak bugs/NAME -- COMMAND`");
        }
        _ => {
            let _ = error.print();
        }
    }
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::PASS })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command of a client after `--` is passed on to `longhaul` unchanged.
    #[test]
    fn the_command_of_a_client_is_passed_on() {
        for line in [vec!["bugs/some-bug", "--http", "2", "--", "client", "--flag"], vec!["--plant", "step", "smoke"]] {
            let cli = Cli::try_parse_from(["xtask", "soak"].iter().chain(&line));
            let Ok(Cli { command: Command::Soak(PassedOn { arguments }) }) = cli else { panic!("not parsed") };
            assert_eq!(arguments, line);
        }
    }
}
