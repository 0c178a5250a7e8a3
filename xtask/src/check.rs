//! `cargo xtask check`: all checks that a change must pass, the cheapest first. Continuous integration runs `cargo
//! xtask check`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::cargo::{FULL, PLANTED_FEATURES, cargo, run, shown};
use crate::{containers, test};

/// Arguments of `cargo xtask check`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Skip the tests, if you run `cargo xtask test` separately.
    #[arg(long)]
    without_tests: bool,
}

/// Runs every check and stops at the first failure.
pub(crate) fn check(arguments: &Arguments) -> Result<ExitCode> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    step("format of the tests with containers", &mut containers::cargo(&["fmt", "--check"]))?;
    optional("dependency policy", "deny", cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    advisories()?;
    optional("unused dependencies", "machete", &mut cargo_args(&["machete"]))?;
    // Tests and benchmarks are checked together, with their own features; released code is checked without them.
    step("lints", cargo().args(["clippy", "--workspace", "--lib", "--bins", FULL, "--", "--deny=warnings"]))?;
    // The code for fuzz targets and for release programs is built by no other step.
    let more = "--features=service/fuzz,reports/fuzz,scenarios/dist,service/dist";
    let planted = ["clippy", "--workspace", "--all-targets", PLANTED_FEATURES, more, "--", "--deny=warnings"];
    step("lints with planted bugs", cargo().args(planted))?;
    let lean = ["clippy", "--package=service", "--lib", "--bins"];
    step("lints of the lean service", cargo().args(lean).args(["--", "--deny=warnings"]))?;
    let webhook = ["--no-default-features", "--features=admission", "--", "--deny=warnings"];
    step("lints of the webhook alone", cargo().args(lean).args(webhook))?;
    containers()?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet", FULL];
    step("documentation", cargo().args(docs).env("RUSTDOCFLAGS", "--deny=warnings"))?;
    if !arguments.without_tests {
        eprintln!("check: tests (they also compare generated files with what is checked in)");
        test::test(&test::Arguments::full())?;
    }
    eprintln!("check: all green");
    Ok(ExitCode::SUCCESS)
}

/// Checks the tests that start containers, if a container engine answers: only then the tests are compiled.
fn containers() -> Result<()> {
    if !containers::has_engine() {
        eprintln!("check: lints of the tests with containers: skipped: needs an engine");
        return Ok(());
    }
    let lints = ["clippy", "--all-targets", "--", "--deny=warnings"];
    step("lints of the tests with containers", &mut containers::cargo(&lints))?;
    let config = crate::cargo::root().join("deny.toml");
    let mut policy = containers::cargo(&["deny", "check", "--config"]);
    policy.arg(config).args(["bans", "licenses", "sources"]);
    optional("dependency policy of the tests with containers", "deny", &mut policy)
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

/// Runs a check that needs an optional tool. If the tool is missing, prints a message and does not count the check as
/// passed.
fn optional(name: &str, tool: &str, command: &mut Command) -> Result<()> {
    if has(tool) {
        return step(name, command);
    }
    eprintln!("check: {name}: skipped: needs cargo-{tool}");
    Ok(())
}

fn has(tool: &str) -> bool {
    let probe = cargo().args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// Checks dependencies for known vulnerabilities. Uses the vulnerability database on this machine, because checks must
/// not depend on the network; `cargo deny fetch` updates the database.
fn advisories() -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    match lacking(has("deny"), &home) {
        None => step("advisories", cargo().args(["deny", "check", "--disable-fetch", "advisories"])),
        Some(what) => {
            eprintln!("check: advisories: skipped: needs {what}");
            Ok(())
        }
    }
}

/// A requirement of the check of vulnerabilities that this machine does not meet; `None` if it meets all.
fn lacking(has_tool: bool, cargo_home: &Path) -> Option<&'static str> {
    let has_database = || {
        let folders = std::fs::read_dir(cargo_home.join("advisory-dbs")).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| folder.path().join("crates").is_dir())
    };
    if !has_tool {
        Some("cargo-deny")
    } else if !has_database() {
        Some("an advisory database (cargo deny fetch)")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisories_need_a_tool_and_a_database() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(lacking(false, home.path()), Some("cargo-deny"));
        std::fs::create_dir_all(home.path().join("advisory-dbs/db.lock")).unwrap();
        assert!(lacking(true, home.path()).unwrap().contains("database"));
        std::fs::create_dir_all(home.path().join("advisory-dbs/advisory-db-1/crates")).unwrap();
        assert_eq!(lacking(true, home.path()), None);
    }
}
