//! The processes of Pods, by the numbers that the machine has for them: a Pod is known by its cgroup.
//!
//! Only looks. Whoever signals one of them does that by itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::Hierarchy;

/// The kubelet's group, and those of its classes of Pods below it (Kubernetes documentation, "Pod quality of service classes").
const KUBEPODS: &str = "kubepods";
const CLASSES: [&str; 3] = ["", "burstable", "besteffort"];
/// What the namespaces of a Pod hang on runs nothing of the Pod.
const PAUSE: &str = "pause";

/// Where the Pods of a node are.
#[derive(Debug, Clone)]
pub struct Pods {
    root: PathBuf,
}

impl Pods {
    /// Those of the node with this group.
    pub(super) fn of(hierarchies: &[Hierarchy], group: &str) -> Self {
        // Any hierarchy of the kubelet's does; the one of version 2 has no Pods beside those of version 1.
        let counts =
            |one: &&Hierarchy| one.controllers.as_ref().is_some_and(|names| names.iter().any(|it| it == "pids"));
        let hierarchy = hierarchies.iter().find(counts).or_else(|| hierarchies.first());
        let root = hierarchy.map(|one| one.path.join(group).join(KUBEPODS)).unwrap_or_default();
        Self { root }
    }

    /// The first processes of a Pod's containers.
    pub fn first_processes(&self, uid: &str) -> Vec<u32> {
        let folders = CLASSES.map(|class| self.root.join(class).join(format!("pod{uid}")));
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

fn processes(group: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Whether its parent is none of the container's.
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
        let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
