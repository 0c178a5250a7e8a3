//! A real control plane without nodes: etcd and kube-apiserver as child processes on loopback ports.
//!
//! The programs come from a folder as in envtest (`KUBEBUILDER_ASSETS`); this module downloads nothing. Because no
//! controller manager runs, nothing is garbage collected, deleted namespaces stay, and Pods stay pending. Watches and
//! webhooks are real; only controllers and nodes are missing.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::MissingProgram;
use crate::access::Access;
use crate::machinery::Machinery;
use crate::programs::files::{Files, Server};
use crate::programs::process::{Lifetime, Process};
use crate::programs::ready;
use crate::state::{Ready, Registration};

pub use crate::programs::{Error, Unready, User};

/// The default time until etcd and kube-apiserver must be ready. On two busy cores etcd starts in about a second, and
/// kube-apiserver in about eight.
const START_DEADLINE: Duration = Duration::from_mins(1);
/// The time that a program has to end before it is killed. kube-apiserver waits until its clients close their watches,
/// so a longer wait does not help.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of attempts to start a control plane. In rare cases another program takes a free port before etcd or
/// kube-apiserver binds it.
const ATTEMPTS: u32 = 3;

/// The settings of a control plane without nodes.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder with the programs `etcd` and `kube-apiserver`.
    pub assets: PathBuf,
    /// A folder for keys, data and logs, which is made if it does not exist. Keys and data are removed when the control
    /// plane stops; `logs/` stays.
    pub directory: PathBuf,
    /// The users that may log in; each gets a token at the start. If this list is empty, no user can log in.
    pub users: Vec<User>,
    /// Additional arguments for kube-apiserver, for example `--goaway-chance=0.02`. The additional arguments come last
    /// on the command line, so they override earlier arguments.
    pub apiserver_arguments: Vec<String>,
    /// The time in which etcd and kube-apiserver must be ready.
    pub start_deadline: Duration,
    /// The state directory in which the control plane is registered while it runs, so that `longhaul cluster status`
    /// finds what a killed run leaves; see [`crate::state::default_directory`].
    pub state_directory: Option<PathBuf>,
}

/// A running control plane. Dropping the value kills both programs; [`stop`](Self::stop) lets them end gracefully.
#[derive(Debug)]
pub struct Local {
    // In this order: kube-apiserver ends before the etcd that it needs, the files are removed after both, the
    // registration last.
    apiserver: Process,
    etcd: Process,
    access: Access,
    registration: Option<Registration>,
}

impl Config {
    /// The settings of a control plane with the user `admin` in `system:masters`.
    pub fn new(assets: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            assets: assets.into(),
            directory: directory.into(),
            users: vec![User::admin()],
            apiserver_arguments: Vec::new(),
            start_deadline: START_DEADLINE,
            state_directory: None,
        }
    }

    fn program(&self, program: &'static str) -> Result<PathBuf, Error> {
        let path = self.assets.join(program);
        if path.is_file() {
            return Ok(path);
        }
        let assets = self.assets.display();
        let remedy = "point KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver";
        Err(MissingProgram::new(format!("failed to find `{program}` in {assets}: {remedy}")).into())
    }
}

