//! `cargo xtask test`: the tests, with the programs that some of them run. What is quick is said by `default-filter` in
//! `.config/nextest.toml`; the rest are whole soaks, libraries of bugs and crowds of clients.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Result;

use crate::{cargo, junit, seed};

/// Tests side by side on each processor: they wait for sockets and clocks more than they compute.
const SIDE_BY_SIDE: usize = 3;
/// Where nextest writes what `.config/nextest.toml` asks for: below the workspace, whatever cargo's target directory is.
const JUNIT: &str = "target/nextest/default/junit.xml";

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// All tests, not only the quick ones.
    #[arg(long)]
    full: bool,
    /// What `--full` has beside the quick ones, for whoever has just run those.
    #[arg(long, conflicts_with = "full")]
    rest: bool,
    /// Only tests whose name contains this, quick or not.
    #[arg(conflicts_with_all = ["full", "rest"])]
    filter: Vec<String>,
}

impl Arguments {
    /// Everything.
    pub(crate) fn full() -> Self {
        Self { full: true, ..Self::default() }
    }

    /// What nextest is told beside what all runs have in common.
    fn choice(&self) -> Vec<String> {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self { rest: true, .. } => text(&["--ignore-default-filter", "--filterset", "not default()"]),
            Self { full: true, .. } => text(&["--ignore-default-filter"]),
            Self { filter, .. } if filter.is_empty() => Vec::new(),
            Self { filter, .. } => [text(&["--ignore-default-filter"]), filter.clone()].concat(),
        }
    }
}

/// Runs tests of the workspace. With cargo-nextest when it is there (faster, and a hanging test is ended), else with
/// `cargo test`, which knows no quick ones and runs all.
///
/// Everything is built once, as one workspace with one set of features, planted bugs among them: any smaller choice would give
/// crates other features and build them once more. A bug that nobody plants changes nothing; that the programs build without
/// them is what the lints see.
pub(crate) fn test(arguments: &Arguments) -> Result<ExitCode> {
    cargo::run(cargo::cargo().args(["build", "--workspace", "--bins", "--tests", cargo::PLANTED_FEATURES]))?;
    seed::for_tests()?;
    let all = arguments.filter.is_empty();
    if has_nextest() {
        cargo::run(nextest().arg("--no-run"))?;
        let began = Instant::now();
        let result = cargo::run(nextest().arg("--no-fail-fast").args(arguments.choice()));
        junit::report(&cargo::root().join(JUNIT), began.elapsed());
        result?;
        if all && !arguments.rest {
            cargo::run(plain().args(["--doc", "--quiet"]))?;
        }
    } else if !arguments.rest {
        // What passing tests print is shown, because some print that they were skipped.
        cargo::run(plain().arg("--no-fail-fast").args(&arguments.filter).args(["--", "--show-output"]))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn nextest() -> Command {
    let threads = SIDE_BY_SIDE * std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = cargo::cargo();
    command.args(["nextest", "run", "--workspace", cargo::PLANTED_FEATURES]);
    command.arg(format!("--test-threads={threads}"));
    command
}

fn plain() -> Command {
    let mut command = cargo::cargo();
    command.args(["test", "--workspace", cargo::PLANTED_FEATURES]);
    command
}

fn has_nextest() -> bool {
    let mut command = cargo::cargo();
    command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
