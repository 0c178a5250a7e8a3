//! What control planes leave on disk so that another process can find and end them.
//!
//! Owns the state directory: one folder for each control plane with an entry in it, written before anything is started
//! and after each step, so that whatever is killed in between is found again. Owns the question whether a process or
//! folder is provably ours. It starts and ends nothing: that is [`crate::local`]'s and [`crate::cluster`]'s.
//!
//! A process is known by its number, the time it started and the boot it belongs to, so that a number that was given to
//! somebody else later is never taken for ours. A folder is ours when it holds the entry's random mark.

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
/// An entry is a few hundred bytes.
const ENTRY_BYTES_MAX: u64 = 64 << 10;
/// Control planes in one state directory; more is no state directory of ours.
const ENTRIES_MAX: usize = 256;
/// Of the file's form. An entry of another one is left alone.
const FORMAT: u32 = 1;

/// A control plane that was started on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The form of this file.
    pub format: u32,
    /// Random; also in the mark of the folder.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Who needs it.
    pub purpose: Purpose,
    /// The process that started it.
    pub owner: Identity,
    /// When, as RFC 3339.
    pub started_at: String,
    /// The folder of keys, data and logs.
    pub directory: PathBuf,
    /// Every process that was started for it, in order.
    pub processes: Vec<Process>,
    /// Known once it was ready.
    pub ready: Option<Ready>,
    /// What a node has on the machine beside processes and the folder; a control plane without nodes has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// What lives in containers, or in somebody else's cluster, and so ends with no process of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
}

/// What ends with no process of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outside {
    /// A cluster of kind that was made.
    pub containers: Option<Containers>,
    /// What a guest made in a cluster that goes on.
    pub guest: Option<Labelled>,
    /// The cluster of kind that the guest is in: what is not there any more has no guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Containers>,
}

/// What a node has on the machine beside processes and the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traces {
    /// The name of its groups in every hierarchy of cgroups.
    pub group: String,
}

/// Who needs a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// Somebody at a terminal: it stays until it is taken down.
    #[serde(rename = "standing")]
    Lasting,
    /// A run: it goes with the process that started it.
    Run,
}

/// A process of a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Process {
    /// `etcd` or `kube-apiserver`.
    pub program: String,
    /// Which process.
    pub identity: Identity,
}

/// A control plane that became ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ready {
    /// What the API server says it is: `v1.34.1`.
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
    /// What the entry says, or why it cannot be read.
    pub entry: Result<Entry, Arc<Unreadable>>,
}

/// Why an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refuses it.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// It is too large.
    #[error("it has {bytes} bytes, which no entry has")]
    Size {
        /// How large it is.
        bytes: u64,
    },
    /// It is no entry.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another version of this program wrote it.
    #[error("it has format {format}, this program knows {FORMAT}: use the one that wrote it")]
    Format {
        /// Its form.
        format: u32,
    },
}

/// The state directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error("failed to find a state directory: set HOME or XDG_STATE_HOME")]
    NoHome,
    /// There is an entry of that name.
    #[error("failed to register the control plane `{name}`: there is one of that name")]
    Exists {
        /// The name.
        name: String,
    },
    /// A name that is no good folder name.
    #[error("failed to use `{name}` as a name: write 1 to 40 of a-z, 0-9 and `-`, beginning with a letter")]
    Name {
        /// The name.
        name: String,
    },
    /// A process could not be looked at. Telling processes apart needs Linux's `/proc`.
    #[error("failed to look at process {pid} in /proc")]
    Process {
        /// Its number.
        pid: u32,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file or folder.
    #[error("failed to use {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
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

/// Where state is kept unless somebody says otherwise: `$XDG_STATE_HOME/longhaul/clusters`, or
/// `~/.local/state/longhaul/clusters` (XDG Base Directory Specification).
pub fn default_directory() -> Result<PathBuf, Error> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    directory_for(absolute("XDG_STATE_HOME"), absolute("HOME")).ok_or(Error::NoHome)
}

fn directory_for(state_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let state = state_home.or_else(|| Some(home?.join(".local/state")))?;
    Some(state.join("longhaul/clusters"))
}

/// Every control plane of a state directory, by name. None when the directory is not there.
pub fn entries(root: &Path) -> Result<Vec<Found>, Error> {
    let listing = match fs::read_dir(root) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(root)(error)),
    };
    let mut folders: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).take(ENTRIES_MAX).collect();
    folders.sort();
    // A folder without an entry is somebody else's, or the logs of a control plane that is gone.
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

/// Removes an entry and its folder, unless something else is in there.
pub(crate) fn forget(folder: &Path) -> Result<(), Error> {
    let path = folder.join(ENTRY);
    fs::remove_file(&path).map_err(failed(&path))?;
    // Anything else in the folder stays, and so does the folder.
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
        // Whoever makes the file has the name; two at once cannot.
        let path = folder.join(ENTRY);
        let draft = folder.join(format!("draft-{}", entry.id));
        write(&draft, &text(&entry))?;
        // A link fails where something is, and what it makes is whole from the start.
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

    /// That of the control plane of a run of this process; none without a state directory.
    pub(crate) fn of_run(root: Option<&PathBuf>, directory: &Path) -> Result<Option<Self>, Error> {
        let name = format!("run-{}-{:08x}", std::process::id(), rand::random::<u32>());
        root.map(|root| Self::begin(root, &name, Purpose::Run, Some(directory))).transpose()
    }

    /// Notes a process that was just started.
    pub(crate) fn started(&mut self, program: &str, pid: u32) -> Result<(), Error> {
        let identity = Identity::of(pid)?;
        self.entry.processes.push(Process { program: program.to_owned(), identity });
        self.write()
    }

    /// Notes what else there will be on the machine.
    pub(crate) fn leaves(&mut self, traces: Traces) -> Result<(), Error> {
        self.entry.traces = Some(traces);
        self.write()
    }

    /// Notes what will be outside of this machine's processes.
    pub(crate) fn lives_outside(&mut self, outside: Outside) -> Result<(), Error> {
        self.entry.outside = Some(outside);
        self.write()
    }

    /// Notes that it is ready.
    pub(crate) fn ready(&mut self, ready: Ready) -> Result<(), Error> {
        self.entry.ready = Some(ready);
        self.write()
    }

    /// What is written so far.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Leaves the entry for others to find.
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
