//! Finds the processes of a control plane's programs on this machine, so that a caller can end or pause them.
//!
//! The caller sends signals to the processes, and the node's first process starts ended programs again.

use std::fs;

/// The part of a cgroup's path below which the processes of Pods are. A process below this path belongs to a Pod, even
/// if it has the name of a control plane's program.
const KUBEPODS: &str = "/kubepods/";
/// The length to which the kernel cuts a process's name in `comm` (proc(5)).
const COMM_MAX: usize = 15;

/// The processes among which the programs of a control plane are searched.
#[derive(Debug, Clone)]
pub struct Machinery(ProcessSet);

#[derive(Debug, Clone)]
enum ProcessSet {
    /// All processes below a cgroup.
    Group(String),
    /// Only the processes with these program names and process ids.
    Known(Vec<(&'static str, u32)>),
}

impl Machinery {
    /// Searches the programs of a node by the name of the node's cgroup.
    pub fn in_group(group: &str) -> Self {
        Self(ProcessSet::Group(group.to_owned()))
    }

    /// Uses programs whose process ids are known.
    pub fn known(processes: impl IntoIterator<Item = (&'static str, u32)>) -> Self {
        Self(ProcessSet::Known(processes.into_iter().collect()))
    }

    /// The process ids of a program on this machine, by the program's name, such as `etcd`.
    pub fn processes(&self, program: &str) -> Vec<u32> {
        match &self.0 {
            ProcessSet::Known(all) => all.iter().filter(|(name, _)| *name == program).map(|(_, pid)| *pid).collect(),
            ProcessSet::Group(group) => {
                let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
                let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
                let mut found: Vec<u32> = numbers.filter(|pid| is_of(*pid, program, group)).collect();
                found.sort_unstable();
                found
            }
        }
    }
}

fn is_of(pid: u32, program: &str, group: &str) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    if read("comm").trim_end() != program.get(..COMM_MAX).unwrap_or(program) {
        return false;
    }
    let groups = read("cgroup");
    groups.split('\n').any(|line| has(line, group)) && !groups.contains(KUBEPODS)
}

/// Whether a line of `/proc/pid/cgroup` (cgroups(7)) names the cgroup `group`: the path comes after the second colon.
fn has(line: &str, group: &str) -> bool {
    line.splitn(3, ':').nth(2).is_some_and(|path| path.split('/').any(|part| part == group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_of_the_group_that_its_path_names() {
        assert!(has("4:memory:/longhaul-abc/first", "longhaul-abc") && has("0::/longhaul-abc", "longhaul-abc"));
        assert!(!has("4:memory:/longhaul-abcd", "longhaul-abc") && !has("", "longhaul-abc"));
        let known = Machinery::known([("etcd", 7), ("kube-apiserver", 8)]);
        assert_eq!((known.processes("etcd"), known.processes("kubelet")), (vec![7], vec![]));
        assert!(Machinery::in_group("longhaul-none").processes("etcd").is_empty());
    }
}
