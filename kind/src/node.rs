//! One complete real node on this machine, in its own namespaces: etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, kube-proxy, kubelet and containerd. The node lives in its own PID, network, mount, UTS, IPC and
//! cgroup namespaces, and in one folder. When its first process ends, the kernel ends all other processes. No mount,
//! iptables rule or setting is ever made outside the namespaces.
//!
//! Outside its namespaces the node has only a group in each cgroup hierarchy, and one network link. `N` is an unused
//! number: the machine has the address `10.N.0.1`, where webhooks and registries listen, and the node has `10.N.0.2`.
//! Services are in `10.N.96.0/20`, Pods in `10.N.128.0/17`, and the machine reaches all these addresses. The node has
//! no cluster DNS. The node cannot pull images; [`Node::load`] loads them.

mod cgroup;
mod files;
mod firewall;
pub mod image;
mod init;
mod link;
mod needs;
mod pods;
mod pressure;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::MissingProgram;
use crate::access::Access;
use crate::machinery::Machinery;
use crate::programs::files::Files;
use crate::programs::process::{self, Lifetime, Process};
use crate::programs::{self, Unready, User, ready};
use crate::state::{Ready, Registration, Traces};
use crate::step::{Failed, Step, Tool};
use cgroup::Groups;
use init::{Ground, Plan};
use link::Link;
use needs::{Found, Tools};

pub use firewall::Firewall;
pub use init::first_process;
pub use pods::Pods;
pub use pressure::{Limits, Pressed, press};

/// The key of a `NoSchedule` taint: only Pods that tolerate the taint get onto the node.
pub const TAINT: &str = "longhaul.dev/subjects-only";

/// The node's name in Kubernetes.
const NAME: &str = "node";
/// The port of the node's API server.
const PORT: u16 = 6443;
/// The folder of the node's data, below the folder of the control plane.
const DATA: &str = "node";
/// The default time in which a node must be Ready. On two busy cores a node needs fifteen seconds.
const START_DEADLINE: Duration = Duration::from_mins(3);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// The time limit for loading an archive of images, enough for some hundred megabytes on a slow disk.
const LOAD_LIMIT: Duration = Duration::from_mins(5);
/// Number of attempts to load an image. containerd sometimes refuses an image while another image is being loaded.
const LOAD_ATTEMPTS: u32 = 3;

/// The settings of a node.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder with etcd and the programs of Kubernetes.
    pub assets: PathBuf,
    /// A folder for keys, data and logs. This folder must not be below `/var` or `/run`, which the node replaces by its
    /// own folders. Keys and data are removed when the node stops; `logs/` stays.
    pub directory: PathBuf,
    /// The arguments that run [`first_process`]. The path of the node's folder is appended to these arguments.
    pub init: Vec<OsString>,
    /// The users that may log in; each gets a token at the start.
    pub users: Vec<User>,
    /// Additional arguments for kube-apiserver. The additional arguments come last on the command line, so they
    /// override earlier arguments.
    pub apiserver_arguments: Vec<String>,
    /// Whether the node accepts only Pods that tolerate [`TAINT`].
    pub tainted: bool,
    /// The time in which the node must be Ready.
    pub start_deadline: Duration,
    /// The state directory in which the node is registered while it runs.
    pub state_directory: Option<PathBuf>,
}

/// A running node. Dropping the value ends the node.
#[derive(Debug)]
pub struct Node {
    // In this order: the processes end before their groups and files are removed, the registration is removed last.
    process: Process,
    groups: Groups,
    access: Access,
    registration: Option<Registration>,
    found: Found,
    link: Link,
    /// The process id of the node's first process on the machine.
    pid: u32,
}

