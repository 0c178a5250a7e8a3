//! The servers that are measured: starting and stopping them, and their memory.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use procfs::WithCurrentSystemInfo as _;
use procfs::process::Process;
use serde_json::json;

use crate::client::Caller;
use crate::world::{World, free};

/// A list of 100,000 Deployments takes a while on a small machine.
const START_DEADLINE: Duration = Duration::from_mins(2);
const START_LOOK: Duration = Duration::from_millis(100);
/// After the list its buffers are given back.
const SETTLE: Duration = Duration::from_secs(15);
/// The answer is the same for all: the floor has no other.
const GO_SOURCE: &str = include_str!("go/main.go");
const GO_MODULE: &str = include_str!("go/go.mod");

/// A running server.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    process: Running,
}

/// Its process, which ends with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Subject {
    async fn start(world: &World, name: &'static str, address: SocketAddr, command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = Running(child.with_context(|| format!("failed to start {name}"))?);
        let subject = Self { name, address, process };
        let caller = Caller::new(world, &subject)?;
        let deadline = Instant::now() + START_DEADLINE;
        while !caller.is_answered().await {
            if Instant::now() > deadline {
                bail!("{name} answers nothing");
            }
            tokio::time::sleep(START_LOOK).await;
        }
        if name != "floor" {
            tokio::time::sleep(SETTLE).await;
        }
        Ok(subject)
    }

    /// Resident memory.
    pub(crate) fn resident_mib(&self) -> Result<f64> {
        let process = Process::new(i32::try_from(self.process.0.id())?)?;
        Ok(process.stat()?.rss_bytes().get() as f64 / f64::from(1 << 20))
    }
}

/// The service, as it is released.
pub(crate) async fn service(world: &World) -> Result<Subject> {
    let address = free()?;
    let bucket = json!({"perSecond": 10_000_000, "burst": 10_000_000});
    let config = json!({
        "replicas": {
            "listen": address, "certificate": "server.crt", "key": "server.key", "clientCA": ["ca.crt"],
            "rate": {"client": bucket, "all": bucket},
        },
        "kubernetes": {"kubeconfig": "kubeconfig"}, "log": {"level": "warn"},
    });
    let file = world.file("service.yaml");
    std::fs::write(&file, config.to_string())?;
    let mut command = Command::new(beside("longhaul-service")?);
    command.args(["run", "--role", "replicas", "--config"]).arg(file);
    Subject::start(world, "service", address, &mut command).await
}

/// The bare server.
pub(crate) async fn floor(world: &World) -> Result<Subject> {
    let address = free()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("floor").arg(address.to_string()).arg(world.folder.path());
    Subject::start(world, "floor", address, &mut command).await
}

/// The Go server; an error says what is missing.
pub(crate) async fn go(world: &World) -> Result<Subject, String> {
    let program = installer::go_program("replicas-server", GO_SOURCE, GO_MODULE)?;
    let run = async {
        let address = free()?;
        let mut command = Command::new(program);
        command.arg(address.to_string()).arg(world.folder.path());
        Subject::start(world, "go", address, &mut command).await
    };
    run.await.map_err(|error| format!("a Go server that starts ({error:#})"))
}

/// A program that was built beside this one.
fn beside(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    folders.into_iter().find(|path| path.is_file()).with_context(|| format!("{name} is not built"))
}
