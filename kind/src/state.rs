//! Files on disk by which another process can find and end control planes.
//!
//! This module owns the state directory, which has one folder for each control plane with a file that describes the
//! control plane (its entry). The entry is written before anything starts and after each change, so that a control
//! plane is found even if the command that starts it is killed. This module proves that longhaul made a process or
//! folder. This module starts and ends nothing: [`crate::local`] and [`crate::cluster`] start and end processes.
//!
//! A process is identified by its id, its start time and the machine's boot id, so that a later process with the same
//! process id is never ended by mistake. A folder belongs to a control plane if the folder contains the random mark in
//! the control plane's entry.

mod identity;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::containers::Containers;
use crate::labelled::Labelled;

pub use identity::Identity;
pub(crate) use identity::mentioning;

/// The name of an entry's file.
const ENTRY: &str = "cluster.json";
/// The name of the file with the entry's random mark, in the folder of keys and data.
const MARK: &str = ".longhaul-control-plane";
/// Maximum size of an entry in bytes; an entry usually has a few hundred bytes.
const ENTRY_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of files and folders in a state directory that are read.
const ENTRIES_MAX: usize = 256;
/// The version of an entry's format. Longhaul neither uses nor removes an entry with another format version.
const FORMAT: u32 = 1;

/// A control plane that was started on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The version of the entry's format.
    pub format: u32,
    /// A random id, which is also in the mark file in the control plane's folder.
    pub id: String,
    pub name: String,
    /// The purpose for which the control plane was started.
    pub purpose: Purpose,
    /// The process that started the control plane.
    pub owner: Identity,
    /// The start time of the control plane as RFC 3339.
    pub started_at: String,
    /// The folder of keys, data and logs.
    pub directory: PathBuf,
    /// All processes that were started for the control plane, in order.
    pub processes: Vec<Process>,
    /// Version, URL and kubeconfig; set when the control plane became ready.
    pub ready: Option<Ready>,
    /// The cgroups that a node has on the machine; `None` without a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// A kind cluster or objects in a foreign cluster, which do not end with a process of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
}

/// Clusters and objects that a run made and that do not end with a process of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outside {
    /// A kind cluster that was made for the run.
    pub containers: Option<Containers>,
    /// The objects of a run in a foreign cluster.
    pub guest: Option<Labelled>,
    /// The kind cluster that contains the objects in `guest`. If this kind cluster no longer exists, its objects do not
    /// exist either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Containers>,
}

/// The cgroups that a node has on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traces {
    /// The name of the node's groups in every cgroup hierarchy.
    pub group: String,
}

/// The purpose for which a control plane was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// `cluster up` started the control plane, which stays until the user takes it down.
    #[serde(rename = "standing")]
    Lasting,
    /// A run started the control plane, which ends with the process of the run.
    Run,
}

/// A process of a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Process {
    /// The program's name: `etcd` or `kube-apiserver`.
    pub program: String,
    pub identity: Identity,
}

/// The access to a control plane that became ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ready {
    /// The version that the API server reports, for example `v1.34.1`.
    pub version: String,
    /// The URL of the API server: `https://127.0.0.1:port`
    pub url: String,
    /// The path of the administrator's kubeconfig, if such a file exists.
    pub kubeconfig: Option<PathBuf>,
}

/// An entry and its folder.
#[derive(Debug, Clone)]
pub struct Found {
    /// The entry's folder in the state directory.
    pub folder: PathBuf,
    /// The entry, or why it cannot be read.
    pub entry: Result<Entry, Arc<Unreadable>>,
}

/// Why an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refuses to read the file.
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error("it has {bytes} bytes, which no entry has")]
    Size { bytes: u64 },
    /// The file is not the JSON of an entry.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another version of longhaul wrote the entry.
    #[error("it has format {format}, this program knows {FORMAT}: use the one that wrote it")]
    Format { format: u32 },
}

/// Why the state directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error("failed to find a state directory: set HOME or XDG_STATE_HOME")]
    NoHome,
    /// An entry with the name of the new control plane exists.
    #[error("failed to register the control plane `{name}`: there is one of that name")]
    Exists { name: String },
    /// The name cannot be the name of a folder.
    #[error("failed to use `{name}` as a name: write 1 to 40 of a-z, 0-9 and `-`, beginning with a letter")]
    Name { name: String },
    /// A process could not be examined. Processes can be identified only by Linux's `/proc`.
    #[error("failed to look at process {pid} in /proc")]
    Process {
        pid: u32,
        #[source]
        source: std::io::Error,
    },
    /// A file or folder could not be used.
    #[error("failed to use {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// An entry that is being written. Dropping the value removes the entry from disk, unless `keep` was called.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    entry: Entry,
    kept: bool,
}

/// The default state directory: `$XDG_STATE_HOME/longhaul/clusters`, or `~/.local/state/longhaul/clusters` (XDG Base
/// Directory Specification).
pub fn default_directory() -> Result<PathBuf, Error> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    directory_for(absolute("XDG_STATE_HOME"), absolute("HOME")).ok_or(Error::NoHome)
}

fn directory_for(state_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let state = state_home.or_else(|| Some(home?.join(".local/state")))?;
    Some(state.join("longhaul/clusters"))
}

/// All control planes of a state directory, sorted by name; empty if the directory does not exist.
pub fn entries(root: &Path) -> Result<Vec<Found>, Error> {
    let listing = match fs::read_dir(root) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(root)(error)),
    };
    let mut folders: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).take(ENTRIES_MAX).collect();
    folders.sort();
    // A folder without an entry belongs to another program, or has the logs of a control plane that was removed.
    folders.retain(|folder| folder.join(ENTRY).symlink_metadata().is_ok());
    Ok(folders.into_iter().map(|folder| Found { entry: read(&folder).map_err(Arc::new), folder }).collect())
}

