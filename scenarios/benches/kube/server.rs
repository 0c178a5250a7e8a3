//! The two servers that are measured, each a process of its own.
//!
//! Owns starting and stopping them, and reading their CPU time and resident memory from `/proc`. It must not measure
//! its own process: what clients cost is counted for nobody.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use kind::local::{self, Local};
use procfs::WithCurrentSystemInfo as _;
use procfs::process::Process;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::wire::Endpoint;

/// On a machine that compiles beside it the mock needs a second at most.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// The administrator of both servers.
const USER: &str = "admin";

/// A running server.
pub(crate) struct Server {
    pub name: &'static str,
    /// What the table says about it.
    pub about: String,
    pub endpoint: Endpoint,
    process: Process,
    held: Held,
}

/// What ends the server when it is dropped.
enum Held {
    Mock { child: Box<Child>, _output: Lines<BufReader<ChildStdout>>, _directory: tempfile::TempDir },
    Real { local: Box<Local>, _directory: tempfile::TempDir },
}

impl Server {
    /// Starts `longhaul mock kube`, as anybody would.
    pub async fn mock() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig.yaml");
        let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["mock", "kube", "--port", "0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("failed to start `longhaul mock kube`")?;
        let mut lines = BufReader::new(child.stdout.take().context("the child has no output")?).lines();
        let line =
            tokio::time::timeout(START_DEADLINE, lines.next_line()).await.context("the mock did not start")??;
        let line = line.context("the mock ended at once")?;
        let address = line.rsplit_once("https://").map(|(_, address)| address.trim());
        let address = address.with_context(|| format!("no URL in `{line}`"))?.parse()?;
        let (ca_pem, token) = credentials(&std::fs::read_to_string(&kubeconfig)?)?;
        let pid = child.id().context("the mock has ended")?;
        let held = Held::Mock { child: Box::new(child), _output: lines, _directory: directory };
        Self::new("mock", "longhaul mock kube".to_owned(), pid, address, (&ca_pem, token), held)
    }

    /// Starts etcd and kube-apiserver from a folder; only kube-apiserver is measured.
    pub async fn real(assets: PathBuf) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut config = local::Config::new(assets, directory.path());
        // As many requests at once as the mock takes: the fairness queues are not what is measured.
        config.apiserver_arguments = vec!["--max-requests-inflight=3000".to_owned()];
        let local = Local::start(config).await?;
        let [(_, pid), _] = local.processes();
        let pid = i32::try_from(pid)?;
        let token = local.token(USER).context("the control plane does not know its user")?.to_owned();
        let about = format!("kube-apiserver {} (without etcd)", local.version());
        let (address, ca_pem) = (local.address(), local.ca_pem().to_owned());
        let held = Held::Real { local: Box::new(local), _directory: directory };
        Self::new("real", about, u32::try_from(pid)?, address, (&ca_pem, token), held)
    }

    fn new(
        name: &'static str,
        about: String,
        pid: u32,
        address: SocketAddr,
        (ca_pem, token): (&str, String),
        held: Held,
    ) -> Result<Self> {
        let endpoint = Endpoint { address, tls: tls(ca_pem)?, token };
        Ok(Self { name, about, endpoint, process: Process::new(i32::try_from(pid)?)?, held })
    }

    /// Whether it is ours.
    pub fn is_mock(&self) -> bool {
        matches!(self.held, Held::Mock { .. })
    }

    /// CPU time of all its threads, in microseconds. `/proc/PID/stat` would say it to 10 ms only. Both servers keep
    /// their threads, so nothing is lost with one that ended.
    pub fn cpu_us(&self) -> Result<f64> {
        let tasks = self.process.tasks().with_context(|| format!("the {} has ended", self.name))?;
        let mut total_ns = 0;
        for task in tasks {
            total_ns += task?.schedstat()?.sum_exec_runtime;
        }
        Ok(total_ns as f64 / 1e3)
    }

    /// Resident memory now, in bytes.
    pub fn rss_bytes(&self) -> Result<f64> {
        let stat = self.process.stat().with_context(|| format!("the {} has ended", self.name))?;
        Ok(stat.rss_bytes().get() as f64)
    }

    /// Asks it to end.
    pub async fn stop(self) {
        match self.held {
            Held::Mock { mut child, .. } => {
                let _ = child.kill().await;
            }
            Held::Real { local, .. } => local.stop().await,
        }
    }
}

/// The authority and the token in a kubeconfig with one cluster and one user.
fn credentials(kubeconfig: &str) -> Result<(String, String)> {
    let value: Value =
        serde_saphyr::from_str(kubeconfig).map_err(|error| anyhow::anyhow!("the kubeconfig: {error}"))?;
    let text = |pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.with_context(|| format!("the kubeconfig has no {pointer}"))
    };
    let ca = text("/clusters/0/cluster/certificate-authority-data")?;
    let ca = base64::engine::general_purpose::STANDARD.decode(ca)?;
    Ok((String::from_utf8(ca)?, text("/users/0/user/token")?.to_owned()))
}

fn tls(ca_pem: &str) -> Result<Arc<rustls::ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        bail!("the server has no authority");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
