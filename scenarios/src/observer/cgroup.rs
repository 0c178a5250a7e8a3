//! The memory cgroup of the subject, of cgroup version 1 or 2.
//!
//! A cgroup that also contains the harness is ignored, because its figures describe neither the subject nor the harness
//! alone.

use std::path::{Path, PathBuf};

use procfs::process::Process as Proc;
use reports::record::Cgroup;

/// Usual mount points of the hierarchy of cgroup version 2.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const MEMORY: &str = "/sys/fs/cgroup/memory";

/// The memory figures of a process's cgroup; `None` if the process shares its cgroup with the harness, or is gone.
pub(super) fn of(pid: i32) -> Option<Cgroup> {
    let (theirs, ours) = (places(pid)?, places(i32::try_from(std::process::id()).ok()?)?);
    theirs.into_iter().filter(|place| !ours.contains(place)).find_map(|(version, folder)| read(version, &folder))
}

/// The cgroup folders that may account for the memory of a process.
fn places(pid: i32) -> Option<Vec<(u8, PathBuf)>> {
    let groups = Proc::new(pid).ok()?.cgroups().ok()?;
    let mut places = Vec::new();
    for group in &groups {
        let below = group.pathname.trim_start_matches('/');
        if group.controllers.iter().any(|controller| controller == "memory") {
            places.push((1, Path::new(MEMORY).join(below)));
        } else if group.hierarchy == 0 {
            places.extend(UNIFIED.map(|mount| (2, Path::new(mount).join(below))));
        }
    }
    Some(places)
}

/// Reads the memory figures in a cgroup folder; `None` if the folder is not of this cgroup version.
fn read(version: u8, folder: &Path) -> Option<Cgroup> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let (current, anon, file, events) = match version {
        2 => ("memory.current", "anon", "file", "memory.events"),
        _ => ("memory.usage_in_bytes", "total_rss", "total_cache", "memory.oom_control"),
    };
    let stat = text("memory.stat")?;
    Some(Cgroup {
        version,
        current_bytes: text(current)?.trim().parse().ok()?,
        anon_bytes: field(&stat, anon)?,
        file_bytes: field(&stat, file)?,
        oom_kills: text(events).and_then(|text| field(&text, "oom_kill")).unwrap_or(0),
    })
}

/// The number after the name `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(word, _)| *word == name).find_map(|(_, number)| number.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    /// The test files of both cgroup versions were recorded from Linux 6.1.
    #[test]
    fn both_versions_are_read() {
        let two = folder(&[
            ("memory.current", "52428800\n"),
            ("memory.stat", "anon 41943040\nfile 8388608\nkernel 2097152\nanon_thp 0\n"),
            ("memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 1\noom_group_kill 0\n"),
        ]);
        let expected =
            Cgroup { version: 2, current_bytes: 50 << 20, anon_bytes: 40 << 20, file_bytes: 8 << 20, oom_kills: 1 };
        assert_eq!(read(2, two.path()), Some(expected));
        let one = folder(&[
            ("memory.usage_in_bytes", "52428800\n"),
            ("memory.stat", "cache 1\nrss 2\ntotal_cache 8388608\ntotal_rss 41943040\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ]);
        assert_eq!(read(1, one.path()), Some(Cgroup { version: 1, oom_kills: 3, ..expected }));
        assert_eq!(read(2, one.path()), None);
    }

    /// A child process in the same cgroup as the harness gives no figures.
    #[test]
    fn a_cgroup_that_is_shared_is_not_told() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = of(child.id().cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, None);
    }

    /// A process in its own cgroup gives figures, if this test may create a cgroup.
    #[test]
    fn a_cgroup_of_its_own_is_told() {
        let made =
            [MEMORY, UNIFIED[0]].map(|mount| Path::new(mount).join(format!("longhaul-test-{}", std::process::id())));
        let Some(folder) = made.into_iter().find(|folder| {
            folder.parent().is_some_and(|mount| mount.join("memory.stat").exists())
                && std::fs::create_dir(folder).is_ok()
        }) else {
            println!("skipped: needs a mounted memory cgroup in which groups may be made");
            return;
        };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let moved = std::fs::write(folder.join("cgroup.procs"), child.id().to_string());
        let found = of(child.id().cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_dir(&folder).unwrap();
        moved.unwrap();
        assert!(found.is_some());
    }
}
