//! `cargo xtask dist`: a package of its own does it, because archives and digests need crates that a first soak has no use for.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo::{cargo, shown};

/// Runs it and exits as it does.
pub(crate) fn dist(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package=dist", "--"]).args(arguments);
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}
