//! Cleans up after a harness that was killed.
//!
//! A killed harness cannot end its children or remove its files. A second process, the keeper, therefore gets a list of
//! everything that a killed harness would leave: process groups, and folders with keys. The keeper gets this list
//! through a pipe. The kernel closes the pipe when the harness ends for any reason, and the keeper then ends and
//! removes everything on the list. The keeper's list has process groups, because the kernel's parent-death signal does
//! not reach grandchildren.
//!
//! The keeper must never touch anything that is not on its list.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::out::err;

/// The command of `longhaul` that runs as the first process of a node.
pub const NODE_COMMAND: &str = "node";
/// Prefix of the names of Longhaul's temporary folders. The keeper removes only folders with this prefix.
const FOLDER_PREFIX: &str = "longhaul-";
/// Maximum length of a message to the keeper, in bytes; a message has a path or a number.
const ORDER_BYTES_MAX: u64 = 16 << 10;
/// Maximum number of entries of the keeper's list: several runs at the same time, each with a subject and a folder.
const KEPT_MAX: usize = 4096;
/// Number of attempts to remove a folder. A killed process may write files into the folder until the kernel has ended
/// the process.
const TRIES: u32 = 40;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The keeper's process, which starts when it is first needed.
static KEEPER: Mutex<Keeper> = Mutex::new(Keeper::None);

/// A message to the keeper: an entry for its list, or the removal of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    Group(i32),
    Ended(i32),
    /// A folder was created.
    Folder(PathBuf),
    /// A file with a token was written at a path that the user chose.
    File(PathBuf),
    /// The folder or file at this path was removed.
    Removed(PathBuf),
    /// The process with this number runs a real kube-apiserver and etcd whose state is in this directory.
    ControlPlanes(PathBuf, u32),
}

enum Keeper {
    /// The running program is not `longhaul` but a test, so no keeper can be started.
    None,
    Wanted,
    Running(Child),
}

/// A folder that only this user can read. The folder is removed on drop, and by the keeper if the harness is killed.
pub struct Folder {
    /// The temporary folder; `None` only while this value is dropped.
    directory: Option<TempDir>,
}

impl Folder {
    /// Creates a folder for keys.
    pub fn make() -> anyhow::Result<Self> {
        let mode = std::fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().prefix(FOLDER_PREFIX).permissions(mode).tempdir();
        let directory = directory.context("failed to make a folder for keys")?;
        let told = tell(&Order::Folder(directory.path().to_owned()));
        told.context("failed to start the process that removes keys after a kill")?;
        Ok(Self { directory: Some(directory) })
    }

    pub fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let path = directory.path().to_owned();
        // If it cannot be removed now, the keeper tries once more.
        if directory.close().is_ok() {
            let _ = tell(&Order::Removed(path));
        }
    }
}

/// Allows a keeper to be started, because the running program has the command `keeper`.
pub fn allow() {
    *KEEPER.lock() = Keeper::Wanted;
}

/// Sends a message to the keeper; the first message starts the keeper.
pub fn tell(order: &Order) -> std::io::Result<()> {
    let mut keeper = KEEPER.lock();
    if matches!(*keeper, Keeper::Wanted) {
        *keeper = Keeper::Running(start()?);
    }
    let Keeper::Running(child) = &mut *keeper else { return Ok(()) };
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&line))
}

