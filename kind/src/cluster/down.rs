//! Ends processes and removes folders that longhaul provably made: a process is recognised by its start time and id, a
//! folder by a mark file.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::node;
use crate::state::{self, Entry, Outside, Process, Purpose};

use super::status::{Cluster, Health, status};
use super::{DEFAULT_NAME, Error, KIND_NAME, NODE_NAME};

/// The time that a process has to end after SIGTERM. kube-apiserver waits until its clients close their watches, so a
/// longer wait does not help.
const TERM_LIMIT: Duration = Duration::from_secs(10);
/// The time that a killed process has to disappear. A killed process stays longer only if the kernel still writes for
/// it.
const KILL_LIMIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The processes and folders that `cluster down` ended, removed or left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Down {
    /// Processes that were ended, each with the name of its control plane.
    pub ended: Vec<(String, Process)>,
    /// Folders that were removed or emptied.
    pub removed: Vec<PathBuf>,
    /// Folders that were left alone, with the reason.
    pub left: Vec<(PathBuf, String)>,
}

impl Down {
    /// Whether `cluster down` could remove all folders.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// Takes down the control plane with the name `name`. Without a name, takes down `local`, `node`, `kind` and all
/// remains of killed commands and runs. `cluster down` never touches a control plane that a run uses.
pub async fn down(state_directory: &Path, name: Option<&str>) -> Result<Down, Error> {
    let clusters = status(state_directory)?.clusters;
    if let Some(name) = name.filter(|name| clusters.iter().all(|cluster| cluster.name != *name)) {
        return Err(Error::Unknown { name: name.to_owned() });
    }
    let mut done = Down::default();
    // Guests first, while their cluster still exists.
    let mut clusters = clusters;
    clusters.sort_by_key(|cluster| {
        let outside = cluster.found.entry.as_ref().ok().and_then(|entry| entry.outside.as_ref());
        outside.is_none_or(|outside| outside.guest.is_none())
    });
    for cluster in clusters {
        let usual = [DEFAULT_NAME, NODE_NAME, KIND_NAME].contains(&cluster.name.as_str());
        let named = name.map_or(usual, |name| cluster.name == name);
        match (&cluster.health, &cluster.found.entry) {
            (Health::Starting { pid } | Health::InUse { pid }, _) if named => {
                return Err(Error::Starting { name: cluster.name, pid: *pid });
            }
            (Health::Running | Health::Ended { .. }, Ok(entry)) if named => take(&cluster, entry, &mut done).await?,
            (Health::Leftover { .. }, Ok(entry)) if named || name.is_none() => {
                take(&cluster, entry, &mut done).await?;
            }
            (Health::Unreadable { problem }, _) if named || name.is_none() => {
                done.left.push((cluster.directory, format!("its entry cannot be read: {problem}")));
            }
            _ => {}
        }
    }
    Ok(done)
}

/// Takes down the control planes that the runs of an ended process left, and returns the number of these runs. Waits up
/// to five seconds until the process `owner` ends.
pub async fn take_down_runs_of(state_directory: &Path, owner: u32) -> Result<usize, Error> {
    let deadline = Instant::now() + KILL_LIMIT;
    let mut done = Down::default();
    let mut number = 0;
    loop {
        let clusters = status(state_directory)?.clusters.into_iter();
        let of_owner = |cluster: &Cluster| cluster.found.entry.as_ref().is_ok_and(|entry| entry.owner.pid == owner);
        let mut waits = false;
        for cluster in clusters.filter(of_owner) {
            match (&cluster.health, &cluster.found.entry) {
                (Health::InUse { .. }, _) => waits = true,
                (Health::Leftover { .. }, Ok(entry)) if entry.purpose == Purpose::Run => {
                    take(&cluster, entry, &mut done).await?;
                    number += 1;
                }
                _ => {}
            }
        }
        if !waits || Instant::now() >= deadline {
            return Ok(number);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn take(cluster: &Cluster, entry: &Entry, done: &mut Down) -> Result<(), Error> {
    if let Some(outside) = &entry.outside {
        if let Err(reason) = take_outside(outside).await {
            done.left.push((entry.directory.clone(), reason));
            return Ok(());
        }
        let taken = cluster.alive.iter().map(|process| (cluster.name.clone(), process.clone()));
        done.ended.extend(taken);
        return remove_files(cluster, entry, done);
    }
    // kube-apiserver first: it needs etcd until it has ended.
    let (apiserver, rest): (Vec<&Process>, Vec<&Process>) =
        cluster.alive.iter().partition(|process| process.program == "kube-apiserver");
    for process in apiserver.into_iter().chain(rest) {
        if !end(process, entry.traces.is_some()).await {
            let reason = format!("process {} ({}) does not end", process.identity.pid, process.program);
            done.left.push((entry.directory.clone(), reason));
            return Ok(());
        }
        done.ended.push((cluster.name.clone(), process.clone()));
    }
    if let Some(traces) = entry.traces.clone() {
        let group = traces.group.clone();
        let removed = tokio::task::spawn_blocking(move || node::remove_traces(&traces)).await;
        if !matches!(removed, Ok(Ok(()))) {
            done.left.push((entry.directory.clone(), format!("its cgroups ({group}) cannot be removed")));
            return Ok(());
        }
    }
    remove_files(cluster, entry, done)
}

/// Takes down a kind cluster, or the objects of a run in a foreign cluster.
async fn take_outside(outside: &Outside) -> Result<(), String> {
    if let Some(containers) = &outside.containers {
        containers.delete(None).await.map_err(|error| error.to_string())?;
    }
    if let Some(within) = &outside.within {
        if !within.exists().await.map_err(|error| error.to_string())? {
            return Ok(());
        }
        // A node that a killed run left paused would not answer.
        within.unpause_all().await.map_err(|error| error.to_string())?;
    }
    match &outside.guest {
        Some(guest) => guest.take_away().await.map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

fn remove_files(cluster: &Cluster, entry: &Entry, done: &mut Down) -> Result<(), Error> {
    if !entry.directory.exists() {
        // A run's folder that was removed already.
    } else if state::is_ours(entry) {
        for name in state::contents(entry.purpose) {
            remove(&entry.directory.join(name))?;
        }
        done.removed.push(entry.directory.clone());
    } else {
        let reason = "it does not have the mark of this control plane, so it is not provably Longhaul's".to_owned();
        done.left.push((entry.directory.clone(), reason));
    }
    // Last, so that a `down` that was killed can be repeated.
    state::forget(&cluster.found.folder)?;
    if entry.directory != cluster.found.folder {
        // Only if it is empty; a run keeps its logs and records in there.
        let _ = fs::remove_dir(&entry.directory);
    } else if entry.directory.exists() {
        done.left.push((entry.directory.clone(), "it holds files that no control plane made".to_owned()));
    }
    Ok(())
}

/// Asks a process to end, and kills it if it does not; returns whether the process has ended. A node's first process
/// reacts only to SIGKILL.
async fn end(process: &Process, is_node: bool) -> bool {
    let signals = [(Signal::TERM, TERM_LIMIT), (Signal::KILL, KILL_LIMIT)];
    for (signal, limit) in signals.into_iter().skip(usize::from(is_node)) {
        let Some(handle) = process.identity.open() else { break };
        handle.signal(signal);
        let deadline = Instant::now() + limit;
        while process.identity.is_alive() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    !process.identity.is_alive()
}

/// Removes a file or folder. If the path is a symbolic link, only the link is removed.
fn remove(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ended.is_empty() && self.removed.is_empty() && self.left.is_empty() {
            return write!(f, "no control plane was found");
        }
        let mut lines = Vec::new();
        for (name, Process { program, identity }) in &self.ended {
            lines.push(format!("{name}: ended {program} (process {})", identity.pid));
        }
        lines.extend(self.removed.iter().map(|path| format!("removed keys and data in {}", path.display())));
        lines.extend(self.left.iter().map(|(path, reason)| format!("left {}: {reason}", path.display())));
        write!(f, "{}", lines.join("\n"))
    }
}
