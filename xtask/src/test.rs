//! `cargo xtask test`: all tests, with the programs that some of them run.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::{cargo, skipped};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Only tests whose name contains this.
    filter: Vec<String>,
}

/// Runs every test of the workspace. With cargo-nextest when it is there (faster, and a hanging test is ended), else with `cargo test`.
pub(crate) fn test(arguments: &Arguments) -> Result<ExitCode> {
    build_programs()?;
    if has_nextest() {
        let result = cargo::run(
            cargo::cargo().args(["nextest", "run", "--workspace", "--no-fail-fast"]).args(&arguments.filter),
        );
        skipped::report(&cargo::target().join("nextest/default/junit.xml"));
        result?;
        if arguments.filter.is_empty() {
            cargo::run(cargo::cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
        }
    } else {
        // What passing tests print is shown, because some print that they were skipped.
        let mut command = cargo::cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]).args(&arguments.filter).args(["--", "--show-output"]);
        cargo::run(&mut command)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the programs that end-to-end tests start, in the same profile as the tests.
fn build_programs() -> Result<()> {
    cargo::run(cargo::cargo().args(["build", "--workspace", "--exclude=xtask", "--bins"]))?;
    cargo::build_planted(false)
}

fn has_nextest() -> bool {
    let mut command: Command = cargo::cargo();
    command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