/// Ends the keeper, because this process is about to end normally.
pub fn end() {
    if let Keeper::Running(mut child) = std::mem::replace(&mut *KEEPER.lock(), Keeper::None) {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

fn start() -> std::io::Result<Child> {
    // The file may have been replaced by a newer build since the start; this path is the running program.
    let own = Path::new("/proc/self/exe");
    let program = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    command.arg0("longhaul").arg("keeper").stdin(Stdio::piped()).stdout(Stdio::null());
    // It has its own process group: neither Ctrl-C nor a kill of the harness's group may reach it.
    command.process_group(0).spawn()
}

/// The command `longhaul keeper`: reads messages until the harness has ended, and then cleans up.
pub fn keeper() {
    let mut kept = Kept::default();
    let mut orders = BufReader::new(std::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut orders).take(ORDER_BYTES_MAX).read_until(b'\n', &mut line);
        // A torn line comes from a harness that was killed while it wrote.
        let Some(order) = read.ok().and_then(|_| serde_json::from_slice(&line).ok()) else { break };
        kept.note(order);
    }
    kept.tidy();
}

/// The keeper's list of everything that a killed harness would leave now.
#[derive(Debug, Default)]
struct Kept {
    groups: BTreeSet<i32>,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    control_planes: BTreeSet<(PathBuf, u32)>,
}

impl Kept {
    fn note(&mut self, order: Order) {
        match order {
            // 0 would be the keeper's own group; 1 and less would be every process.
            Order::Group(group @ 2..) if self.groups.len() < KEPT_MAX => drop(self.groups.insert(group)),
            Order::Folder(path) if self.folders.len() < KEPT_MAX && is_ours(&path) => drop(self.folders.insert(path)),
            Order::Ended(group) => drop(self.groups.remove(&group)),
            Order::File(path) if self.files.len() < KEPT_MAX && path.is_absolute() => drop(self.files.insert(path)),
            Order::Removed(path) => drop((self.folders.remove(&path), self.files.remove(&path))),
            Order::ControlPlanes(state, owner) if self.control_planes.len() < KEPT_MAX => {
                self.control_planes.insert((state, owner));
            }
            Order::Group(_) | Order::Folder(_) | Order::File(_) | Order::ControlPlanes(..) => {}
        }
    }

    fn tidy(mut self) {
        self.groups.extend(strays(&self.folders));
        for group in self.groups {
            let ended = Pid::from_raw(group).map(|group| {
                // No process is left that could end it in good order.
                rustix::process::kill_process_group(group, Signal::KILL)
            });
            if ended == Some(Ok(())) {
                err!("longhaul: the harness was killed; its process group {group} was ended");
            }
        }
        // They come before their folders, which contain the list of their other parts.
        for (state, owner) in self.control_planes {
            match take_down(&state, owner) {
                Ok(0) => {}
                Ok(number) => {
                    err!("longhaul: the harness was killed; the leftovers of {number} control plane(s) were removed");
                }
                Err(error) => {
                    err!("longhaul: `longhaul cluster down` removes the leftovers of a control plane: {error}");
                }
            }
        }
        for file in self.files {
            match std::fs::remove_file(&file) {
                Ok(()) => err!("longhaul: the harness was killed; its file {} was removed", file.display()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => err!("longhaul: {} could not be removed and holds a token: {error}", file.display()),
            }
        }
        for folder in self.folders {
            match remove(&folder) {
                Ok(()) => err!("longhaul: the harness was killed; its folder {} was removed", folder.display()),
                Err(error) => err!("longhaul: {} could not be removed and may hold keys: {error}", folder.display()),
            }
        }
    }
}

/// Process groups that are not on the keeper's list, because the harness was killed between starting a process and
/// sending the message. Such groups are found by an environment variable that names one of the folders on the list.
fn strays(folders: &BTreeSet<PathBuf>) -> Vec<i32> {
    let own = rustix::process::getpgrp();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // An unreadable process belongs to another user, or is gone.
        let (Some(pid), Ok(environment)) = (pid, std::fs::read(entry.path().join("environ"))) else { continue };
        let names = |folder: &PathBuf| {
            let folder = folder.as_os_str().as_encoded_bytes();
            environment.windows(folder.len()).any(|part| part == folder)
        };
        if folders.iter().any(names)
            && let Ok(group) = rustix::process::getpgid(Some(pid))
            && group != own
        {
            found.push(group.as_raw_nonzero().get());
        }
    }
    found
}

/// Stops the control planes that the killed process `owner` has left running.
fn take_down(state: &Path, owner: u32) -> anyhow::Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(kind::cluster::take_down_runs_of(state, owner))?)
}

/// The command line that starts this program as the first process of a node.
pub fn first_process_of_node() -> Vec<OsString> {
    // The file may have been replaced by a newer build since the start; this path is the running program.
    vec![format!("/proc/{}/exe", std::process::id()).into(), NODE_COMMAND.into()]
}

fn is_ours(path: &Path) -> bool {
    path.is_absolute()
        && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(FOLDER_PREFIX.as_bytes()))
}

fn remove(folder: &Path) -> std::io::Result<()> {
    for _ in 1..TRIES {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            // Nothing wakes this thread, so this is only a pause.
            Err(_) => std::thread::park_timeout(BETWEEN_TRIES),
        }
    }
    std::fs::remove_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_given_a_file_of_ours_is_found() {
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir().unwrap();
        let folders = BTreeSet::from([folder.path().to_owned()]);
        let mut command = Command::new("sleep");
        command.arg("600").env("KUBECONFIG", folder.path().join("kubeconfig")).process_group(0);
        let mut child = command.spawn().unwrap();
        let group = i32::try_from(child.id()).unwrap();
        // A new process has no variables yet: its parent continues before the new memory is complete.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let mut found = strays(&folders);
        while found.is_empty() && std::time::Instant::now() < deadline {
            found = strays(&folders);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [group]);
        assert_eq!(strays(&folders), Vec::<i32>::new());
    }

    #[test]
    fn only_what_was_told_and_not_taken_back_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("tls.key"), "k").unwrap();
            path
        };
        let [left, gone, foreign] = ["longhaul-left", "longhaul-gone", "precious"].map(folder);
        let file = parent.path().join("kubeconfig");
        std::fs::write(&file, "token").unwrap();
        let mut kept = Kept::default();
        kept.note(Order::File(file.clone()));
        for path in [&left, &gone, &foreign] {
            kept.note(Order::Folder(path.clone()));
        }
        kept.note(Order::Removed(gone.clone()));
        kept.note(Order::Group(0));
        kept.note(Order::Group(-1));
        kept.tidy();
        assert!(!left.exists() && !file.exists() && gone.exists() && foreign.exists());
    }

    #[test]
    fn a_group_is_ended_with_its_children() {
        let mut shell = Command::new("sh");
        let mut child = shell.args(["-c", "sleep 600 & wait"]).process_group(0).spawn().unwrap();
        let group = i32::try_from(child.id()).unwrap();
        let mut kept = Kept::default();
        kept.note(Order::Group(group));
        kept.tidy();
        assert!(!child.wait().unwrap().success());
        let mut ended = Kept::default();
        ended.note(Order::Group(group));
        ended.note(Order::Ended(group));
        assert!(ended.groups.is_empty());
    }
}
