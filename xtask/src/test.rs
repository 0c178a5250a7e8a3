//! `cargo xtask test`: all tests, with the programs that some of them run.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::{cargo, skipped};

/// The tests that need planted bugs compiled in, as a filter of nextest and as one of `cargo test`.
const PLANTED_FILTER: &str = "(package(service) | package(example-watcher)) & test(planted)";
const PLANTED_NAME: &str = "planted";
/// Where nextest writes what `.config/nextest.toml` asks for: below the workspace, whatever cargo's target directory is.
const JUNIT: &str = "target/nextest/default/junit.xml";

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Only tests whose name contains this.
    filter: Vec<String>,
}

/// Runs every test of the workspace. With cargo-nextest when it is there (faster, and a hanging test is ended), else with
/// `cargo test`.
///
/// Everything is built as one workspace with its tests: any smaller choice gives the dependencies other features and
/// builds them once more. The planted programs come first; the clean ones then replace the clean names.
pub(crate) fn test(arguments: &Arguments) -> Result<ExitCode> {
    cargo::run(cargo::cargo().args(["build", "--workspace", "--tests"]).args(cargo::PLANTED_PROGRAMS))?;
    let all = arguments.filter.is_empty();
    if has_nextest() {
        if all {
            cargo::run(nextest().arg(cargo::PLANTED_FEATURES).args(["--filterset", PLANTED_FILTER]))?;
        }
        let result = cargo::run(nextest().arg("--no-fail-fast").args(&arguments.filter));
        skipped::report(&cargo::root().join(JUNIT));
        result?;
        if all {
            cargo::run(cargo::cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
        }
    } else {
        if all {
            cargo::run(plain().args([cargo::PLANTED_FEATURES, PLANTED_NAME]))?;
        }
        // What passing tests print is shown, because some print that they were skipped.
        cargo::run(plain().arg("--no-fail-fast").args(&arguments.filter).args(["--", "--show-output"]))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn nextest() -> Command {
    let mut command = cargo::cargo();
    command.args(["nextest", "run", "--workspace"]);
    command
}

fn plain() -> Command {
    let mut command = cargo::cargo();
    command.args(["test", "--workspace"]);
    command
}

fn has_nextest() -> bool {
    let mut command = cargo::cargo();
    command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
