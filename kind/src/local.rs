//! A real control plane without nodes: etcd and kube-apiserver as child processes on loopback ports.
//!
//! Owns both processes from start to end, their folder, and who may log in. The programs come from a folder in the
//! envtest convention (`KUBEBUILDER_ASSETS`); this module downloads nothing. There is no controller manager, so nothing is garbage
//! collected, no namespace empties itself, and pods stay pending: what a watch or a webhook sees is real, what a
//! cluster does is not there.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::access::Access;
use crate::machinery::Machinery;
use crate::programs::files::{Files, Server};
use crate::programs::process::{Lifetime, Process};
use crate::programs::ready;
use crate::state::{Ready, Registration};

pub use crate::programs::{Error, Unready, User};

/// On two busy cores etcd needs about a second and kube-apiserver about eight until it is ready.
const START_DEADLINE: Duration = Duration::from_mins(1);
/// kube-apiserver lets open watches end; longer than that helps nobody.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// A free port can be taken by somebody else before the program binds it. That is rare, and rarer still twice.
const ATTEMPTS: u32 = 3;

/// How a control plane is to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder with the programs `etcd` and `kube-apiserver`.
    pub assets: PathBuf,
    /// A folder for keys, data and logs; made if it is not there. Keys and data go when the control plane stops, `logs/` stays.
    pub directory: PathBuf,
    /// Who may log in, each with a token made on the spot. Without an entry nobody can.
    pub users: Vec<User>,
    /// More arguments for kube-apiserver, for example `--goaway-chance=0.02`. They come last, so they win.
    pub apiserver_arguments: Vec<String>,
    /// How long both may take to be ready.
    pub start_deadline: Duration,
    /// A state directory in which the control plane is noted while it runs, so that `longhaul cluster status` finds what a
    /// killed run leaves: see [`crate::state::default_directory`].
    pub state_directory: Option<PathBuf>,
}

/// A running control plane. Dropping it kills both processes; [`stop`](Self::stop) lets them end.
#[derive(Debug)]
pub struct Local {
    // In this order: kube-apiserver goes before the etcd that it needs, the files after both, the note of it last.
    apiserver: Process,
    etcd: Process,
    access: Access,
    registration: Option<Registration>,
}

impl Config {
    /// A control plane with the user `admin` in `system:masters`.
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
        if path.is_file() { Ok(path) } else { Err(Error::NoProgram { program, assets: self.assets.clone() }) }
    }
}

impl Local {
    /// Starts both programs and waits until the API server says that it is ready.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let registration = Registration::of_run(config.state_directory.as_ref(), &config.directory)?;
        Self::start_with(config, registration, Lifetime::Owned).await
    }

    /// As [`start`](Self::start), for a control plane that [`stays`](Self::stay) when this process ends. Until then it is
    /// as one of a run, except that a killed process leaves it behind.
    pub(crate) async fn start_to_stay(config: Config, registration: Registration) -> Result<Self, Error> {
        Self::start_with(config, Some(registration), Lifetime::Releasable).await
    }

    /// Leaves both processes and all files, and notes that it is ready.
    pub(crate) fn stay(mut self, ready: Ready) -> Result<(), Error> {
        // Noted first: when that fails, everything is ended as before.
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

    /// The way into it.
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Both programs with their process ids, for whoever measures them.
    pub fn processes(&self) -> [(&'static str, u32); 2] {
        [(self.apiserver.program(), self.apiserver.pid()), (self.etcd.program(), self.etcd.pid())]
    }

    /// Both, for whoever lets one stand still. Nobody starts them again.
    pub fn machinery(&self) -> Machinery {
        Machinery::known(self.processes())
    }

    /// How a program ended, if one did although nobody stopped it.
    pub fn ended(&self) -> Option<(&'static str, String)> {
        [&self.apiserver, &self.etcd].into_iter().find_map(|process| Some((process.program(), process.ended()?)))
    }

    /// Asks both to end, kills what has not ended after ten seconds, and removes keys and data.
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
            // Alone, so nobody has to find it: etcd takes a free port.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // The data is worth nothing after a crash, and waiting for the disk would be measured as the subject's time.
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
        // Nobody makes default service accounts here, and without them this plugin refuses every pod.
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

/// Ports that were free a moment ago. Both are held at once, so that they differ.
fn free_ports() -> Result<[u16; 2], Error> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port);
    let (one, two) = (bind()?, bind()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).map_err(Error::Port);
    Ok([port(&one)?, port(&two)?])
}
