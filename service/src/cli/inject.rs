//! The connection to the API server and the check of signatures that the `inject` commands get from this program.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_admission::config::Config;
use service_admission::once::verify_among;
use service_admission::validator::Approval;
use service_core::kube::Cluster;
use service_inject::Verdict;
use service_inject::command::{self, Command, Program};
use service_registry::Pieces;
use tokio::time::Instant;

use super::verify::TIMEOUT;
use super::{Bugs, Failure, PLANTED_VARIABLE, plant, runtime, usage};
use crate::config;

/// Runs an `inject` command; returns whether it succeeded.
pub(super) fn run(command: Command, bugs: Option<Bugs>) -> Result<bool, Failure> {
    let planted = plant(bugs.map(|bugs| bugs.inject), std::env::var_os(PLANTED_VARIABLE)).map_err(usage)?;
    let program = Program { load, judge: verdict, cluster: planted.unwrap_or(cluster) };
    Ok(runtime()?.block_on(command::run(command, program))?)
}

fn load(path: Option<&Path>) -> Result<config::Config, config::Error> {
    path.map_or_else(|| config::parse("", Path::new("")), config::load)
}

fn cluster(kubeconfig: Option<&Path>) -> anyhow::Result<Cluster> {
    Ok(Cluster::find(kubeconfig)?)
}

/// The verdict on `image` under the configuration `file`. The signatures come from `pieces`, not from a registry.
fn verdict(
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