impl Local {
    /// Starts etcd and kube-apiserver, and waits until the API server reports that it is ready.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let registration = Registration::of_run(config.state_directory.as_ref(), &config.directory)?;
        Self::start_with(config, registration, Lifetime::Owned).await
    }

    /// Starts a control plane, as [`start`](Self::start) does, that can [`stay`](Self::stay) when this process ends.
    /// Until `stay` is called, the control plane ends with this process, unless this process is killed.
    pub(crate) async fn start_to_stay(config: Config, registration: Registration) -> Result<Self, Error> {
        Self::start_with(config, Some(registration), Lifetime::Releasable).await
    }

    /// Leaves etcd, kube-apiserver and all files in place, and registers that the control plane is ready.
    pub(crate) fn stay(mut self, ready: Ready) -> Result<(), Error> {
        // Registered first: if that fails, everything is ended as before.
        if let Some(registration) = &mut self.registration {
            registration.ready(ready)?;
        }
        self.apiserver.release();
        self.etcd.release();
        self.access.files.keep();
        if let Some(registration) = self.registration {
            registration.keep();
        }
        Ok(())
    }

    async fn start_with(
        config: Config,
        mut registration: Option<Registration>,
        lifetime: Lifetime,
    ) -> Result<Self, Error> {
        let programs = (config.program("etcd")?, config.program("kube-apiserver")?);
        let deadline = Instant::now() + config.start_deadline;
        let mut attempt = 1;
        loop {
            match Self::attempt(&config, &programs, deadline, &mut registration, lifetime).await {
                Err(Error::Ended { tail, .. }) if attempt < ATTEMPTS && tail.contains("address already in use") => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(
        config: &Config,
        (etcd, apiserver): &(PathBuf, PathBuf),
        deadline: Instant,
        registration: &mut Option<Registration>,
        lifetime: Lifetime,
    ) -> Result<Self, Error> {
        let mut note = |process: &Process| match registration.as_mut() {
            Some(registration) => registration.started(process.program(), process.pid()),
            None => Ok(()),
        };
        let files = Files::write(&config.directory, &config.users, &server())?;
        let [client_port, port] = free_ports()?;
        let etcd_url = format!("http://127.0.0.1:{client_port}");
        let etcd_log = files.log("etcd.log");
        let etcd = Process::start("etcd", etcd, &etcd_arguments(&files, &etcd_url), &etcd_log, lifetime)?;
        note(&etcd)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, client_port));
        ready::etcd(&etcd, address, deadline, config.start_deadline).await?;

        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut arguments = apiserver_arguments(&files, &etcd_url, port);
        arguments.extend(config.apiserver_arguments.iter().map(OsString::from));
        let log = files.log("kube-apiserver.log");
        let apiserver = Process::start("kube-apiserver", apiserver, &arguments, &log, lifetime)?;
        note(&apiserver)?;
        let client = ready::Client::new(address, files.ca_pem(), files.probe_token())?;
        let version = ready::apiserver(&apiserver, &client, deadline, config.start_deadline).await?;
        if let Some(registration) = registration
            && lifetime == Lifetime::Owned
        {
            let url = format!("https://{address}");
            registration.ready(Ready { version: version.clone(), url, kubeconfig: None })?;
        }
        Ok(Self { apiserver, etcd, access: Access { files, address, version }, registration: registration.take() })
    }

    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Names and process ids of etcd and kube-apiserver, for measurements.
    pub fn processes(&self) -> [(&'static str, u32); 2] {
        [(self.apiserver.program(), self.apiserver.pid()), (self.etcd.program(), self.etcd.pid())]
    }

    /// A search for the processes of etcd and kube-apiserver, so that the caller can pause one. etcd and kube-apiserver
    /// are not started again after they end.
    pub fn machinery(&self) -> Machinery {
        Machinery::known(self.processes())
    }

    /// The program (etcd or kube-apiserver) that ended unexpectedly, and how it ended.
    pub fn ended(&self) -> Option<(&'static str, String)> {
        [&self.apiserver, &self.etcd].into_iter().find_map(|process| Some((process.program(), process.ended()?)))
    }

    /// Asks etcd and kube-apiserver to end, kills a program that has not ended after ten seconds, and removes keys and
    /// data.
    pub async fn stop(self) {
        let Self { mut apiserver, mut etcd, access, registration } = self;
        let ending = tokio::task::spawn_blocking(move || {
            apiserver.stop(STOP_DEADLINE);
            etcd.stop(STOP_DEADLINE);
            drop((access, registration));
        });
        let _ = ending.await;
    }
}

fn server() -> Server {
    let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1"];
    let names = names.map(str::to_owned).into();
    Server { authority: "longhaul local control plane", names, data: "etcd", calls_kubelets: false }
}

fn etcd_arguments(files: &Files, url: &str) -> Vec<OsString> {
    let mut data = OsString::from("--data-dir=");
    data.push(files.data());
    let mut arguments = vec![data];
    arguments.extend(
        [
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            // A single member, so no peer has to find it: etcd takes a free port.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // The data is worthless after a crash, and waiting for the disk would be measured as the subject's time.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
        .map(OsString::from),
    );
    arguments
}

fn apiserver_arguments(files: &Files, etcd_url: &str, port: u16) -> Vec<OsString> {
    let with_path = |flag: &str, path: PathBuf| {
        let mut argument = OsString::from(format!("--{flag}="));
        argument.push(path);
        argument
    };
    let mut arguments: Vec<OsString> = [
        format!("--etcd-servers={etcd_url}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--service-account-issuer=https://127.0.0.1:{port}"),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        // A loopback address may not stand in the endpoints of the `kubernetes` service.
        "--endpoint-reconciler-type=none".to_owned(),
        // No controller makes default service accounts here, and without them this plugin refuses every pod.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--audit-log-maxsize=100".to_owned(),
        "--audit-log-maxbackup=4".to_owned(),
    ]
    .map(OsString::from)
    .into();
    arguments.extend([
        with_path("tls-cert-file", files.key("apiserver.crt")),
        with_path("tls-private-key-file", files.key("apiserver.key")),
        with_path("client-ca-file", files.key("ca.crt")),
        with_path("service-account-key-file", files.key("service-account.pub")),
        with_path("service-account-signing-key-file", files.key("service-account.key")),
        with_path("token-auth-file", files.key("tokens.csv")),
        with_path("audit-policy-file", files.key("audit-policy.yaml")),
        with_path("audit-log-path", files.log("audit.log")),
    ]);
    arguments
}

/// Two free TCP ports. Both ports are bound at the same time, so they differ.
fn free_ports() -> Result<[u16; 2], Error> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port);
    let (one, two) = (bind()?, bind()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).map_err(Error::Port);
    Ok([port(&one)?, port(&two)?])
}
