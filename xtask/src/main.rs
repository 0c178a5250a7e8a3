//! Developer commands. Thin on purpose: each builds what it needs with cargo and then runs it, so that this program
//! itself builds in seconds and knows nothing of the harness.

mod bench;
mod cargo;
mod check;
mod dist;
mod gate;
mod plain;
mod seed;
mod skipped;
mod soak;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What went wrong in xtask itself. 1 and 2 are verdicts of `longhaul`, 64 is a bad scenario file.
const EXIT_XTASK_FAILED: u8 = 70;

/// Developer commands of Longhaul.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build and run a soak: the scenario `smoke` unless another is named. Exit 0 pass, 1 fail, 2 inconclusive or invalid.
    Soak(soak::Arguments),
    /// Build and play a documented bug: `cargo xtask repro ID -- their-controller`. `--list` names them.
    Repro {
        /// Arguments for `longhaul repro`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build the service of another revision and of this one, and say whether this one is worse. Exit codes as `longhaul gate`.
    Gate(gate::Arguments),
    /// Run the quick tests, or with `--full` all.
    Test(test::Arguments),
    /// Run the full gate: format, lints, tests, documentation, dependency policy, generated files.
    Check(check::Arguments),
    /// Build in release mode and measure what a part costs, beside the real thing where that is at hand.
    Bench(bench::Arguments),
    /// Build the seed, the program that `longhaul-service inject` sends, and check that it is static and small enough.
    Seed,
    /// Build what is shipped: static programs, tarballs with their sums, images. `--help` says how.
    #[command(disable_help_flag = true)]
    Dist {
        /// Arguments for the package `dist`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build and run any `longhaul` command, for example `cargo xtask longhaul mock kube`.
    Longhaul {
        /// Arguments for `longhaul`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Soak(arguments) => soak::soak(arguments),
        Command::Repro { arguments } => soak::repro(arguments),
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Test(arguments) => test::test(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Seed => seed::seed(),
        Command::Dist { arguments } => dist::dist(&arguments),
        Command::Longhaul { arguments } => soak::longhaul(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(EXIT_XTASK_FAILED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands behind `--` is the client's command and reaches `longhaul` as it was typed.
    #[test]
    fn the_command_of_a_repro_is_passed_on() {
        let cli = Cli::try_parse_from(["xtask", "repro", "some-bug", "--http", "2", "--", "client", "--flag"]);
        let Ok(Cli { command: Command::Repro { arguments } }) = cli else { panic!("not parsed") };
        assert_eq!(arguments, ["some-bug", "--http", "2", "--", "client", "--flag"]);
    }
}
