//! `longhaul cluster up --with service`: the service in a kind cluster, deployed with the manifests that it prints
//! itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kind::cluster;
use kind::node::image::Image;

/// The program of the service, beside this one.
const PROGRAM: &str = "longhaul-service";
/// The name of its image in the cluster.
const IMAGE: &str = "docker.io/library/longhaul-service:dev";
/// The user ID that its manifests run it as.
const USER: u32 = 65532;
const PLACE: [&str; 2] = ["longhaul-system", "longhaul-webhook"];

/// The service, before it is deployed.
pub(super) struct Service {
    program: PathBuf,
}

impl Service {
    /// Finds the program beside this one, before anything is started.
    pub(super) fn found() -> Result<Self> {
        let program = crate::subject::sibling(PROGRAM)
            .context("build it first: `cargo build --release -p service --features full`")?;
        Ok(Self { program })
    }

    /// Loads an image of it, applies its manifests, waits for the rollout, and returns a hint how to see it at work.
    pub(super) async fn deploy(&self, state: &Path, name: &str) -> Result<String> {
        let image = Image::of_program(IMAGE, &self.program, USER).and_then(|image| image.archive());
        let image = image.with_context(|| format!("failed to make an image of {}", self.program.display()))?;
        let folder = tempfile::tempdir().context("failed to make a folder for the image")?;
        let archive = folder.path().join("service.tar");
        std::fs::write(&archive, image).with_context(|| format!("failed to write {}", archive.display()))?;
        let words = ["manifests", "--image", IMAGE, "--failure-policy", "fail"];
        let printed = tokio::process::Command::new(&self.program).args(words).output().await;
        let printed = printed.with_context(|| format!("failed to call {}", self.program.display()))?;
        let said = String::from_utf8_lossy(&printed.stderr);
        ensure!(printed.status.success(), "{} {}: {said}", self.program.display(), words.join(" "));
        let manifests = String::from_utf8_lossy(&printed.stdout).into_owned();
        cluster::deploy(state, name, &archive, manifests, PLACE).await?;
        let [namespace, deployment] = PLACE;
        let (key, value) = kind::manifests::OPT_IN_LABEL;
        Ok(format!(
            "the service is active: {deployment} in {namespace} reviews Pods and their workloads in namespaces with its label\n  use it:  \
             kubectl label namespace NAME {key}={value}"
        ))
    }
}
