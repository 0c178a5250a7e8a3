//! The cgroups of a node: one group in each hierarchy of the machine, which contains all processes of the node.
//!
//! This module makes and removes these groups. cgroups version 1 has a hierarchy for each controller, version 2 has one
//! for all, and some machines have both (cgroups(7)).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The time limit until killed processes have ended and their cgroups are removed.
const GONE_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The prefix of the groups that longhaul makes. Longhaul never removes a group without this prefix.
const PREFIX: &str = "longhaul-";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hierarchy {
    pub(super) path: PathBuf,
    /// The controllers of a version 1 hierarchy; `None` for version 2.
    pub(super) controllers: Option<Vec<String>>,
}

/// The cgroups of one node, one in each hierarchy. Dropping the value removes the groups after their last process has
/// ended.
#[derive(Debug)]
pub(super) struct Groups {
    name: String,
    kept: bool,
}

/// The name of a node's cgroups.
pub(super) fn name(id: &str) -> String {
    format!("{PREFIX}{}", &id[..id.len().min(12)])
}

pub(super) fn hierarchies() -> Vec<Hierarchy> {
    parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// Reads `/proc/pid/mountinfo` (proc(5)): the mount point is the fifth field; type and options follow a single dash.
fn parse(mounts: &str) -> Vec<Hierarchy> {
    let hierarchy = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let path = PathBuf::from(front.split(' ').nth(4)?);
        match kind {
            "cgroup2" => Some(Hierarchy { path, controllers: None }),
            "cgroup" => {
                let names =
                    options.split(',').filter(|word| !matches!(*word, "rw" | "ro" | "clone_children" | "xattr"));
                Some(Hierarchy { path, controllers: Some(names.map(str::to_owned).collect()) })
            }
            _ => None,
        }
    };
    mounts.lines().filter_map(hierarchy).filter(|one| one.path.starts_with("/sys/fs/cgroup")).collect()
}

/// Whether cgroups that longhaul makes would have this controller.
pub(super) fn has(hierarchies: &[Hierarchy], controller: &str) -> bool {
    hierarchies.iter().any(|one| match &one.controllers {
        Some(names) => names.iter().any(|name| name == controller),
        None => words(&one.path.join("cgroup.subtree_control")).iter().any(|name| name == controller),
    })
}

/// A command with which the user enables the controller `controller` for cgroups.
pub(super) fn mend(hierarchies: &[Hierarchy], controller: &str) -> String {
    let unified = hierarchies.iter().find(|one| one.controllers.is_none());
    let has = |path: &Path| words(&path.join("cgroup.controllers")).iter().any(|name| name == controller);
    match unified.filter(|one| has(&one.path)) {
        Some(one) => format!("echo +{controller} >{}", one.path.join("cgroup.subtree_control").display()),
        None => "use a machine whose kernel has it, mounted below /sys/fs/cgroup".to_owned(),
    }
}

/// Makes a node's groups, and opens their files `cgroup.procs`, by which a process joins a group.
pub(super) fn make(hierarchies: &[Hierarchy], name: &str) -> io::Result<(Groups, Vec<File>)> {
    let groups = Groups { name: name.to_owned(), kept: false };
    let mut joins = Vec::new();
    for hierarchy in hierarchies {
        let group = hierarchy.path.join(name);
        fs::create_dir(&group)?;
        // A group of version 1 accepts no process until it has processors.
        for file in ["cpuset.cpus", "cpuset.mems"].into_iter().filter(|_| hierarchy.controllers.is_some()) {
            if let Ok(all) = fs::read_to_string(hierarchy.path.join(file)) {
                fs::write(group.join(file), all)?;
            }
        }
        joins.push(OpenOptions::new().write(true).open(group.join("cgroup.procs"))?);
    }
    Ok((groups, joins))
}

/// Moves the process that waits for the end of the node's first process into a cgroup of its own. cgroups version 2
/// does not allow a group that contains both processes and groups with controllers. The node's first process moves
/// itself into another cgroup.
pub(super) fn part(hierarchies: &[Hierarchy], name: &str, pid: u32) -> io::Result<()> {
    for hierarchy in hierarchies.iter().filter(|one| one.controllers.is_none()) {
        let outer = hierarchy.path.join(name).join("outer");
        fs::create_dir(&outer)?;
        fs::write(outer.join("cgroup.procs"), pid.to_string())?;
    }
    Ok(())
}

/// Waits until the cgroups with this name contain no process, and removes these cgroups. The removal fails if a process
/// still runs after [`GONE_WITHIN`].
pub(super) fn remove(name: &str) -> io::Result<()> {
    if !name.starts_with(PREFIX) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no group of ours"));
    }
    let deadline = Instant::now() + GONE_WITHIN;
    for hierarchy in hierarchies() {
        loop {
            match remove_tree(&hierarchy.path.join(name)) {
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => std::thread::park_timeout(LOOK_EVERY),
                Ok(()) => break,
            }
        }
    }
    Ok(())
}

/// Removes a cgroup and all cgroups below it. The kernel refuses a group that still contains processes.
fn remove_tree(group: &Path) -> io::Result<()> {
    let listing = match fs::read_dir(group) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in listing.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

impl Groups {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Leaves the node's groups in place when the value is dropped.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if !self.kept {
            // Remaining groups are found by `cluster status`.
            let _ = remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_read() {
        let mounts = "31 24 0:27 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n\
            32 31 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw\n\
            33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            34 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            35 31 0:31 / /mnt/else rw - cgroup cgroup rw,memory\n";
        let all = parse(mounts);
        let named = |path: &str, names: Option<&[&str]>| Hierarchy {
            path: PathBuf::from(path),
            controllers: names.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        };
        assert_eq!(
            all,
            [
                named("/sys/fs/cgroup/unified", None),
                named("/sys/fs/cgroup/cpu,cpuacct", Some(&["cpu", "cpuacct"])),
                named("/sys/fs/cgroup/systemd", Some(&["name=systemd"])),
            ]
        );
        assert!(has(&all, "cpuacct") && !has(&all, "memory"));
    }

    #[test]
    fn groups_of_others_are_never_removed() {
        assert!(remove("system.slice").is_err() && remove("").is_err());
        assert!(remove("longhaul-no-such").is_ok(), "there is nothing to do");
    }
}
