//! `kubernetes`, the official Python client.

use std::path::PathBuf;

use installer::Missing;
use serde_json::Value;
use tokio::process::Command;

use crate::program;
use crate::world::World;

/// A Python client and its program.
struct Client {
    package: &'static str,
    version: &'static str,
    program: &'static str,
}

static OFFICIAL: Client =
    Client { package: "kubernetes", version: "37.0.2", program: include_str!("python/program.py") };

/// An installed client: Python, its packages, and the folder of the program.
struct Installed {
    python: PathBuf,
    packages: PathBuf,
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Client {
    async fn install(&self) -> Result<Installed, Missing> {
        let installed = installer::package(self.package, self.version).unwrap().install().await?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.py"), self.program).unwrap();
        Ok(Installed { python: installed.interpreter, packages: installed.folder, folder, name: self.package })
    }
}

impl Installed {
    async fn run(&self, world: &World) -> Vec<Value> {
        let mut command = Command::new(&self.python);
        command.env_clear().env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONUNBUFFERED", "1").arg("program.py").current_dir(self.folder.path());
        program::run(self.name, command, world).await
    }
}

/// The installed client; `None`, with a message, if a requirement is missing.
async fn installed(client: &Client) -> Option<Installed> {
    client.install().await.inspect_err(|missing| println!("skipped: needs {missing}")).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: an interpreter and its packages"]
async fn python_reads_and_writes() {
    let Some(client) = installed(&OFFICIAL).await else { return };
    let world = World::start().await;
    assert_eq!(client.run(&world).await.len(), 1, "it came to its end");
    assert!(world.truth().await.is_empty());
    world.server.shutdown().await;
}
