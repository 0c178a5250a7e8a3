//! Finds the processes of Pods by their ids on the machine. A Pod is recognised by its cgroup.
//!
//! The caller sends signals to the processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::Hierarchy;

/// The name of the kubelet's cgroup. Below this cgroup are groups for classes of Pods (Kubernetes documentation, "Pod
/// quality of service classes").
const KUBEPODS: &str = "kubepods";
const CLASSES: [&str; 3] = ["", "burstable", "besteffort"];
/// The program that holds the namespaces of a Pod. The pause program belongs to no container of the Pod.
const PAUSE: &str = "pause";

/// Maximum number of cgroups that are searched for one Pod. On a machine with more cgroups, the search stops early.
const FOLDERS_MAX: usize = 20_000;
/// Maximum depth of a Pod's cgroup, which is below the cgroups of a container engine, a node's container, the kubelet,
/// and a class of Pods.
const DEPTH_MAX: usize = 12;

/// The cgroups in which the processes of Pods are searched.
#[derive(Debug, Clone)]
pub struct Pods {
    root: PathBuf,
    /// Whether the search starts at the machine's root group, so that Pods may be anywhere below it.
    anywhere: bool,
}

impl Pods {
    /// The Pods of the node with this cgroup.
    pub(super) fn of(hierarchies: &[Hierarchy], group: &str) -> Self {
        let root = Self::hierarchy(hierarchies).map(|one| one.path.join(group).join(KUBEPODS)).unwrap_or_default();
        Self { root, anywhere: false }
    }

    /// The Pods of all nodes on this machine, including nodes in containers. No two Pods have the same uid.
    pub(crate) fn anywhere() -> Self {
        let root = Self::hierarchy(&super::cgroup::hierarchies()).map(|one| one.path.clone()).unwrap_or_default();
        Self { root, anywhere: true }
    }

    /// A hierarchy that the kubelet uses. If the machine has a version 1 hierarchy, its version 2 hierarchy contains no
    /// Pods.
    fn hierarchy(hierarchies: &[Hierarchy]) -> Option<&Hierarchy> {
        let counts =
            |one: &&Hierarchy| one.controllers.as_ref().is_some_and(|names| names.iter().any(|it| it == "pids"));
        hierarchies.iter().find(counts).or_else(|| hierarchies.first())
    }

    /// The process id of the first process of each of a Pod's containers.
    pub fn first_processes(&self, uid: &str) -> Vec<u32> {
        let folders = if self.anywhere {
            search(&self.root, uid)
        } else {
            CLASSES.map(|class| self.root.join(class).join(format!("pod{uid}"))).into()
        };
        let containers = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let mut first = Vec::new();
        for container in containers.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let all = processes(&container.path());
            first.extend(all.iter().copied().filter(|pid| is_first(*pid, &all)));
        }
        first.sort_unstable();
        first
    }
}

/// The folders of a Pod's cgroup: `pod3f1c-…`, or with systemd `kubelet-kubepods-burstable-pod3f1c_….slice`.
fn search(root: &Path, uid: &str) -> Vec<PathBuf> {
    let names = [format!("pod{uid}"), format!("pod{}.slice", uid.replace('-', "_"))];
    let mut folders = vec![(root.to_owned(), 0)];
    let (mut found, mut next) = (Vec::new(), 0);
    while let Some((folder, depth)) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            if names.iter().any(|wanted| name.to_string_lossy().ends_with(wanted.as_str())) {
                found.push(entry.path());
            } else if depth < DEPTH_MAX && folders.len() < FOLDERS_MAX {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

fn processes(group: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Whether the parent of a process is not among the container's processes `all`.
fn is_first(pid: u32, all: &BTreeSet<u32>) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let Some(name) = read("comm") else { return false };
    let parent = read("status").and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse::<u32>().ok()
    });
    name.trim() != PAUSE && parent.is_some_and(|parent| !all.contains(&parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_of_each_container_is_found_and_the_pause_is_none() {
        if !cfg!(target_os = "linux") {
            println!("skipped: needs Linux");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let hierarchy = Hierarchy { path: root.path().to_owned(), controllers: Some(vec!["pids".to_owned()]) };
        let pods = Pods::of(&[hierarchy], "longhaul-x");
        let container = root.path().join("longhaul-x/kubepods/burstable/poda-b/c");
        fs::create_dir_all(&container).unwrap();
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = String::new();
        let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut child).unwrap();
        fs::write(container.join("cgroup.procs"), format!("{}\n{child}4194999\n", shell.id())).unwrap();
        assert_eq!(pods.first_processes("a-b"), [shell.id()]);
        assert!(pods.first_processes("c").is_empty());
        let anywhere = Pods { root: root.path().to_owned(), anywhere: true };
        assert_eq!(anywhere.first_processes("a-b"), [shell.id()]);
        // With systemd's names of groups.
        let scope =
            "docker/x/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podd_e.slice/cri-containerd-x.scope";
        fs::create_dir_all(root.path().join(scope)).unwrap();
        fs::write(root.path().join(scope).join("cgroup.procs"), format!("{}\n", shell.id())).unwrap();
        assert_eq!(anywhere.first_processes("d-e"), [shell.id()]);
        let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
