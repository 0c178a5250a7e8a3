//! `inject`: what this program has for its commands.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_admission::config::Config;
use service_admission::once::verify_among;
use service_admission::validator::Approval;
use service_inject::Verdict;
use service_inject::command::{self, Command, Program};
use service_registry::Pieces;
use tokio::time::Instant;

use super::verify::TIMEOUT;
use super::{Build, Failure, PLANTED_VARIABLE, runtime, usage};
use crate::config;

/// What the commands need of this program.
const PROGRAM: Program =
    Program { load: |path| path.map_or_else(|| config::parse("", Path::new("")), config::load), judge: judged };

/// Does it; answers whether all is well.
pub(super) fn run(command: Command, build: Build) -> Result<bool, Failure> {
    bugs(build, std::env::var_os(PLANTED_VARIABLE)).map_err(usage)?;
    Ok(runtime()?.block_on(command::run(command, PROGRAM))?)
}

/// What `file` says of `image`, whose signatures lie among `pieces`.
fn judged(
    file: Arc<config::Config>,
    image: String,
    pieces: Arc<dyn Pieces>,
) -> BoxFuture<'static, anyhow::Result<Verdict>> {
    async move {
        let report = verify_among(&Config::of(&file), &image, &pieces, Instant::now() + TIMEOUT).await?;
        let signers = |approval: Arc<Approval>| approval.signers.iter().map(|signer| signer.name.clone()).collect();
        Ok(report.outcome.map(signers).map_err(|failure| format!("{failure} ({})", report.rule)))
    }
    .boxed()
}

/// Switches on a bug of these commands, which the clean build has not.
fn bugs(build: Build, planted: Option<OsString>) -> anyhow::Result<()> {
    let Some(name) = planted.filter(|name| !name.is_empty()) else { return Ok(()) };
    let name = name.to_string_lossy();
    #[cfg(feature = "planted-bugs")]
    if build == Build::Planted {
        let known = service_inject::planted::ALL.join(", ");
        anyhow::ensure!(service_inject::planted::switch_on(&name), "{PLANTED_VARIABLE}={name}: use one of {known}");
        return Ok(());
    }
    let _ = build;
    anyhow::bail!("{PLANTED_VARIABLE}={name} is set, and this binary has no planted bugs: use longhaul-service-planted")
}
