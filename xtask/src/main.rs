//! Developer commands. Thin on purpose: each builds what it needs with cargo and then runs it, so that this program
//! itself builds in seconds and knows nothing of the harness.

mod bench;
mod cargo;
mod check;
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
    /// Build and run a soak: the scenario `smoke` unless another is named; `cargo xtask soak bugs/NAME -- their-controller` plays a documented
    /// bug. Exit codes as `longhaul soak`.
    Soak(PassedOn),
    /// Build the service of another revision and of this one, and say whether this one is worse. Exit codes as `longhaul gate`.
    Gate(gate::Arguments),
    /// Run the quick tests, or with `--full` all.
    Test(test::Arguments),
    /// Run the full gate: format, lints, tests, documentation, dependency policy, generated files.
    Check(check::Arguments),
    /// Build in release mode and measure what a part costs, beside the real thing where that is at hand.
    Bench(bench::Arguments),
    /// Run real clients against documented bugs and write one table.
    Matrix(PassedOn),
    /// Play the library and planted bugs on every control plane, and write one table.
    Worlds(PassedOn),
    /// Play planted bugs and clean twins, and tell how often each judge is right.
    Calibrate(PassedOn),
    /// Build the seed, the program that `longhaul-service inject` sends, and check that it is static and small enough.
    Seed,
    /// Build what is shipped: static programs, tarballs with their sums, images. `--help` says how.
    #[command(disable_help_flag = true)]
    Dist(PassedOn),
    /// Write the table of built-in kinds from a real kube-apiserver: `KUBEBUILDER_ASSETS` names its folder, `VERSION` its release.
    #[command(disable_help_flag = true)]
    Kinds(PassedOn),
    /// Play published operators and webhooks from package registries, and write docs/measured/strangers.md. `--help` says how.
    #[command(disable_help_flag = true)]
    Strangers(PassedOn),
    /// Build and run any `longhaul` command, for example `cargo xtask longhaul mock kube`.
    Longhaul(PassedOn),
}

/// Arguments for the program that a command builds.
#[derive(clap::Args)]
struct PassedOn {
    /// Passed on as they are.
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

/// The exit code of a command line that is not run: help is no error.
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

    /// What stands behind `--` is the client's command and reaches `longhaul` as it was typed.
    #[test]
    fn the_command_of_a_client_is_passed_on() {
        for line in [vec!["bugs/some-bug", "--http", "2", "--", "client", "--flag"], vec!["--plant", "step", "smoke"]] {
            let cli = Cli::try_parse_from(["xtask", "soak"].iter().chain(&line));
            let Ok(Cli { command: Command::Soak(PassedOn { arguments }) }) = cli else { panic!("not parsed") };
            assert_eq!(arguments, line);
        }
    }
}
