//! `cluster up`, `status` and `down` for a control plane, with or without a node, that keeps running after the command.
//!
//! [`crate::state`] owns the files on disk, [`crate::local`] and [`crate::node`] own the processes. The command `down`
//! ends and removes only processes and folders that longhaul provably made.

mod down;
mod status;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::containers::{self, Containers};
use crate::local::{self, Local};
use crate::node::{self, Node};
use crate::state::{self, Outside, Purpose, Ready, Registration};

pub use down::{Down, down, take_down_runs_of};
pub use status::{Cluster, Health, Status, status};

/// The default name of a control plane without a node.
pub const DEFAULT_NAME: &str = "local";
/// The default name of a control plane with a node.
pub const NODE_NAME: &str = "node";
/// The default name of a kind cluster, which `kind get clusters` lists too.
pub const KIND_NAME: &str = "kind";

/// The control plane to start.
#[derive(Debug, Clone)]
pub struct Up {
    /// The folder with the programs: `etcd` and `kube-apiserver`; for a node also the other programs of Kubernetes.
    pub assets: PathBuf,
    /// The arguments that run [`node::first_process`]; `None` for a control plane without a node.
    pub node: Option<Vec<OsString>>,
    /// The settings of a kind cluster; `None` if the control plane is no kind cluster.
    pub containers: Option<containers::Config>,
    /// The folder for the logs of a kind cluster that does not start; `None` means `logs` in the folder of its other
    /// files.
    pub artifacts: Option<PathBuf>,
    /// The state directory; see [`state::default_directory`].
    pub state_directory: PathBuf,
    /// The name of the control plane. Several control planes with different names can run at the same time.
    pub name: String,
    /// Additional arguments for kube-apiserver.
    pub apiserver_arguments: Vec<String>,
    /// The time limit until the control plane is ready; `None` means the default time limit.
    pub start_deadline: Option<Duration>,
}

