//! `cargo xtask check`: the full gate, cheapest step first. It is what continuous integration runs.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::cargo::{PLANTED_FEATURES, cargo, run, shown};
use crate::test;

/// Arguments of `cargo xtask check`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Leave the tests out, for whoever runs `cargo xtask test` anyway.
    #[arg(long)]
    without_tests: bool,
}

/// Runs every step and stops at the first that fails.
pub(crate) fn check(arguments: &Arguments) -> Result<ExitCode> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    optional("dependency policy", "deny", cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    optional("unused dependencies", "machete", &mut cargo_args(&["machete"]))?;
    // Tests and benchmarks are looked at once, with the features that they are built with; what ships, without them.
    step("lints", cargo().args(["clippy", "--workspace", "--lib", "--bins", "--", "--deny=warnings"]))?;
    // What the fuzz targets call, and what only shipped programs have, is built by nothing else here.
    let more = "--features=service/fuzz,reports/fuzz,scenarios/dist,service/dist";
    let planted = ["clippy", "--workspace", "--all-targets", PLANTED_FEATURES, more, "--", "--deny=warnings"];
    step("lints with planted bugs", cargo().args(planted))?;
    let lean = [
        "clippy",
        "--package=service",
        "--lib",
        "--bins",
        "--no-default-features",
        "--features=manager",
        "--",
        "--deny=warnings",
    ];
    step("lints of a lean service", cargo().args(lean))?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    step("documentation", cargo().args(docs).env("RUSTDOCFLAGS", "--deny=warnings"))?;
    if !arguments.without_tests {
        eprintln!("check: tests (they also compare generated files with what is checked in)");
        test::test(&test::Arguments::full())?;
    }
    eprintln!("check: all green");
    Ok(ExitCode::SUCCESS)
}

fn cargo_args(arguments: &[&str]) -> Command {
    let mut command = cargo();
    command.args(arguments);
    command
}

fn step(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("check: {name}: {}", shown(command));
    run(command)
}

/// A step whose tool not everybody has. Its absence is said, never counted as passed.
fn optional(name: &str, tool: &str, command: &mut Command) -> Result<()> {
    let probe = cargo().args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) {
        return step(name, command);
    }
    eprintln!("check: {name}: skipped: needs cargo-{tool}");
    Ok(())
}
