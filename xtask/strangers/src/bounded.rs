//! Runs commands of one published program with limits of time and memory.
//!
//! Memory is not limited by address space, because Go programs reserve hundreds of gigabytes of addresses without using
//! them. Instead, the resident memory of the command and all its descendants is added up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// How often a running command is checked.
const LOOK: Duration = Duration::from_millis(200);
/// The time between SIGTERM and SIGKILL, in which `longhaul` ends its subject and writes its reports.
const GRACE: Duration = Duration::from_secs(20);
/// The size of a memory page in bytes on most Linux machines.
const PAGE_BYTES: u64 = 4096;

/// The limits of time and memory for one published program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) until: Instant,
    pub(crate) memory_bytes: u64,
}

/// How a command ended: by itself, or because of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The command ended by itself with this exit code; `None` after a signal.
    Exit(Option<i32>),
    /// The command reached the time limit.
    Late,
    /// The command reached the memory limit.
    Large,
}

impl Ended {
    pub(crate) fn is_fine(self) -> bool {
        self == Self::Exit(Some(0))
    }

    /// How the command ended, as a text for people.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Exit(Some(code)) => format!("exit code {code}"),
            Self::Exit(None) => "ended by a signal".to_owned(),
            Self::Late => "its time was over".to_owned(),
            Self::Large => "it took too much memory".to_owned(),
        }
    }
}

impl Limits {
    /// Runs a command to its end and writes its output to a file. The command stays in this program's process group, so
    /// that Ctrl-C also reaches the command.
    ///
    /// # Errors
    ///
    /// The error: the command cannot be started, or the file cannot be written.
    #[expect(clippy::disallowed_methods, reason = "a program without a runtime looks at its child now and then")]
    pub(crate) fn run(&self, command: &mut Command, log: &Path) -> Result<Ended> {
        let file = File::create(log).with_context(|| format!("failed to write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("failed to start {name}"))?;
        let (mut stopped, mut deadline) = (None, self.until);
        let mut family = BTreeSet::new();
        loop {
            if let Some(status) = child.try_wait()? {
                if stopped.is_some() {
                    // A process that outlives its parent is no longer anyone's descendant.
                    family.iter().filter(|id| **id != child.id()).for_each(|id| send(*id, Signal::KILL));
                }
                return Ok(stopped.unwrap_or(Ended::Exit(status.code())));
            }
            if stopped.is_none() {
                family.clear();
            }
            family.extend(descendants(child.id()));
            if stopped.is_none() && resident(&family) > self.memory_bytes {
                stopped = Some(Ended::Large);
            } else if stopped.is_none() && Instant::now() >= deadline {
                stopped = Some(Ended::Late);
            } else if stopped.is_some() && Instant::now() >= deadline {
                for id in &family {
                    send(*id, Signal::KILL);
                }
            } else {
                std::thread::sleep(LOOK);
                continue;
            }
            // While it is stopped, it starts no further process.
            send(child.id(), Signal::STOP);
            family.extend(descendants(child.id()));
            send(child.id(), Signal::TERM);
            send(child.id(), Signal::CONT);
            deadline = Instant::now() + GRACE;
        }
    }
}

/// Sends a signal to a process, if it still exists.
fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The ids of a process and of all its descendants.
fn descendants(root: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if let Some(parent) = parent(id) {
            children.entry(parent).or_default().push(id);
        }
    }
    let (mut family, mut open) = (BTreeSet::from([root]), vec![root]);
    while let Some(id) = open.pop() {
        for child in children.get(&id).into_iter().flatten() {
            if family.insert(*child) {
                open.push(*child);
            }
        }
    }
    family
}

fn parent(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in brackets, and may contain any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn resident(family: &BTreeSet<u32>) -> u64 {
    let pages = family.iter().filter_map(|id| {
        let statm = std::fs::read_to_string(PathBuf::from(format!("/proc/{id}/statm"))).ok()?;
        statm.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    pages.sum::<u64>() * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(millis: u64, memory_bytes: u64) -> Limits {
        Limits { until: Instant::now() + Duration::from_millis(millis), memory_bytes }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_prints_is_kept_and_its_code_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let ended = limits(60_000, u64::MAX).run(&mut shell("echo out; echo err >&2; exit 3"), &log).unwrap();
        assert_eq!((ended, std::fs::read_to_string(log).unwrap().as_str()), (Ended::Exit(Some(3)), "out\nerr\n"));
    }

    /// If a limit is reached, the processes that the command started are ended too.
    #[test]
    fn what_takes_too_long_or_too_much_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = "sleep 600 & echo $!; wait";
        for (limits, expected) in [(limits(500, u64::MAX), Ended::Late), (limits(60_000, 1), Ended::Large)] {
            assert_eq!(limits.run(&mut shell(script), &log).unwrap(), expected);
            let child = std::fs::read_to_string(&log).unwrap();
            let Ok(id) = child.trim().parse::<u32>() else { continue };
            let is_there = || {
                let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
                !(state.is_empty() || state.contains(") Z "))
            };
            let deadline = Instant::now() + Duration::from_secs(10);
            while is_there() {
                assert!(Instant::now() < deadline, "{id} outlives its command");
                std::thread::yield_now();
            }
        }
    }
}
