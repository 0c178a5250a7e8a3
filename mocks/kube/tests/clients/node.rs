//! `@kubernetes/client-node` and `kubernetes-fluent-client`.

use std::path::{Path, PathBuf};

use installer::Missing;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::program;
use crate::world::World;

/// A JavaScript client and its program.
struct Client {
    package: &'static str,
    version: &'static str,
    program: &'static str,
}

static CLIENT_NODE: Client =
    Client { package: "@kubernetes/client-node", version: "2.0.1", program: include_str!("client-node/program.mjs") };

static FLUENT: Client =
    Client { package: "kubernetes-fluent-client", version: "3.11.11", program: include_str!("fluent/program.mjs") };

/// The missing requirement, for the text after `skipped: needs`.
#[derive(Debug, thiserror::Error)]
enum Needs {
    #[error(transparent)]
    Installer(#[from] Missing),
    #[error("symbolic links: {0}")]
    Links(#[source] std::io::Error),
}

/// An installed client: node, and a folder in which the program finds its packages.
struct Installed {
    node: PathBuf,
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Client {
    async fn install(&self) -> Result<Installed, Needs> {
        let package = installer::package(self.package, self.version).unwrap();
        let installed = package.install().await?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.mjs"), self.program).unwrap();
        link(&installed.folder.join("node_modules"), &folder.path().join("node_modules"))?;
        Ok(Installed { node: installed.interpreter, folder, name: self.package })
    }
}

#[cfg(unix)]
fn link(target: &Path, name: &Path) -> Result<(), Needs> {
    std::os::unix::fs::symlink(target, name).map_err(Needs::Links)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> Result<(), Needs> {
    Err(Needs::Links(std::io::ErrorKind::Unsupported.into()))
}

impl Installed {
    async fn run(&self, world: &World) -> Vec<Value> {
        let mut command = Command::new(&self.node);
        command.env_clear().arg("program.mjs").current_dir(self.folder.path());
        program::run(self.name, command, world).await
    }
}

/// The installed client; `None`, with a message, if a requirement is missing.
async fn installed(client: &Client) -> Option<Installed> {
    client.install().await.inspect_err(|missing| println!("skipped: needs {missing}")).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: an interpreter and its packages"]
async fn client_node_reads_and_writes() {
    let Some(client) = installed(&CLIENT_NODE).await else { return };
    let world = World::start().await;
    assert_eq!(client.run(&world).await.len(), 1, "it came to its end");
    let left = world.get("generic").await;
    assert_eq!(left["spec"], json!({"image": "a:2", "replicas": 3}));
    assert_eq!((&left["status"]["phase"], &left["metadata"]["generation"]), (&json!("Ready"), &json!(3)));
    world.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: an interpreter and its packages"]
async fn the_fluent_client_reads_and_writes() {
    let Some(client) = installed(&FLUENT).await else { return };
    let world = World::start().await;
    client.run(&world).await;
    assert!(world.truth().await.is_empty(), "the finalizer was taken away and the object went");
    let asked = world.story(0).join("\n");
    assert!(asked.contains("PATCH /apis/longhaul.dev/v1/namespaces/default/packages/fluent/status"), "{asked}");
    world.server.shutdown().await;
}
