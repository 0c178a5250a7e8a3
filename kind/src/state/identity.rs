//! The identity of a process, which shows whether a process id still belongs to the same process.
//!
//! Identities are read from Linux's `/proc` (proc(5)). On systems other than Linux, processes cannot be identified, so
//! longhaul ends none.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::Error;

/// The index of field 22 of `/proc/<pid>/stat`, counted after the name in parentheses, which ends field 2.
const START_FIELD: usize = 22 - 3;

/// Identifies one process until the machine is restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Identity {
    /// The process id, which another process may get after this one has ended.
    pub pid: u32,
    /// The start of the process in clock ticks since the boot.
    pub start_ticks: u64,
    /// The id of the machine's boot during which the process started.
    pub boot: String,
}

/// A handle that always refers to the identified process, even if its process id is reused.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Handle(std::os::fd::OwnedFd);

/// A type without values, because processes cannot be identified on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum Handle {}

impl Identity {
    /// Returns the identity of the process that has this process id now.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let failed = |source| Error::Process { pid, source };
        let (start_ticks, _) = stat(pid).map_err(failed)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(failed)?;
        Ok(Self { pid, start_ticks, boot: boot.trim().to_owned() })
    }

    pub fn of_self() -> Result<Self, Error> {
        Self::of(std::process::id())
    }

    /// Whether the process still runs. A zombie does not count as running.
    pub fn is_alive(&self) -> bool {
        let same = Self::of(self.pid).is_ok_and(|now| now == *self);
        same && stat(self.pid).is_ok_and(|(_, state)| state != 'Z' && state != 'X')
    }

    /// A handle of the process, if it still runs.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(&self) -> Option<Handle> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Checked after it was opened: the handle always refers to the same process, so the check stays valid.
        self.is_alive().then_some(Handle(handle))
    }

    /// Returns `None`, because processes cannot be identified on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn open(&self) -> Option<Handle> {
        None
    }
}

impl Handle {
    /// Sends a signal to the process; does nothing if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::pidfd_send_signal(&self.0, signal);
        #[cfg(not(target_os = "linux"))]
        let _ = (self, signal);
    }
}

/// Identities of this user's processes that were started with one of these arguments.
pub(crate) fn mentioning(arguments: &[String]) -> Vec<(String, Identity)> {
    let uid = rustix::process::getuid().as_raw();
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<(String, Identity)> = numbers.filter_map(|pid| mentions(pid, uid, arguments)).collect();
    found.sort_by_key(|(_, identity)| identity.pid);
    found
}

fn mentions(pid: u32, uid: u32, arguments: &[String]) -> Option<(String, Identity)> {
    let folder = format!("/proc/{pid}");
    if fs::metadata(&folder).ok()?.uid() != uid {
        return None;
    }
    let identity = Identity::of(pid).ok()?;
    let line = fs::read(format!("{folder}/cmdline")).ok()?;
    let mut words = line.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let program = words.next()?;
    let program = Path::new(&*program).file_name()?.to_string_lossy().into_owned();
    words.any(|word| arguments.iter().any(|argument| **argument == *word)).then_some(())?;
    identity.is_alive().then_some((program, identity))
}

/// The start of a process in clock ticks, and its state.
fn stat(pid: u32) -> io::Result<(u64, char)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not what proc(5) says"))
}

/// Parses a line of `/proc/<pid>/stat`. The process's name may contain any character, so fields are counted after the
/// last `)`.
fn parse(stat: &str) -> Option<(u64, char)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.clone().next()?.chars().next()?;
    Some((fields.nth(START_FIELD)?.parse().ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_fields() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(parse(&format!("9 (a) b ) {rest}")), Some((4711, 'S')));
        assert_eq!(parse("9 (a) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_number_alone_is_nobody() {
        if !cfg!(target_os = "linux") {
            println!("skipped: needs Linux");
            return;
        }
        let this = Identity::of_self().unwrap();
        assert!(this.is_alive() && this.open().is_some());
        for other in [
            Identity { start_ticks: this.start_ticks + 1, ..this.clone() },
            Identity { boot: "another".to_owned(), ..this.clone() },
            Identity { pid: u32::MAX, ..this },
        ] {
            assert!(!other.is_alive() && other.open().is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_process_that_ended_is_gone_before_anybody_noticed() {
        if !cfg!(target_os = "linux") {
            println!("skipped: needs Linux");
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        identity.open().unwrap().signal(Signal::KILL);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while identity.is_alive() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", identity.pid)).exists(), "nobody has waited for it yet");
        child.wait().unwrap();
    }
}
