//! The memory limit of this process: the smallest limit of its control groups, else the memory of the machine.

use std::path::{Path, PathBuf};

/// The mount point of control groups, on hosts and in containers.
const MOUNT: &str = "/sys/fs/cgroup";

/// The memory that this process may use, in bytes; `None` if it is unknown.
pub(super) fn memory_bytes() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_group = limit(&groups, Path::new(MOUNT));
    let of_machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    of_group.into_iter().chain(of_machine).min()
}

/// The smallest limit of all groups from the group in `groups` (`/proc/self/cgroup`) up to `mount`, for cgroup v1 and
/// v2.
fn limit(groups: &str, mount: &Path) -> Option<usize> {
    let limits = groups.lines().flat_map(|line| {
        let Some((controllers, path)) = line.split_once(':').and_then(|(_, rest)| rest.split_once(':')) else {
            return Vec::new();
        };
        // A container that sees the host's path has its own group at the root of the mount.
        let candidates = |root: PathBuf, file: &'static str| {
            let group = root.join(path.trim_start_matches('/'));
            let way = group.ancestors().take_while(|folder| folder.starts_with(&root)).map(|folder| folder.join(file));
            way.chain([root.join(file)]).collect::<Vec<_>>()
        };
        if controllers.is_empty() {
            candidates(mount.to_owned(), "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            candidates(mount.join("memory"), "memory.limit_in_bytes")
        } else {
            Vec::new()
        }
    });
    // `max` (version 2) is no number, and version 1's value without a limit is more than any machine has.
    limits.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// The total memory of the machine, in bytes, from the text of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok().map(|kib: usize| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, content: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(limit("0::/pod/container\n", root), None, "nothing is mounted");
        put(root, "pod/container/memory.max", "max\n");
        assert_eq!(limit("0::/pod/container\n", root), None, "no limit");
        put(root, "pod/memory.max", "67108864\n");
        put(root, "memory.max", "134217728\n");
        assert_eq!(limit("0::/pod/container\n", root), Some(64 << 20));
        assert_eq!(limit("0::/\n", root), Some(128 << 20), "a namespace of its own");
        assert_eq!(limit("0::/../../seen/from/outside\n", root), Some(128 << 20));
        put(root, "memory/kubepods/memory.limit_in_bytes", "33554432\n");
        put(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("5:cpu,cpuacct:/\n4:memory:/kubepods\n", root), Some(32 << 20));
        assert_eq!(limit("4:cpu:/kubepods\n", root), None);
        assert_eq!(limit("nonsense", root), None);
    }

    #[test]
    fn the_memory_of_the_machine() {
        assert_eq!(total("MemTotal:       24658240 kB\nMemFree: 1 kB\n"), Some(24_658_240 << 10));
        assert_eq!(total(""), None);
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
