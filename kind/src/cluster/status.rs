//! Reads the existing control planes, and the remains of killed commands and runs.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::state::{self, Entry, Found, Process, Purpose};

use super::Error;

/// All control planes of a state directory.
#[derive(Debug, Clone)]
pub struct Status {
    /// The control planes, sorted by name.
    pub clusters: Vec<Cluster>,
}

#[derive(Debug, Clone)]
pub struct Cluster {
    pub name: String,
    pub health: Health,
    /// The version that the API server reported; `None` until it was ready.
    pub version: Option<String>,
    /// The URL `https://127.0.0.1:port`; `None` until the API server was ready.
    pub url: Option<String>,
    /// The path of the administrator's kubeconfig; `None` until the API server was ready.
    pub kubeconfig: Option<PathBuf>,
    /// The start time of the control plane as RFC 3339; `None` if its entry in the state directory cannot be read.
    pub started_at: Option<String>,
    /// The folder of keys, data and logs. If the control plane's entry cannot be read, this is the entry's own folder
    /// in the state directory.
    pub directory: PathBuf,
    /// The processes of the control plane that still run.
    pub alive: Vec<Process>,
    pub(super) found: Found,
}

/// The state of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// All processes of the control plane run.
    Running,
    /// The process with this id is starting the control plane.
    Starting { pid: u32 },
    /// A run uses the control plane and will end it.
    InUse {
        /// The process id of the run.
        pid: u32,
    },
    /// The control plane was ready, and one of its processes has ended since then.
    Ended {
        /// The programs that have ended.
        programs: Vec<String>,
    },
    /// A killed command or run left the control plane.
    Leftover {
        /// The process id of the killed command or run.
        pid: u32,
        /// Number of the control plane's processes that still run.
        alive: usize,
    },
    /// The control plane's entry cannot be read, so longhaul cannot prove that it made the processes and files.
    Unreadable { problem: String },
}

/// Reads the state of all control planes in a state directory.
pub fn status(state_directory: &Path) -> Result<Status, Error> {
    let clusters = state::entries(state_directory)?.into_iter().map(look).collect();
    Ok(Status { clusters })
}

fn look(found: Found) -> Cluster {
    let entry = match &found.entry {
        Ok(entry) => entry,
        Err(problem) => {
            return Cluster {
                name: found.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                health: Health::Unreadable { problem: problem.to_string() },
                version: None,
                url: None,
                kubeconfig: None,
                started_at: None,
                directory: found.folder.clone(),
                alive: Vec::new(),
                found,
            };
        }
    };
    let alive = alive(entry);
    let ready = entry.ready.clone();
    Cluster {
        name: entry.name.clone(),
        health: health(entry, &alive),
        version: ready.as_ref().map(|ready| ready.version.clone()),
        url: ready.as_ref().map(|ready| ready.url.clone()),
        kubeconfig: ready.and_then(|ready| ready.kubeconfig),
        started_at: Some(entry.started_at.clone()),
        directory: entry.directory.clone(),
        alive,
        found,
    }
}

/// The processes of the control plane that still run. A process that is not registered yet is recognised by arguments
/// that name the control plane's private files.
fn alive(entry: &Entry) -> Vec<Process> {
    let mut alive: Vec<Process> = entry.processes.iter().filter(|each| each.identity.is_alive()).cloned().collect();
    if state::is_ours(entry) {
        let path = |name: &str| entry.directory.join(name).to_string_lossy().into_owned();
        let arguments = match entry.traces {
            None => vec![
                format!("--data-dir={}", path("etcd")),
                format!("--tls-private-key-file={}", path("pki/apiserver.key")),
            ],
            // All other processes of a node end with the two that have this argument.
            Some(_) => vec![path("node")],
        };
        for (program, identity) in state::mentioning(&arguments) {
            if alive.iter().all(|each| each.identity != identity) {
                alive.push(Process { program, identity });
            }
        }
    }
    alive
}

fn health(entry: &Entry, alive: &[Process]) -> Health {
    let (pid, owner) = (entry.owner.pid, entry.owner.is_alive());
    match (entry.purpose, &entry.ready, owner) {
        (Purpose::Run, _, true) => Health::InUse { pid },
        (Purpose::Lasting, None, true) => Health::Starting { pid },
        (Purpose::Run, _, false) | (Purpose::Lasting, None, false) => Health::Leftover { pid, alive: alive.len() },
        (Purpose::Lasting, Some(_), _) => {
            let made = entry.outside.as_ref().and_then(|outside| outside.containers.as_ref());
            if let Some(containers) = made {
                // An engine without an answer is no proof that it ended.
                let gone = matches!(containers.running(), Ok(0));
                return if gone { Health::Ended { programs: vec!["its nodes".to_owned()] } } else { Health::Running };
            }
            let needed: &[&str] = if entry.traces.is_some() { &["node"] } else { &["etcd", "kube-apiserver"] };
            let programs: Vec<String> = needed
                .iter()
                .filter(|program| alive.iter().all(|each| each.program != **program))
                .map(|&program| program.to_owned())
                .collect();
            if programs.is_empty() { Health::Running } else { Health::Ended { programs } }
        }
    }
}

impl Cluster {
    pub fn has_node(&self) -> bool {
        self.found.entry.as_ref().is_ok_and(|entry| entry.traces.is_some() || entry.outside.is_some())
    }
}

impl Status {
    /// Whether remains exist that `longhaul cluster down` would remove.
    pub fn has_leftovers(&self) -> bool {
        self.clusters.iter().any(|cluster| matches!(cluster.health, Health::Leftover { .. } | Health::Ended { .. }))
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => write!(f, "running"),
            Self::Starting { pid } => write!(f, "starting (by process {pid})"),
            Self::InUse { pid } => write!(f, "in use by the run of process {pid}, and removed with it"),
            Self::Ended { programs } => write!(f, "broken: {} ended", programs.join(" and ")),
            Self::Leftover { pid, alive: 0 } => write!(f, "leftover of process {pid}, which was killed; files only"),
            Self::Leftover { pid, alive } => {
                write!(f, "leftover of process {pid}, which was killed; {alive} of its processes still run")
            }
            Self::Unreadable { problem } => write!(f, "unknown, its entry cannot be read ({problem})"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.clusters.is_empty() {
            return write!(f, "no control plane is up (start one with `longhaul cluster up`)");
        }
        for (index, cluster) in self.clusters.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{cluster}")?;
        }
        if self.has_leftovers() {
            write!(f, "\nrun `longhaul cluster down` to end and remove the leftovers")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.health)?;
        if let (Some(version), Some(url)) = (&self.version, &self.url) {
            let what = if self.has_node() { "Kubernetes" } else { "kube-apiserver" };
            write!(f, "\n  {what} {version} at {url}")?;
        }
        if let Some(started_at) = &self.started_at {
            write!(f, "\n  started {started_at}")?;
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            write!(f, "\n  kubeconfig {}", kubeconfig.display())?;
        }
        write!(f, "\n  folder {}", self.directory.display())?;
        for Process { program, identity } in &self.alive {
            write!(f, "\n  process {} {program}", identity.pid)?;
        }
        Ok(())
    }
}
