//! Starts the measured servers: the service, the plain hyper server, and the Go server.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::client::Caller;
use super::world::World;
use crate::kit::floor as bare;
use crate::kit::process::{Running, beside, free};

/// Time limit of a server's start. On a small machine the service needs a while to list 100,000 Deployments.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Wait after the service's first list, until it has released its buffers.
const SETTLE: Duration = Duration::from_secs(15);
/// Number of threads of the plain server, as many as the service has.
const FLOOR_THREADS: usize = 2;
/// The source of the Go server. The three servers must give the same answer, because the plain server can give only one
/// answer.
const GO_SOURCE: &str = include_str!("go/main.go");
const GO_MODULE: &str = include_str!("go/go.mod");

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) running: Running,
}

impl Subject {
    async fn start(world: &World, name: &'static str, address: SocketAddr, command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("failed to start {name}"))?;
        let caller = Caller::new(world, address)?;
        let running = Running::start(name, child, START_LIMIT, async || caller.is_answered().await).await?;
        if name != "floor" {
            tokio::time::sleep(SETTLE).await;
        }
        Ok(Self { name, address, running })
    }
}

/// Starts the service as released.
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
    let mut command = Command::new(beside("longhaul-service"));
    command.args(["run", "--role", "replicas", "--config"]).arg(file);
    Subject::start(world, "service", address, &mut command).await
}

pub(crate) async fn floor(world: &World) -> Result<Subject> {
    let address = free()?;
    let mut command = bare::command(address, &world.file("server.crt"), &world.file("server.key"), FLOOR_THREADS)?;
    Subject::start(world, "floor", address, command.arg(world.file("ca.crt"))).await
}

/// Starts the Go server. The error names the missing requirement.
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