/// Why a node did not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine lacks a program or setting. Longhaul started nothing.
    #[error("nothing was started")]
    Missing(#[from] MissingProgram),
    /// A failure that every kind of control plane can have.
    #[error(transparent)]
    Programs(#[from] programs::Error),
    /// A cgroup could not be made or removed.
    #[error("failed to make the node's cgroups: is /sys/fs/cgroup writable here?")]
    Groups(#[source] std::io::Error),
    #[error("failed to write {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// All blocks of network addresses that longhaul tries are in use.
    #[error("failed to find free addresses for a node: every block from 10.200.0.0/16 to 10.250.0.0/16 is in use")]
    NoAddresses,
    /// A program of the machine failed.
    #[error(transparent)]
    Step(#[from] Failed),
    /// A condition did not become true in time, or the node ended while longhaul waited.
    #[error("{step}: {reason} after {waited_s} s; the end of {}:\n{tail}", log.display())]
    Late {
        /// The condition that should have become true in time.
        step: &'static str,
        /// The last observed state of the condition.
        reason: String,
        /// Seconds that longhaul waited for the condition.
        waited_s: u64,
        /// The log file with details of the failure.
        log: PathBuf,
        tail: String,
    },
}

impl Config {
    /// The settings of a node with the user `admin` in `system:masters`.
    pub fn new(assets: impl Into<PathBuf>, directory: impl Into<PathBuf>, init: Vec<OsString>) -> Self {
        Self {
            assets: assets.into(),
            directory: directory.into(),
            init,
            users: vec![User::admin()],
            apiserver_arguments: Vec::new(),
            tainted: false,
            start_deadline: START_DEADLINE,
            state_directory: None,
        }
    }
}

/// The processes of a node that is starting, and the deadline of the start.
struct Waiting<'a> {
    process: &'a Process,
    files: &'a Files,
    began: Instant,
    deadline: Instant,
}

impl Waiting<'_> {
    /// Polls until `look` returns a value, the node ends, or the time limit is reached. `log` is a file that an error
    /// names for details.
    async fn until<T>(
        &self,
        step: &'static str,
        log: &str,
        ask: impl AsyncFn() -> Result<T, String>,
    ) -> Result<T, Error> {
        let failed = |reason: String, log: PathBuf| {
            let tail = process::tail(&log);
            Error::Late { step, reason, waited_s: self.began.elapsed().as_secs(), log, tail }
        };
        loop {
            if let Some(status) = self.process.ended() {
                return Err(failed(format!("the node ended with {status}"), self.process.log().to_owned()));
            }
            let reason = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(reason) => reason,
            };
            if Instant::now() >= self.deadline {
                return Err(failed(reason, self.files.log(log)));
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

impl Node {
    /// Reports the requirements of a node that this machine does not meet.
    pub fn check(assets: &Path, directory: &Path) -> Result<(), MissingProgram> {
        needs::look(assets, directory).map(drop)
    }

    /// Starts a node and waits until it is Ready and accepts Pods.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let found = needs::look(&config.assets, &config.directory)?;
        let registration =
            Registration::of_run(config.state_directory.as_ref(), &config.directory).map_err(programs::Error::from)?;
        Self::start_with(config, found, registration, Lifetime::Owned).await
    }

    /// Starts a node, as [`start`](Self::start) does, that can [`stay`](Self::stay) when this process ends.
    pub(crate) async fn start_to_stay(config: Config, registration: Registration) -> Result<Self, Error> {
        let found = needs::look(&config.assets, &config.directory)?;
        Self::start_with(config, found, Some(registration), Lifetime::Releasable).await
    }

    /// Leaves the node running, and registers that it is ready.
    pub(crate) fn stay(mut self, ready: Ready) -> Result<(), Error> {
        if let Some(registration) = &mut self.registration {
            registration.ready(ready).map_err(programs::Error::from)?;
        }
        self.process.release();
        self.groups.keep();
        self.access.files.keep();
        if let Some(registration) = self.registration {
            registration.keep();
        }
        Ok(())
    }

    async fn start_with(
        config: Config,
        found: Found,
        mut registration: Option<Registration>,
        lifetime: Lifetime,
    ) -> Result<Self, Error> {
        let began = Instant::now();
        let mut files = Files::folders(&config.directory, DATA)?;
        let id = registration.as_ref().map(|registration| registration.entry().id.clone());
        let group = cgroup::name(&id.unwrap_or_else(|| format!("{:032x}", rand::random::<u128>())));
        // Registered before it exists, so that it is found even if this process is killed in between.
        if let Some(registration) = &mut registration {
            registration.leaves(Traces { group: group.clone() }).map_err(programs::Error::from)?;
        }
        let own = files.data();
        let write = |name: &str, bytes: &[u8]| {
            let path = own.join(name);
            init::write(&path, bytes).map_err(|source| Error::File { path, source })
        };
        init::make_var(&own).map_err(|source| Error::File { path: own.clone(), source })?;
        let ground = Ground { group: group.clone(), hierarchies: found.hierarchies.clone() };
        write(init::GROUND, &json(&ground))?;
        let (groups, joins) = cgroup::make(&found.hierarchies, &group).map_err(Error::Groups)?;
        let mut arguments: Vec<OsString> =
            ["--fork", "--kill-child", "--pid", "--net", "--mount", "--uts", "--ipc", "--cgroup"]
                .map(OsString::from)
                .into();
        arguments.extend(config.init.iter().cloned());
        arguments.push(own.clone().into());
        let log = files.log("node.log");
        let process = Process::start_within(NAME, &found.tools.unshare, &arguments, &log, lifetime, joins)?;
        if let Some(registration) = &mut registration {
            registration.started(NAME, process.pid()).map_err(programs::Error::from)?;
        }
        let deadline = began + config.start_deadline;
        let waiting = Waiting { process: &process, files: &files, began, deadline };
        let pid = waiting.until("the node's first process", "node.log", async || first_pid(&own)).await?;
        cgroup::part(&found.hierarchies, &group, process.pid()).map_err(Error::Groups)?;
        let link = Link::claim(&found.tools.ip, pid).await?;
        let users: Vec<User> = config.users.iter().cloned().chain(files::users()).collect();
        files.fill(&users, &files::server(link))?;
        let components = files::write(&files, &found, link, &config)?;
        let (network, path) = (link.inside(), found.path.clone());
        let plan = Plan { ip: found.tools.ip.clone(), network, path, logs: files.logs(), components };
        write(init::PLAN, &json(&plan))?;
        let waiting = Waiting { process: &process, files: &files, began, deadline };
        let version = bring_up(&waiting, &found, link, pid, &own).await?;
        let access = Access { files, address: SocketAddr::from((link.node(), PORT)), version };
        let mut node = Self { process, groups, access, registration, found, link, pid };
        if lifetime == Lifetime::Owned {
            let ready = Ready { version: node.access.version.clone(), url: node.access.url(), kubeconfig: None };
            if let Some(registration) = &mut node.registration {
                registration.ready(ready).map_err(programs::Error::from)?;
            }
        }
        Ok(node)
    }

    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// The address of this machine for the node and its Pods.
    pub fn machine(&self) -> Ipv4Addr {
        self.link.machine()
    }

    /// The process id, on this machine, of the node's first process.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// A search for the processes of the node's Pods.
    pub fn pods(&self) -> Pods {
        Pods::of(&self.found.hierarchies, self.groups.name())
    }

    /// A search for the processes of the node's programs, so that a caller can end one.
    pub fn machinery(&self) -> Machinery {
        Machinery::in_group(self.groups.name())
    }

    /// The firewall rules that drop packets of the node's Pods.
    pub fn firewall(&self) -> Firewall {
        let Tools { nsenter, iptables, .. } = &self.found.tools;
        Firewall { nsenter: nsenter.clone(), iptables: iptables.clone(), pid: self.pid }
    }

    /// How the node ended by itself; `None` while it runs.
    pub fn ended(&self) -> Option<String> {
        self.process.ended()
    }

    /// Loads the images of an archive, which `docker save` wrote or which is a tar of an OCI layout. Pods name an image
    /// as the archive does, with `imagePullPolicy: Never` or `IfNotPresent`.
    pub async fn load(&self, archive: Vec<u8>) -> Result<(), Error> {
        import(&self.found.tools, self.pid, archive).await
    }

    /// Ends the node, and removes keys and data.
    pub async fn stop(self) {
        // Nothing in it needs a gentle end: when its first process is killed, the kernel kills all others.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

/// Waits until the node accepts Pods; returns the version of its API server.
async fn bring_up(waiting: &Waiting<'_>, found: &Found, link: Link, pid: u32, own: &Path) -> Result<String, Error> {
    let files = waiting.files;
    let address = SocketAddr::from((link.node(), PORT));
    let client = ready::Client::new(address, files.ca_pem(), files.token(files::BRINGER).unwrap_or_default())?;
    let said = |unready: Unready| unready.to_string();
    // A socket in another mount namespace is reached through the root of a process there.
    let socket = PathBuf::from(format!("/proc/{pid}/root{}", files::SOCKET));
    let containerd = async || match tokio::net::UnixStream::connect(&socket).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    waiting.until("containerd", "containerd.log", containerd).await?;
    if let Some(image) = image::pause() {
        let archive = image.archive().map_err(|source| Error::File { path: PathBuf::from(image::PAUSE), source })?;
        import(&found.tools, pid, archive).await?;
    }
    let version = async || client.version().await.map_err(said);
    let version = waiting.until("the API server", "kube-apiserver.log", version).await?;
    let path = own.join(init::READY);
    init::write(&path, b"").map_err(|source| Error::File { path, source })?;
    let node = async || {
        let node = client.object("/api/v1/nodes/node").await.map_err(said)?;
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
        match ready {
            Some(ready) if ready["status"] == "True" => Ok(()),
            Some(ready) => Err(ready["message"].as_str().unwrap_or("the node is not Ready").to_owned()),
            None => Err("the node is not there".to_owned()),
        }
    };
    waiting.until("the node to be Ready", "kubelet.log", node).await?;
    // A Pod is refused until its namespace has its account.
    let account = async || client.object("/api/v1/namespaces/default/serviceaccounts/default").await.map_err(said);
    waiting.until("the default account", "kube-controller-manager.log", account).await?;
    Ok(version)
}

/// Loads the images of an archive into the node whose folder is `directory`.
pub(crate) async fn load(directory: &Path, archive: Vec<u8>) -> Result<(), Error> {
    let own = directory.join(DATA);
    let failed = |why: String| Error::File { path: own.join(init::PID), source: std::io::Error::other(why) };
    let pid = first_pid(&own).map_err(failed)?;
    let found = needs::tools()?;
    import(&found, pid, archive).await
}

async fn import(found: &Tools, pid: u32, archive: Vec<u8>) -> Result<(), Error> {
    let entered = Tool::new(found.nsenter.clone()).with(["-t", &pid.to_string(), "-m", "-n", "-p", "--"]);
    let tool = entered.with([&found.ctr]);
    let step = Step::new("load an image", "longhaul cluster down", &tool, ["-n", "k8s.io", "images", "import", "-"]);
    step.reading(archive).within(LOAD_LIMIT).tried(LOAD_ATTEMPTS).call().await?;
    Ok(())
}

/// Removes all remains of an ended node from the machine, except the node's folder. The removal fails while a process
/// of the node runs.
pub fn remove_traces(traces: &Traces) -> std::io::Result<()> {
    cgroup::remove(&traces.group)
}

fn first_pid(own: &Path) -> Result<u32, String> {
    let text = std::fs::read_to_string(own.join(init::PID)).map_err(|error| error.to_string())?;
    text.trim().parse().map_err(|_| "it is no number".to_owned())
}

/// The JSON of a struct that has only string keys, so the conversion cannot fail.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}
