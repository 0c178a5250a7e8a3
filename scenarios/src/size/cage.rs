//! A memory cgroup of version 1 or 2 around one start of the program.
//!
//! Owns the folder of the cgroup and removes it. If no cgroup can be made, the result contains the reason;
//! the measurement goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Usual mount points of cgroup versions 1 and 2, with the file of the memory limit.
const PLACES: [(&str, &str, &str); 3] = [
    ("v2", "/sys/fs/cgroup", "memory.max"),
    ("v2", "/sys/fs/cgroup/unified", "memory.max"),
    ("v1", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];
/// How often the removal of a cgroup is tried; the kernel needs a moment after the last process.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// A cgroup with a memory limit. Dropping it removes the cgroup.
#[derive(Debug)]
pub(crate) struct Cage {
    folder: PathBuf,
    pub(crate) version: &'static str,
}

impl Cage {
    /// Makes a cgroup with this limit. The error says why no cgroup can be made.
    pub(crate) fn make(limit_bytes: u64) -> Result<Self, String> {
        let mut why = "no memory cgroup is mounted".to_owned();
        let name = format!("longhaul-size-{}", std::process::id());
        for (version, mount, file) in PLACES {
            if !Path::new(mount).join("cgroup.procs").exists() {
                continue;
            }
            let folder = Path::new(mount).join(&name);
            if let Err(error) = std::fs::create_dir(&folder) {
                why = format!("a cgroup {version} could not be made in {mount} ({error})");
                continue;
            }
            let cage = Self { folder, version };
            // If this file is missing, the memory controller is off for the children of this mount.
            if !cage.folder.join(file).exists() {
                why = format!("the memory controller of cgroup {version} is not on in {mount}");
                continue;
            }
            if let Err(error) = std::fs::write(cage.folder.join(file), limit_bytes.to_string()) {
                why = format!("the limit of the cgroup could not be set ({error})");
                continue;
            }
            return Ok(cage);
        }
        Err(why)
    }

    /// The file to which a process writes its number to enter the cgroup.
    pub(crate) fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Number of processes that the kernel killed at the limit.
    pub(crate) fn kills(&self) -> u64 {
        let file = if self.version == "v2" { "memory.events" } else { "memory.oom_control" };
        let text = std::fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if std::fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "a destructor cannot wait asynchronously")]
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that needs more than the limit is killed, and the cgroup is removed. Skipped if no cgroup can be made.
    #[test]
    fn a_process_above_the_limit_is_killed() {
        let cage = match Cage::make(8 << 20) {
            Ok(cage) => cage,
            Err(why) => {
                println!("skipped: needs a memory cgroup ({why})");
                return;
            }
        };
        let folder = cage.folder.clone();
        // `tail` keeps its last line in memory, and a line of zeros never ends.
        let script = "echo $$ > \"$0\" && exec tail /dev/zero";
        let status = std::process::Command::new("sh").args(["-c", script]).arg(cage.procs()).status().unwrap();
        assert!(!status.success());
        assert!(cage.kills() >= 1);
        drop(cage);
        assert!(!folder.exists());
    }
}
