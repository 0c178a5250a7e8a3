//! `cargo xtask dist`: runs a package of its own, because archives and digests need crates that a first soak does not
//! need.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo::{cargo, shown};

/// Runs it and returns its exit code.
pub(crate) fn dist(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package=dist", "--"]).args(arguments);
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}
