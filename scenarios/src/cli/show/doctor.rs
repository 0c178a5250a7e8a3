//! `longhaul show doctor`: the programs on this machine, and the runs and tests that a missing program prevents.
//!
//! Owns the table of required programs. Starts each program only with `--version`, and changes nothing on the machine.

use std::path::{Path, PathBuf};

use crate::out::out;

/// Minimum limit of file descriptors. A thousand connections with both ends in one process use fewer descriptors.
const DESCRIPTORS_LEAST: u64 = 4096;
const CORES_LEAST: u32 = 2;
const MEMORY_LEAST_BYTES: u64 = 2 << 30;

/// A required program or file.
struct Need {
    name: &'static str,
    look: Look,
    /// The features that need the program.
    purpose: &'static str,
    /// How to install the program.
    remedy: &'static str,
}

/// How to find a program.
enum Look {
    Program(&'static str),
    Beside(&'static str),
    /// Finds these files in the folder that an environment variable names.
    In(&'static str, &'static [&'static str]),
}

use Look::{Beside, In, Program};

const NEEDS: &[Need] = &[
    need(
        "longhaul-service",
        Beside("longhaul-service"),
        "scenarios with `subject: {service: {}}`",
        "cargo build -p service --features full",
    ),
    need(
        "longhaul-service-planted",
        Beside("longhaul-service-planted"),
        "`soak --plant`, `cargo xtask calibrate`",
        "cargo xtask soak --plant NAME",
    ),
    need(
        "etcd and kube-apiserver",
        In("KUBEBUILDER_ASSETS", &["etcd", "kube-apiserver"]),
        "`--control-plane local`, `longhaul cluster`, comparisons with the mock",
        "longhaul cluster fetch, then set KUBEBUILDER_ASSETS",
    ),
    need("node", Program("node"), "JavaScript clients in `cargo xtask matrix`", "https://nodejs.org, 20 or newer"),
    need("python3", Program("python3"), "Python clients in `cargo xtask matrix`, examples", "apt-get install python3"),
    need(
        "kubectl",
        Program("kubectl"),
        "inspecting a mock or a cluster, tests",
        "https://kubernetes.io/docs/tasks/tools/",
    ),
    need("nft", Program("nft"), "packet faults in an own network namespace (with root)", "apt-get install nftables"),
    need("ip", Program("ip"), "the same", "apt-get install iproute2"),
    need("valgrind", Program("valgrind"), "`cargo xtask bench instructions`", "apt-get install valgrind"),
    need(
        "docker-registry",
        Program("docker-registry"),
        "comparing the mock registry with a real one",
        "apt-get install docker-registry",
    ),
    need("skopeo", Program("skopeo"), "the same, as a client", "apt-get install skopeo"),
    need("promtool", Program("promtool"), "checking the service's metrics", "apt-get install prometheus"),
    need("go", Program("go"), "clients and peers that are written in Go", "https://go.dev/dl/"),
];

const fn need(name: &'static str, look: Look, purpose: &'static str, remedy: &'static str) -> Need {
    Need { name, look, purpose, remedy }
}

impl Look {
    fn find(&self) -> Option<PathBuf> {
        match self {
            Program(name) => installer::on_path(name),
            Beside(name) => crate::subject::sibling(name).ok(),
            In(variable, files) => {
                let folder = PathBuf::from(std::env::var_os(variable).filter(|value| !value.is_empty())?);
                files.iter().all(|file| folder.join(file).is_file()).then_some(folder)
            }
        }
    }
}

/// Prints which programs were found. A missing program is no error; the text names the features that need the program.
pub(super) fn doctor() {
    let machine = crate::machine::machine();
    out!(
        "machine   {} processors, {}, Linux {}",
        machine.cores,
        reports::words::bytes(machine.memory_bytes),
        machine.kernel
    );
    for text in doubts(machine.cores, machine.memory_bytes, descriptors(), pressure()) {
        out!("doubt     {text}");
    }
    let found: Vec<(&Need, Option<PathBuf>)> = NEEDS.iter().map(|need| (need, need.look.find())).collect();
    let width = NEEDS.iter().map(|need| need.name.len()).max().unwrap_or(0);
    for (need, path) in &found {
        out!("{}", line(need, path.as_deref(), width));
    }
    let missing = found.iter().filter(|(_, path)| path.is_none()).count();
    out!(
        "{}",
        match missing {
            0 => "nothing is missing".to_owned(),
            some => format!("{some} of {} are missing; commands that do not need them work", found.len()),
        }
    );
}

fn line(need: &Need, path: Option<&Path>, width: usize) -> String {
    let Need { name, purpose, remedy, .. } = need;
    match path {
        Some(path) => format!("found     {name:width$}  {}", path.display()),
        None => format!("missing   {name:width$}  for {purpose}; {remedy}"),
    }
}

/// Properties of the machine that may spoil a measurement.
fn doubts(cores: u32, memory_bytes: u64, descriptors: Option<u64>, pressure: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if cores < CORES_LEAST {
        doubts.push(format!(
            "{cores} processor for harness and subject together: latencies include the time that they wait for each other"
        ));
    }
    if memory_bytes < MEMORY_LEAST_BYTES {
        doubts.push(format!("{} of memory: a soak takes up to 1 GiB for itself", reports::words::bytes(memory_bytes)));
    }
    if let Some(descriptors) = descriptors.filter(|most| *most < DESCRIPTORS_LEAST) {
        doubts.push(format!(
            "{descriptors} open files at most: loads with many connections need more (`ulimit -n {DESCRIPTORS_LEAST}`)"
        ));
    }
    if !pressure {
        doubts.push("the kernel reports no pressure (/proc/pressure): a busy machine is not recognised".to_owned());
    }
    doubts
}

/// The limit of open files, after this process raised the limit as a run does.
fn descriptors() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

fn pressure() -> bool {
    Path::new("/proc/pressure/cpu").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_use_and_its_remedy() {
        let need = need("nft", Program("no-such-program"), "packet faults", "apt-get install nftables");
        assert_eq!(need.look.find(), None);
        assert_eq!(line(&need, None, 5), "missing   nft    for packet faults; apt-get install nftables");
        assert_eq!(line(&need, Some(Path::new("/sbin/nft")), 5), "found     nft    /sbin/nft");
        assert!(Program("sh").find().is_some());
    }

    #[test]
    fn a_small_machine_is_doubted() {
        assert_eq!(doubts(2, 4 << 30, Some(1 << 20), true), Vec::<String>::new());
        assert_eq!(doubts(1, 1 << 30, Some(1024), false).len(), 4);
    }
}
