//! `longhaul cluster up --with service`: deploys the service into a kind cluster, with manifests that the service
//! prints.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kind::cluster;
use kind::node::image::Image;

/// The file name of the service's program, beside `longhaul`.
const PROGRAM: &str = "longhaul-service";
/// The name of the service's image in the cluster.
const IMAGE: &str = "docker.io/library/longhaul-service:dev";
/// The user ID under which the manifests run the service.
const USER: u32 = 65532;
const PLACE: [&str; 2] = ["longhaul-system", "longhaul-webhook"];

/// The program of the service that is to be deployed.
pub(super) struct Service {
    program: PathBuf,
}

impl Service {
    /// Finds the program beside `longhaul`, before a cluster is started.
    pub(super) fn found() -> Result<Self> {
        let program = crate::subject::sibling(PROGRAM)
            .context("build it first: `cargo build --release -p service --features full`")?;
        Ok(Self { program })
    }

    /// Loads an image of the service, applies its manifests and waits for the rollout. Returns a hint how to see the
    /// service at work.
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
