//! The server that all load generators call: a plain hyper server in a separate process (`kit/floor.rs`). At the path
//! [`floor::FREEZE_PATH`] this server holds every answer during the first two seconds of each ten seconds of the clock.
//! By this rule the benchmark can compute the true latency of each answer.

use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::kit::floor;
use crate::kit::process::{Running, free};

/// Time limit of the server's start on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    _running: Running,
    _folder: tempfile::TempDir,
    address: SocketAddr,
    pub(crate) ca_pem: String,
}

impl Server {
    /// Starts the benchmark's program again as the server.
    pub(crate) async fn start() -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free()?);
        let authority = mock_pki::Authority::generate("longhaul bench")?;
        let pair = authority.server(&["127.0.0.1", "localhost"])?;
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, &pair.certificate_pem)?;
        std::fs::write(&key, &pair.key_pem)?;
        let threads = std::thread::available_parallelism()?.get();
        let mut command = floor::command(address, &certificate, &key, threads)?;
        let child = command.stdout(Stdio::null()).spawn().context("failed to start the server")?;
        let is_ready = async || TcpStream::connect(address).is_ok();
        let running = Running::start("the server", child, START_LIMIT, is_ready).await?;
        Ok(Self { _running: running, _folder: folder, address, ca_pem: authority.ca_pem().to_owned() })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }
}
