//! `cargo xtask strangers`: runs a package of its own, and builds `longhaul` for it unless nothing is played.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo::{FULL, build_soak, cargo, shown};

/// Arguments with which nothing is played.
const WITHOUT_A_RUN: [&str; 4] = ["--list", "--draw", "--help", "-h"];

/// Runs it and returns its exit code.
pub(crate) fn strangers(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package=strangers", "--"]).args(arguments);
    let names_one = arguments.iter().any(|argument| argument.split('=').next() == Some("--longhaul"));
    if !names_one && !arguments.iter().any(|argument| WITHOUT_A_RUN.contains(&argument.as_str())) {
        command.arg("--longhaul").arg(build_soak(&[], FULL)?);
    }
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}