/// A control plane that was started or found running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsUp {
    pub name: String,
    /// The version that the API server reports, for example `v1.34.1`.
    pub version: String,
    /// The URL of the API server: `https://127.0.0.1:port`
    pub url: String,
    /// The path of the administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The folder with the programs' logs.
    pub logs: PathBuf,
    /// The address at which the node and its Pods reach this machine; `None` without a node.
    pub machine: Option<Ipv4Addr>,
    /// Whether the control plane is a kind cluster, whose nodes are containers.
    pub is_kind: bool,
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The control plane is already running.
    #[error("`{name}` is up already: use it with KUBECONFIG={}, or run `longhaul cluster down` first", kubeconfig.display())]
    AlreadyUp { name: String, kubeconfig: PathBuf },
    /// Another command is starting the control plane.
    #[error("`{name}` is being brought up by process {pid}: wait for it, or end that process")]
    Starting {
        name: String,
        /// The process id of the other command.
        pid: u32,
    },
    /// Processes or files of an earlier control plane with the same name remain.
    #[error("parts of an earlier `{name}` remain ({reason}): run `longhaul cluster down` first")]
    Leftover { name: String, reason: String },
    /// No control plane has this name.
    #[error("there is no control plane `{name}`: `longhaul cluster status` lists them")]
    Unknown { name: String },
    /// The control plane has no running node that could load images.
    #[error(
        "`{name}` has no running node ({health}): start one with `longhaul cluster up --kind node`, or `--kind kind`"
    )]
    NoNode { name: String, health: String },
    #[error(transparent)]
    State(#[from] state::Error),
    /// The control plane did not start. Of the control plane only its logs remain.
    #[error(transparent)]
    Local(#[from] local::Error),
    /// The node did not start. Of the node only its logs remain.
    #[error(transparent)]
    Node(#[from] node::Error),
    /// The kind cluster could not be made or used.
    #[error(transparent)]
    Containers(#[from] containers::Error),
    /// kind lists a cluster with this name that longhaul did not make.
    #[error(
        "kind already has a cluster `{name}` that longhaul did not create: soak on it with `--control-plane kubeconfig \
         --i-know-this-cluster kind-{name}`, or choose another --name"
    )]
    Theirs { name: String },
    /// A file could not be written or removed.
    #[error("failed to use {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Up {
    /// The settings of a control plane with the name `local`.
    pub fn new(assets: impl Into<PathBuf>, state_directory: impl Into<PathBuf>) -> Self {
        Self {
            assets: assets.into(),
            node: None,
            containers: None,
            artifacts: None,
            state_directory: state_directory.into(),
            name: DEFAULT_NAME.to_owned(),
            apiserver_arguments: Vec::new(),
            start_deadline: None,
        }
    }
}

/// Starts a control plane that keeps running after this process. If the start fails or is cancelled, all its processes
/// are killed. If this process is killed during the start, [`status()`] finds the remains.
pub async fn up(up: Up) -> Result<IsUp, Error> {
    if up.node.is_some() {
        // Before any file is written.
        Node::check(&up.assets, &up.state_directory.join(&up.name)).map_err(node::Error::from)?;
    }
    let wanted = up.containers.clone();
    let containers = match &wanted {
        Some(config) => Some(Containers::check(&up.name, config).await?),
        None => None,
    };
    if let (Some(containers), Some(wanted)) = (&containers, &wanted)
        && let Some(reused) = reused(&up, containers, wanted).await?
    {
        return Ok(reused);
    }
    let registration = match Registration::begin(&up.state_directory, &up.name, Purpose::Lasting, None) {
        Ok(registration) => registration,
        Err(state::Error::Exists { name }) => return Err(refusal(&up.state_directory, name)?),
        Err(error) => return Err(error.into()),
    };
    if let (Some(containers), Some(wanted)) = (containers, wanted) {
        return containers_up(up, registration, containers, wanted).await;
    }
    match &up.node {
        None => local_up(up, registration).await,
        Some(init) => {
            let init = init.clone();
            node_up(up, registration, init).await
        }
    }
}

async fn local_up(up: Up, registration: Registration) -> Result<IsUp, Error> {
    let directory = registration.entry().directory.clone();
    let mut config = local::Config::new(up.assets, &directory);
    config.apiserver_arguments = up.apiserver_arguments;
    config.start_deadline = up.start_deadline.unwrap_or(config.start_deadline);
    let local = Local::start_to_stay(config, registration).await?;
    let kubeconfig = directory.join("kubeconfig");
    // `Config::new` has this user.
    write(&kubeconfig, &local.access().kubeconfig("admin").unwrap_or_default())?;
    let (version, url, logs) = (local.access().version().to_owned(), local.access().url(), local.access().logs());
    local.stay(Ready { version: version.clone(), url: url.clone(), kubeconfig: Some(kubeconfig.clone()) })?;
    Ok(IsUp { name: up.name, version, url, kubeconfig, logs, machine: None, is_kind: false })
}

async fn node_up(up: Up, registration: Registration, init: Vec<OsString>) -> Result<IsUp, Error> {
    let directory = registration.entry().directory.clone();
    let mut config = node::Config::new(up.assets, &directory, init);
    config.apiserver_arguments = up.apiserver_arguments;
    config.start_deadline = up.start_deadline.unwrap_or(config.start_deadline);
    let node = Node::start_to_stay(config, registration).await?;
    let kubeconfig = directory.join("kubeconfig");
    write(&kubeconfig, &node.access().kubeconfig("admin").unwrap_or_default())?;
    let access = node.access();
    let (version, url, logs, machine) = (access.version().to_owned(), access.url(), access.logs(), node.machine());
    node.stay(Ready { version: version.clone(), url: url.clone(), kubeconfig: Some(kubeconfig.clone()) })?;
    Ok(IsUp { name: up.name, version, url, kubeconfig, logs, machine: Some(machine), is_kind: false })
}

/// The name of the kind cluster that [`up`] made, if it is running.
pub fn lasting_kind(state_directory: &Path) -> Result<Option<String>, Error> {
    let clusters = status(state_directory)?.clusters.into_iter();
    let is_kind = |cluster: &Cluster| {
        let outside = cluster.found.entry.as_ref().ok().and_then(|entry| entry.outside.as_ref());
        cluster.health == Health::Running && outside.is_some_and(|outside| outside.containers.is_some())
    };
    let mut names: Vec<String> = clusters.filter(is_kind).map(|cluster| cluster.name).collect();
    names.sort_by_key(|name| name != KIND_NAME);
    Ok(names.into_iter().next())
}

/// A kind cluster that is not ready yet. Dropping the value deletes the cluster.
struct HalfWay(Containers, Option<Registration>);

impl Drop for HalfWay {
    fn drop(&mut self) {
        if let Some(registration) = self.1.take()
            && self.0.delete_now().is_err()
        {
            // The rest is registered, and `cluster status` finds it.
            registration.keep();
        }
    }
}

async fn containers_up(
    up: Up,
    mut registration: Registration,
    containers: Containers,
    wanted: containers::Config,
) -> Result<IsUp, Error> {
    if containers.exists().await? {
        return Err(Error::Theirs { name: up.name });
    }
    let directory = registration.entry().directory.clone();
    registration.lives_outside(Outside { containers: Some(containers.clone()), guest: None, within: None })?;
    let mut half_way = HalfWay(containers.clone(), Some(registration));
    let kubeconfig = directory.join("kubeconfig");
    if let Err(error) = containers.create(&wanted, &kubeconfig, &directory).await {
        let folder = up.artifacts.unwrap_or_else(|| directory.join("logs"));
        // The cluster may have no node yet, and then there are no logs to keep.
        let _ = containers.keep_logs(&folder).await;
        return Err(error.into());
    }
    let mut nodes = Vec::new();
    for node in containers.nodes().await? {
        nodes.extend(containers.first_process(&node).await);
    }
    let (version, url, machine) = containers_facts(&containers).await?;
    if let Some(registration) = &mut half_way.1 {
        nodes.into_iter().try_for_each(|pid| registration.started("node", pid))?;
        registration.ready(Ready {
            version: version.clone(),
            url: url.clone(),
            kubeconfig: Some(kubeconfig.clone()),
        })?;
    }
    half_way.1.take().map(Registration::keep);
    Ok(IsUp { name: up.name, version, url, kubeconfig, logs: directory, machine, is_kind: true })
}

/// Version and URL of a kind cluster's API server, and the address at which its Pods reach this machine, if they can.
async fn containers_facts(containers: &Containers) -> Result<(String, String, Option<Ipv4Addr>), Error> {
    let version = containers.version().await?;
    Ok((version, containers.url().await?, containers.machine().await.ok()))
}

/// The running kind cluster with the requested name, if longhaul made it, its API server answers, and it has the
/// `wanted` settings.
async fn reused(up: &Up, containers: &Containers, wanted: &containers::Config) -> Result<Option<IsUp>, Error> {
    let found = status(&up.state_directory)?.clusters.into_iter().find(|cluster| cluster.name == up.name);
    let Some(Cluster { health: Health::Running, kubeconfig: Some(kubeconfig), directory, found, .. }) = found else {
        return Ok(None);
    };
    if found.entry.as_ref().is_ok_and(|entry| entry.outside.is_none()) || !containers.exists().await? {
        return Ok(None);
    }
    let (version, url, machine) = containers_facts(containers).await?;
    wanted.fits(&up.name, &version)?;
    Ok(Some(IsUp { name: up.name.clone(), version, url, kubeconfig, logs: directory, machine, is_kind: true }))
}

/// Loads an image into the named kind cluster, applies manifests, and waits until a Deployment is rolled out.
pub async fn deploy(
    state_directory: &Path,
    name: &str,
    archive: &Path,
    manifests: String,
    [namespace, deployment]: [&str; 2],
) -> Result<(), Error> {
    let clusters = status(state_directory)?.clusters;
    let found = clusters.into_iter().find(|cluster| cluster.name == name);
    let found = found.ok_or_else(|| Error::Unknown { name: name.to_owned() })?;
    let outside = found.found.entry.as_ref().ok().and_then(|entry| entry.outside.as_ref());
    let Some(containers) = outside.and_then(|outside| outside.containers.as_ref()) else {
        return Err(Error::NoNode { name: name.to_owned(), health: found.health.to_string() });
    };
    containers.load(archive).await?;
    Ok(containers.deploy(manifests, namespace, deployment).await?)
}

/// Loads the images of archives into the named node.
pub async fn load(state_directory: &Path, name: &str, archives: &[PathBuf]) -> Result<(), Error> {
    let clusters = status(state_directory)?.clusters;
    let Some(cluster) = clusters.into_iter().find(|cluster| cluster.name == name) else {
        return Err(Error::Unknown { name: name.to_owned() });
    };
    let outside = cluster.found.entry.as_ref().ok().and_then(|entry| entry.outside.as_ref());
    if let (Health::Running, Some(containers)) = (&cluster.health, outside.and_then(|it| it.containers.as_ref())) {
        for path in archives {
            containers.load(path).await?;
        }
        return Ok(());
    }
    let is_node = cluster.found.entry.as_ref().is_ok_and(|entry| entry.traces.is_some());
    if cluster.health != Health::Running || !is_node {
        return Err(Error::NoNode { name: name.to_owned(), health: cluster.health.to_string() });
    }
    for path in archives {
        let archive = fs::read(path).map_err(|source| Error::File { path: path.clone(), source })?;
        node::load(&cluster.directory, archive).await?;
    }
    Ok(())
}

/// The error for starting a control plane under a name that is in use.
fn refusal(root: &Path, name: String) -> Result<Error, Error> {
    let found = status(root)?.clusters.into_iter().find(|cluster| cluster.name == name);
    Ok(match found {
        Some(Cluster { health: Health::Running, kubeconfig: Some(kubeconfig), .. }) => {
            Error::AlreadyUp { name, kubeconfig }
        }
        Some(Cluster { health: Health::Starting { pid } | Health::InUse { pid }, .. }) => Error::Starting { name, pid },
        Some(Cluster { health, .. }) => Error::Leftover { name, reason: health.to_string() },
        None => Error::Leftover { name, reason: "it was taken down at this moment".to_owned() },
    })
}

impl fmt::Display for IsUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, url, kubeconfig, logs, machine, is_kind } = self;
        match machine {
            None if *is_kind => writeln!(f, "Kubernetes {version} is up at {url} (`{name}`), in containers of kind")?,
            Some(machine) if *is_kind => {
                writeln!(f, "Kubernetes {version} is up at {url} (`{name}`), in containers of kind")?;
                writeln!(f, "  its Pods reach this machine at {machine}")?;
            }
            None => writeln!(f, "kube-apiserver {version} is up at {url} (`{name}`, without nodes or controllers)")?,
            Some(machine) => {
                writeln!(f, "Kubernetes {version} with one node is up at {url} (`{name}`)")?;
                writeln!(f, "  its Pods reach this machine at {machine}")?;
            }
        }
        writeln!(
            f,
            "  use it:  KUBECONFIG={} kubectl get {}",
            kubeconfig.display(),
            seen(*is_kind || machine.is_some())
        )?;
        if *is_kind || machine.is_some() {
            writeln!(f, "  images:  longhaul cluster load ARCHIVE{}", named(name, NODE_NAME))?;
        }
        writeln!(f, "  logs:    {}", logs.display())?;
        // Without a name, both default names are taken down.
        let which =
            if [NODE_NAME, KIND_NAME].contains(&name.as_str()) { String::new() } else { named(name, DEFAULT_NAME) };
        write!(f, "  stop it: longhaul cluster down{which}")
    }
}

/// The arguments of the first `kubectl get` that the command suggests to the user.
fn seen(has_node: bool) -> &'static str {
    if has_node { "pods --all-namespaces" } else { "namespaces" }
}

/// The flag `--name`, or an empty text if the control plane has the usual name.
fn named(name: &str, usual: &str) -> String {
    if name == usual { String::new() } else { format!(" --name {name}") }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
