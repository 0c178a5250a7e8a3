//! Lowers the memory and CPU limits of a Pod's containers, in the containers' cgroups.
//!
//! The kubelet does not check the cgroup of a running container, so the lower limits stay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cgroup::{self, Hierarchy};

/// The default period of the kernel's CPU bandwidth controller, in microseconds.
const PERIOD_US: u64 = 100_000;
/// The size of a memory page in bytes on every machine that runs a node.
const PAGE: u64 = 4096;
/// Maximum number of attempts to set a memory limit, each with a higher limit, if the container uses more memory than
/// the kernel can free.
const ATTEMPTS: u64 = 64;

/// The limits of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// The memory limit in bytes.
    pub memory: Option<u64>,
    /// The CPU limit in CPUs.
    pub cpu: Option<f64>,
}

/// A lower limit that was set. Dropping the value restores the earlier limit.
#[derive(Debug)]
pub struct Pressed {
    /// The id of the container.
    pub container: String,
    file: PathBuf,
    before: String,
    /// A description of the change for people.
    pub told: String,
}

impl Drop for Pressed {
    /// Restores the earlier limit. If the container has ended, no limit is restored.
    fn drop(&mut self) {
        // Its group may be removed before the write; no other failure can be repaired here.
        let _ = fs::write(&self.file, &self.before);
    }
}

/// Sets limits for the containers with these first processes, except containers in `known`. Process ids of ended
/// processes are skipped.
pub fn press(pids: &[u32], limits: Limits, known: &[String]) -> io::Result<Vec<Pressed>> {
    let hierarchies = cgroup::hierarchies();
    let mut pressed = Vec::new();
    for pid in pids {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let place = |controller: &str| group(&hierarchies, &groups, controller);
        if let Some((folder, version)) = limits.memory.and_then(|_| place("memory"))
            && let Some(container) = name(&folder).filter(|name| !known.contains(name))
        {
            let file = if version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
            let usage = if version == 1 { "memory.usage_in_bytes" } else { "memory.current" };
            let bytes = limits.memory.unwrap_or_default();
            pressed.extend(memory(&container, &folder.join(file), &folder.join(usage), bytes)?);
        }
        if let Some((folder, version)) = limits.cpu.and_then(|_| place("cpu"))
            && let Some(container) = name(&folder).filter(|name| !known.contains(name))
        {
            let cpu = limits.cpu.unwrap_or_default();
            let (file, text) = quota(cpu, version);
            pressed.extend(set(&container, folder.join(file), &text, format!("{cpu} of a processor"))?);
        }
    }
    Ok(pressed)
}

/// The folder of a process's cgroup in the hierarchy of `controller`, and the cgroup version (cgroups(7),
/// `/proc/pid/cgroup`).
fn group(hierarchies: &[Hierarchy], groups: &str, controller: &str) -> Option<(PathBuf, u8)> {
    let has =
        |one: &&Hierarchy| one.controllers.as_ref().is_some_and(|names| names.iter().any(|name| name == controller));
    let one = hierarchies.iter().find(has).or_else(|| hierarchies.iter().find(|one| one.controllers.is_none()))?;
    let is_its = |names: &str| match &one.controllers {
        Some(_) => names.split(',').any(|name| name == controller),
        None => names.is_empty(),
    };
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        is_its(names).then(|| path.trim_start_matches('/').to_owned())
    })?;
    // The whole machine is never limited.
    (!path.is_empty()).then(|| (one.path.join(path), if one.controllers.is_some() { 1 } else { 2 }))
}

fn name(folder: &Path) -> Option<String> {
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// The name of the cgroup file for a CPU limit, and the file's new contents.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 64 processors, and positive")]
fn quota(cpu: f64, version: u8) -> (&'static str, String) {
    let quota = (cpu * PERIOD_US as f64) as u64;
    if version == 1 { ("cpu.cfs_quota_us", quota.to_string()) } else { ("cpu.max", format!("{quota} {PERIOD_US}")) }
}

fn set(container: &str, file: PathBuf, text: &str, told: String) -> io::Result<Option<Pressed>> {
    let before = match fs::read_to_string(&file) {
        // The container ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        before => before?.trim().to_owned(),
    };
    fs::write(&file, text)?;
    Ok(Some(Pressed { container: container.to_owned(), file, before, told }))
}

/// Sets a memory limit. cgroups version 1 refuses a limit below the memory that cannot be freed (`EBUSY`). If the limit
/// is refused, the lowest limit that the kernel accepts is set, so that the container's next memory page exceeds the
/// limit.
fn memory(container: &str, file: &Path, usage: &Path, bytes: u64) -> io::Result<Option<Pressed>> {
    let before = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        before => before?.trim().to_owned(),
    };
    let pressed = |told: String| Pressed { container: container.to_owned(), file: file.to_owned(), before, told };
    let mut limit = bytes;
    for attempt in 1..=ATTEMPTS {
        match fs::write(file, limit.to_string()) {
            Ok(()) => return Ok(Some(pressed(format!("{} KiB of memory", limit / 1024)))),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let used: u64 = fs::read_to_string(usage)?.trim().parse().unwrap_or(limit);
                limit = used.max(bytes).div_ceil(PAGE) * PAGE + attempt * PAGE;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found_in_both_versions() {
        let hierarchy = |path: &str, names: Option<&[&str]>| Hierarchy {
            path: PathBuf::from(path),
            controllers: names.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        };
        let both = [hierarchy("/c/memory", Some(&["memory"])), hierarchy("/c/unified", None)];
        let groups = "5:cpu,cpuacct:/x/y\n4:memory:/node/kubepods/podu/c1\n0::/node/kubepods/podu/c1\n";
        assert_eq!(group(&both, groups, "memory"), Some((PathBuf::from("/c/memory/node/kubepods/podu/c1"), 1)));
        assert_eq!(group(&both, groups, "cpu"), Some((PathBuf::from("/c/unified/node/kubepods/podu/c1"), 2)));
        assert_eq!(group(&both[1..], "0::/\n", "memory"), None, "nobody limits the whole machine");
    }

    #[test]
    fn limits_are_written_as_each_version_spells_them_and_written_back() {
        assert_eq!(quota(0.1, 1), ("cpu.cfs_quota_us", "10000".to_owned()));
        assert_eq!(quota(1.5, 2), ("cpu.max", "150000 100000".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.max");
        fs::write(&file, "max\n").unwrap();
        let pressed = memory("c", &file, &file, 64 << 20).unwrap().unwrap();
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), pressed.told.as_str()),
            ("67108864", "65536 KiB of memory")
        );
        drop(pressed);
        assert_eq!(fs::read_to_string(&file).unwrap(), "max");
    }
}