/// The control plane's entry in a folder, or the reason why the entry cannot be used.
pub(crate) fn read(folder: &Path) -> Result<Entry, Unreadable> {
    let path = folder.join(ENTRY);
    let bytes = fs::metadata(&path)?.len();
    if bytes > ENTRY_BYTES_MAX {
        return Err(Unreadable::Size { bytes });
    }
    let entry: Entry = serde_json::from_slice(&fs::read(&path)?)?;
    if entry.format != FORMAT {
        return Err(Unreadable::Format { format: entry.format });
    }
    Ok(entry)
}

/// Whether the mark proves that the folder of keys and data belongs to the entry.
pub(crate) fn is_ours(entry: &Entry) -> bool {
    !entry.id.is_empty() && fs::read_to_string(entry.directory.join(MARK)).is_ok_and(|mark| mark == entry.id)
}

/// Removes an entry and its folder, unless the folder contains other files.
pub(crate) fn forget(folder: &Path) -> Result<(), Error> {
    let path = folder.join(ENTRY);
    fs::remove_file(&path).map_err(failed(&path))?;
    // Other files in the folder stay, and so does the folder.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The files and folders that a control plane makes in its directory; the mark file is the last. The logs of a run are
/// not in this list, so that the logs stay.
pub(crate) const fn contents(purpose: Purpose) -> &'static [&'static str] {
    match purpose {
        Purpose::Lasting => {
            &["pki", "etcd", "node", "logs", "kind.yaml", "kind.kubeconfig", "image.tar", "kubeconfig", MARK]
        }
        Purpose::Run => &["pki", "etcd", "node", "kind.yaml", "kind.kubeconfig", "image.tar", MARK],
    }
}

impl Registration {
    /// Writes the entry of a control plane that this process will start. `directory` is the folder of keys and data; if
    /// it is `None`, the entry's own folder is used.
    pub fn begin(root: &Path, name: &str, purpose: Purpose, directory: Option<&Path>) -> Result<Self, Error> {
        check_name(name)?;
        let root = std::path::absolute(root).map_err(failed(root))?;
        let folder = root.join(name);
        let directory = match directory {
            Some(directory) => std::path::absolute(directory).map_err(failed(directory))?,
            None => folder.clone(),
        };
        for path in [&folder, &directory] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))?;
        }
        let entry = Entry {
            format: FORMAT,
            id: format!("{:032x}", rand::random::<u128>()),
            name: name.to_owned(),
            purpose,
            owner: Identity::of_self()?,
            started_at: jiff::Timestamp::now().to_string(),
            directory,
            processes: Vec::new(),
            ready: None,
            traces: None,
            outside: None,
        };
        // The process that makes the file has the name; two at once cannot.
        let path = folder.join(ENTRY);
        let draft = folder.join(format!("draft-{}", entry.id));
        write(&draft, &text(&entry))?;
        // A link fails if the path exists, and the linked file is complete from the start.
        let linked = fs::hard_link(&draft, &path);
        let _ = fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists { name: name.to_owned() });
            }
            linked => linked.map_err(failed(&path))?,
        }
        let registration = Self { folder, entry, kept: false };
        write(&registration.entry.directory.join(MARK), &registration.entry.id)?;
        Ok(registration)
    }

    /// Writes the entry of a run's control plane; `None` without a state directory.
    pub(crate) fn of_run(root: Option<&PathBuf>, directory: &Path) -> Result<Option<Self>, Error> {
        let name = format!("run-{}-{:08x}", std::process::id(), rand::random::<u32>());
        root.map(|root| Self::begin(root, &name, Purpose::Run, Some(directory))).transpose()
    }

    /// Registers a process that was just started.
    pub(crate) fn started(&mut self, program: &str, pid: u32) -> Result<(), Error> {
        let identity = Identity::of(pid)?;
        self.entry.processes.push(Process { program: program.to_owned(), identity });
        self.write()
    }

    /// Adds a node's cgroups to the entry, before the cgroups are made.
    pub(crate) fn leaves(&mut self, traces: Traces) -> Result<(), Error> {
        self.entry.traces = Some(traces);
        self.write()
    }

    /// Adds a kind cluster or objects in a foreign cluster to the entry, before the cluster or the objects are made.
    pub(crate) fn lives_outside(&mut self, outside: Outside) -> Result<(), Error> {
        self.entry.outside = Some(outside);
        self.write()
    }

    /// Adds version, URL and kubeconfig to the entry when the control plane has become ready.
    pub(crate) fn ready(&mut self, ready: Ready) -> Result<(), Error> {
        self.entry.ready = Some(ready);
        self.write()
    }

    /// The entry as it was last written.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Keeps the entry on disk, so that other processes find it.
    pub(crate) fn keep(mut self) -> Entry {
        self.kept = true;
        self.entry.clone()
    }

    fn write(&self) -> Result<(), Error> {
        write(&self.folder.join(ENTRY), &text(&self.entry))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.kept {
            if is_ours(&self.entry) {
                let _ = fs::remove_file(self.entry.directory.join(MARK));
            }
            let _ = forget(&self.folder);
        }
    }
}

/// The entry as JSON. An entry has only string keys, so the conversion cannot fail.
fn text(entry: &Entry) -> String {
    serde_json::to_string_pretty(entry).unwrap_or_default()
}

/// Writes a file in one step, so that readers see the old text or the new text.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&fresh, path)).map_err(failed(path))
}

fn check_name(name: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=40).contains(&name.len()) && name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(Error::Name { name: name.to_owned() })
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path: path.clone(), source }
}

#[cfg(test)]
mod tests;
