//! `cargo xtask kinds`: runs the package `kinds`, which reads a real API server. This module chooses the output file,
//! and finds Go's module cache and the folder of the real API server.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::{cargo, shown};

/// The Kubernetes release that the mock serves. The environment variable `VERSION` may name another release.
const VERSION: &str = "1.34.1";

/// Runs the package `kinds` and returns its exit code.
pub(crate) fn kinds(arguments: &[String]) -> Result<ExitCode> {
    let version = std::env::var("VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let minor: Vec<&str> = version.split('.').take(2).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is below the root")?;
    let out = root.join(format!("mocks/objects/src/builtin/{}.kinds", minor.join(".")));
    let mut command = cargo();
    command.args(["run", "--quiet", "--package=kinds", "--"]).arg("--version").arg(&version).arg("--out").arg(out);
    command.arg("--modules").arg(module_cache()?);
    if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") {
        command.arg("--assets").arg(assets);
    }
    command.args(arguments);
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}

fn module_cache() -> Result<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().context("failed to start `go`")?;
    ensure!(output.status.success(), "`go env GOMODCACHE` failed");
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
