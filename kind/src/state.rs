//! The files of control planes on disk, by which another process can find and end them.
//!
//! Owns the state directory: one folder for each control plane with an entry in it, written before anything is started
//! and after each step, so that a control plane is found again even if a process is killed in between. Owns the proof
//! that a process or folder is ours. It starts and ends nothing: [`crate::local`] and [`crate::cluster`] do that.
//!
//! A process is identified by its number, its start time and its boot, so that a number that another process got later
//! is never taken for ours. A folder is ours if it contains the entry's random mark.

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

/// The entry's file in its folder.
const ENTRY: &str = "cluster.json";
/// The mark in the folder of keys and data.
const MARK: &str = ".longhaul-control-plane";
/// The most bytes of an entry, which has a few hundred.
const ENTRY_BYTES_MAX: u64 = 64 << 10;
/// The most control planes in one state directory; a folder with more is not one.
const ENTRIES_MAX: usize = 256;
/// The version of the file's format. An entry with another version is left alone.
const FORMAT: u32 = 1;

/// A control plane that was started on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The version of the file's format.
    pub format: u32,
    /// Random; also in the mark of the folder.
    pub id: String,
    pub name: String,
    /// The use of the control plane.
    pub purpose: Purpose,
    /// The process that started it.
    pub owner: Identity,
    /// When it was started, as RFC 3339.
    pub started_at: String,
    /// The folder of keys, data and logs.
    pub directory: PathBuf,
    /// Every process that was started for it, in order.
    pub processes: Vec<Process>,
    /// Set once it was ready.
    pub ready: Option<Ready>,
    /// Traces of a node on the machine apart from processes and the folder; none for a control plane without nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// Parts in containers, or in another owner's cluster, which end with no process of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
}

/// Parts that end with no process of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outside {
    /// A cluster of kind that was made.
    pub containers: Option<Containers>,
    /// The objects of a guest in a cluster that goes on.
    pub guest: Option<Labelled>,
    /// The cluster of kind that the guest is in: a cluster that no longer exists has no guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Containers>,
}

/// Traces of a node on the machine apart from processes and the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traces {
    /// The name of its groups in every hierarchy of cgroups.
    pub group: String,
}

/// The use of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// A user at a terminal: it stays until it is taken down.
    #[serde(rename = "standing")]
    Lasting,
    /// A run: it ends with the process that started it.
    Run,
}

/// A process of a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Process {
    /// `etcd` or `kube-apiserver`.
    pub program: String,
    pub identity: Identity,
}

/// A control plane that became ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ready {
    /// The version that the API server reports: `v1.34.1`.
    pub version: String,
    /// `https://127.0.0.1:port`
    pub url: String,
    /// The administrator's kubeconfig, if there is a file.
    pub kubeconfig: Option<PathBuf>,
}

/// An entry with the folder that it is in.
#[derive(Debug, Clone)]
pub struct Found {
    /// The folder in the state directory.
    pub folder: PathBuf,
    /// The entry, or why it cannot be read.
    pub entry: Result<Entry, Arc<Unreadable>>,
}

/// Why an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refuses to read it.
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error("it has {bytes} bytes, which no entry has")]
    Size { bytes: u64 },
    /// The file is no entry.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another version of this program wrote it.
    #[error("it has format {format}, this program knows {FORMAT}: use the one that wrote it")]
    Format { format: u32 },
}

/// The state directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error("failed to find a state directory: set HOME or XDG_STATE_HOME")]
    NoHome,
    /// There is an entry of that name.
    #[error("failed to register the control plane `{name}`: there is one of that name")]
    Exists { name: String },
    /// A name that is not possible as a folder name.
    #[error("failed to use `{name}` as a name: write 1 to 40 of a-z, 0-9 and `-`, beginning with a letter")]
    Name { name: String },
    /// A process could not be examined. Identifying processes needs Linux's `/proc`.
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

/// An entry that is being written. Dropping it removes it again, unless it is kept.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    entry: Entry,
    kept: bool,
}

/// The default folder of the state: `$XDG_STATE_HOME/longhaul/clusters`, or `~/.local/state/longhaul/clusters` (XDG
/// Base Directory Specification).
pub fn default_directory() -> Result<PathBuf, Error> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    directory_for(absolute("XDG_STATE_HOME"), absolute("HOME")).ok_or(Error::NoHome)
}

fn directory_for(state_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let state = state_home.or_else(|| Some(home?.join(".local/state")))?;
    Some(state.join("longhaul/clusters"))
}

/// Every control plane of a state directory, by name. Empty if the directory does not exist.
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

/// The entry in a folder, or why it cannot be used.
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

/// Whether the entry's folder of keys and data is provably the one that it was written for.
pub(crate) fn is_ours(entry: &Entry) -> bool {
    !entry.id.is_empty() && fs::read_to_string(entry.directory.join(MARK)).is_ok_and(|mark| mark == entry.id)
}

/// Removes an entry and its folder, unless the folder has other files.
pub(crate) fn forget(folder: &Path) -> Result<(), Error> {
    let path = folder.join(ENTRY);
    fs::remove_file(&path).map_err(failed(&path))?;
    // Other files in the folder stay, and so does the folder.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The files and folders in an entry's directory that its control plane made, the mark last. The logs of a run stay.
pub(crate) const fn contents(purpose: Purpose) -> &'static [&'static str] {
    match purpose {
        Purpose::Lasting => {
            &["pki", "etcd", "node", "logs", "kind.yaml", "kind.kubeconfig", "image.tar", "kubeconfig", MARK]
        }
        Purpose::Run => &["pki", "etcd", "node", "kind.yaml", "kind.kubeconfig", "image.tar", MARK],
    }
}

impl Registration {
    /// Writes the entry of a control plane that this process is about to start. `directory` is its folder of keys and
    /// data; without one it is the entry's own folder.
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

    /// The registration of a control plane of a run of this process; none without a state directory.
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

    /// Registers further traces on the machine, before they exist.
    pub(crate) fn leaves(&mut self, traces: Traces) -> Result<(), Error> {
        self.entry.traces = Some(traces);
        self.write()
    }

    /// Registers parts outside of this machine's processes, before they exist.
    pub(crate) fn lives_outside(&mut self, outside: Outside) -> Result<(), Error> {
        self.entry.outside = Some(outside);
        self.write()
    }

    /// Registers that it is ready.
    pub(crate) fn ready(&mut self, ready: Ready) -> Result<(), Error> {
        self.entry.ready = Some(ready);
        self.write()
    }

    /// The entry as written so far.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Leaves the entry for other processes to find.
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

/// The struct has string keys only, so it is always JSON.
fn text(entry: &Entry) -> String {
    serde_json::to_string_pretty(entry).unwrap_or_default()
}

/// Readers see the old text or the new one, never half of it.
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
