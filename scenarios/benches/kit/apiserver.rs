//! API servers for benchmarks: the mock as a separate process or inside the benchmark, and a real kube-apiserver for
//! comparison.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use hyper::Method;
use kind::local::{self, Local};
use serde_json::{Value, json};

use super::client::Endpoint;
use super::process::{Measured, Running, free};

/// Time limit of a server's start. Even on a machine that compiles at the same time, the mock starts within a second.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The user name of the measured program.
const USER: &str = "admin";
/// The user name of the benchmark's client, on servers that count requests by user.
const BENCH: &str = "bench";

/// A running API server, which ends on drop.
pub(crate) struct ApiServer {
    pub(crate) name: &'static str,
    /// Description of the server in a printed table.
    pub(crate) about: String,
    /// The server's address and TLS settings for the benchmark's client.
    pub(crate) endpoint: Endpoint,
    /// The kubeconfig that the measured program uses.
    pub(crate) kubeconfig: String,
    held: Backend,
}

enum Backend {
    Process { running: Running, _folder: tempfile::TempDir },
    Here(Box<mock_kube::Server>),
    Real { local: Box<Local>, measured: Measured, _folder: tempfile::TempDir },
}

impl ApiServer {
    /// Starts `longhaul mock kube` with its usual settings, from `program` if it is given, otherwise from the build
    /// beside this benchmark.
    pub(crate) async fn process(program: Option<&Path>) -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free()?);
        let file = folder.path().join("kubeconfig.yaml");
        let mut command = Command::new(program.unwrap_or(Path::new(env!("CARGO_BIN_EXE_longhaul"))));
        command.args(["mock", "kube", "--token", BENCH, "--port", &address.port().to_string(), "--kubeconfig"]);
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().context("failed to start `longhaul mock kube`")?;
        // The file is written when the server listens.
        let running = Running::start("the mock", child, START_LIMIT, async || file.exists()).await?;
        let kubeconfig = std::fs::read_to_string(&file)?;
        let endpoint = Endpoint::new(address, &authority(&kubeconfig)?, None, BENCH)?;
        let held = Backend::Process { running, _folder: folder };
        Ok(Self { name: "mock", about: "longhaul mock kube".to_owned(), endpoint, kubeconfig, held })
    }

    /// Starts the mock inside the benchmark's process.
    pub(crate) async fn here() -> Result<Self> {
        let authority = mock_pki::Authority::generate("longhaul bench")?;
        let mut config = mock_kube::Config::new();
        config.users = vec![mock_kube::User::admin(USER, USER), mock_kube::User::admin(BENCH, BENCH)];
        config.furnished_namespaces = true;
        let server = mock_kube::Server::start(config, &authority).await?;
        let kubeconfig = server.kubeconfig(USER).context("the user is known")?;
        let endpoint = Endpoint::new(server.address(), authority.ca_pem(), None, BENCH)?;
        let held = Backend::Here(Box::new(server));
        Ok(Self { name: "mock", about: "the mock API server".to_owned(), endpoint, kubeconfig, held })
    }

    /// Starts etcd and kube-apiserver from the folder in `KUBEBUILDER_ASSETS`. Returns `None` if the variable is not
    /// set.
    pub(crate) async fn real() -> Result<Option<Self>> {
        let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !assets.is_empty()) else {
            println!("the real API server is left out: skipped: needs KUBEBUILDER_ASSETS");
            return Ok(None);
        };
        Self::from(assets.into()).await.context("failed to start a real API server").map(Some)
    }

    async fn from(assets: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut config = local::Config::new(assets, folder.path());
        // The same limit of concurrent requests as the mock's: the fairness queues are not measured.
        config.apiserver_arguments = vec!["--max-requests-inflight=3000".to_owned()];
        let local = Local::start(config).await?;
        let measured = Measured::new(&local.processes().map(|(_, pid)| pid))?;
        let kubeconfig = local.access().kubeconfig(USER).context("the user is known")?;
        let token = local.access().token(USER).context("the user is known")?;
        let endpoint = Endpoint::new(local.access().address(), local.access().ca_pem(), None, token)?;
        let about = format!("kube-apiserver {} and its etcd", local.access().version());
        // No controller creates the account here, and without it no Pod is accepted.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let path = "/api/v1/namespaces/default/serviceaccounts";
        endpoint.connect().await?.ask(Method::POST, path, account.to_string()).await?;
        let held = Backend::Real { local: Box::new(local), measured, _folder: folder };
        Ok(Self { name: "real", about, endpoint, kubeconfig, held })
    }

    pub(crate) fn is_mock(&self) -> bool {
        !matches!(self.held, Backend::Real { .. })
    }

    /// The server's processes, whose CPU time and memory are measured. Returns an error if the server runs inside the
    /// benchmark's process.
    pub(crate) fn measured(&self) -> Result<&Measured> {
        match &self.held {
            Backend::Process { running, .. } => Ok(&running.measured),
            Backend::Real { measured, .. } => Ok(measured),
            Backend::Here(_) => anyhow::bail!("a server in this process is not measured"),
        }
    }

    /// Starts counting the measured program's requests, if the server can count them.
    pub(crate) fn follow_requests(&self) {
        if let Backend::Here(server) = &self.held {
            server.follow_requests(USER);
        }
    }

    /// Number of the measured program's requests since the last call, if the server counts them.
    pub(crate) fn requests(&self) -> Option<usize> {
        let Backend::Here(server) = &self.held else { return None };
        let (requests, lost) = server.take_requests(USER);
        (lost == 0).then_some(requests.len())
    }

    /// Ends the server and waits until its processes are gone.
    pub(crate) async fn stop(self) {
        if let Backend::Real { local, .. } = self.held {
            local.stop().await;
        }
    }
}

/// The CA certificate (PEM) in a kubeconfig with one cluster.
fn authority(kubeconfig: &str) -> Result<String> {
    let value: Value =
        serde_saphyr::from_str(kubeconfig).map_err(|error| anyhow::anyhow!("the kubeconfig: {error}"))?;
    let ca = value.pointer("/clusters/0/cluster/certificate-authority-data").and_then(Value::as_str);
    let ca = base64::engine::general_purpose::STANDARD.decode(ca.context("the kubeconfig has no authority")?)?;
    Ok(String::from_utf8(ca)?)
}
