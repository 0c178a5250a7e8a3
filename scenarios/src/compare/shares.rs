//! Equal shares of the processors for simultaneous runs: each run gets a cgroup, of version 1 or 2, with the same
//! weight.
//!
//! A cgroup contains the harness and the subject of one run, so that the load of another run slows no subject. If no
//! cgroup can be created, the kernel's scheduler divides the processors as usual, and the result says so. The cgroups
//! are removed after the comparison.

use std::path::{Path, PathBuf};

/// Mount point of the cpu controller of cgroup version 1.
const V1: &str = "/sys/fs/cgroup/cpu";
const V2: &str = "/sys/fs/cgroup";

#[derive(Debug)]
pub(super) struct Shares {
    parent: PathBuf,
    all: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub(super) struct Share(PathBuf);

impl Shares {
    /// Creates `count` cgroups with the same weight. If cgroups cannot be created, returns `None` with the reason.
    pub(super) fn of(count: usize) -> (Option<Self>, Vec<String>) {
        let name = format!("longhaul-compare-{}", std::process::id());
        let made = Self::make(&Path::new(V1).join(&name), count, "cpu.shares", "1024")
            .or_else(|_| Self::make(&Path::new(V2).join(&name), count, "cpu.weight", "100"));
        match made {
            Ok(shares) => {
                let note =
                    format!("they ran side by side, each with its harness in a cgroup of the same weight of {count}");
                (Some(shares), vec![note])
            }
            Err(error) => {
                let why =
                    format!("they ran side by side without cgroups ({error}): the scheduler decided their shares");
                (None, vec![why])
            }
        }
    }

    fn make(parent: &Path, count: usize, weight: &str, value: &str) -> std::io::Result<Self> {
        std::fs::create_dir(parent)?;
        let mut shares = Self { parent: parent.to_owned(), all: Vec::new() };
        if weight == "cpu.weight" {
            std::fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        for number in 0..count {
            let group = parent.join(number.to_string());
            std::fs::create_dir(&group)?;
            shares.all.push(group.clone());
            std::fs::write(group.join(weight), value)?;
        }
        Ok(shares)
    }

    pub(super) fn share(&self, at: usize) -> Option<Share> {
        self.all.get(at).cloned().map(Share)
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        // A group is a folder that only `rmdir` removes, and only once no process is in it.
        for group in self.all.iter().chain([&self.parent]) {
            let _ = std::fs::remove_dir(group);
        }
    }
}

impl Share {
    /// Moves a process, and so its later children, into the cgroup.
    pub(super) fn enter(&self, pid: u32) {
        if let Err(error) = std::fs::write(self.0.join("cgroup.procs"), pid.to_string()) {
            crate::out::err!("longhaul: a run has no share of its own: {}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_one_weight_and_are_gone_afterwards() {
        let (shares, notes) = Shares::of(3);
        assert_eq!(notes.len(), 1);
        let Some(shares) = shares else {
            println!("skipped: needs a cgroup for processors that can be written: {}", notes[0]);
            return;
        };
        let weight = |group: &Path| {
            ["cpu.shares", "cpu.weight"].iter().find_map(|name| std::fs::read_to_string(group.join(name)).ok())
        };
        let weights: Vec<Option<String>> = shares.all.iter().map(|group| weight(group)).collect();
        assert!(weights.windows(2).all(|two| two[0].is_some() && two[0] == two[1]), "{weights:?}");
        let parent = shares.parent.clone();
        drop(shares);
        assert!(!parent.exists());
    }
}
