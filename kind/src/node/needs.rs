//! The requirements of a node on the machine. All requirements are checked before anything starts.
//!
//! This module changes nothing on the machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::cgroup;
use crate::MissingProgram;

/// etcd and the programs of Kubernetes, which must be in the folder `assets`.
const KUBERNETES: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"];
/// Programs that must be on the PATH, each with its package in Debian, Ubuntu and Fedora.
const PROGRAMS: [(&str, &str); 8] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("ip", "iproute2"),
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
];
/// The folders with CNI plugins: the CNI project's default, and the folders of distributions.
const CNI_FOLDERS: [&str; 3] = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
const CNI_PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];
/// Folders with programs for root, which not every user has on the PATH.
const ROOTS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Folders that the node replaces by its own, so that the node cannot see the machine's files there.
const COVERED: [&str; 2] = ["/var", "/run"];
/// The cgroup controllers that the kubelet needs.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// A requirement that the machine does not meet, with advice.
struct Need {
    what: String,
    mend: String,
}

/// The paths of the required programs.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) assets: PathBuf,
    pub(super) tools: Tools,
    pub(super) cni: PathBuf,
    /// The environment variable PATH for the node's programs.
    pub(super) path: String,
    pub(super) hierarchies: Vec<cgroup::Hierarchy>,
}

/// The required programs that are on the machine's PATH.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) unshare: PathBuf,
    pub(super) nsenter: PathBuf,
    pub(super) ip: PathBuf,
    pub(super) containerd: PathBuf,
    pub(super) ctr: PathBuf,
    pub(super) iptables: PathBuf,
}

/// Finds only programs on the machine's PATH, for a node that already runs.
pub(super) fn tools() -> Result<Tools, MissingProgram> {
    let (tools, missing) = tools_in(&places(std::env::var_os("PATH").as_deref()));
    if missing.is_empty() { Ok(tools) } else { Err(lacks(&missing)) }
}

fn tools_in(places: &[PathBuf]) -> (Tools, Vec<Need>) {
    let program = |name: &str| places.iter().map(|place| place.join(name)).find(|path| path.is_file());
    let absent = PROGRAMS.iter().filter(|(name, _)| program(name).is_none());
    let need =
        |(name, package): &(&str, &str)| Need { what: (*name).to_owned(), mend: format!("apt-get install {package}") };
    let found = |name: &str| program(name).unwrap_or_default();
    let tools = Tools {
        unshare: found("unshare"),
        nsenter: found("nsenter"),
        ip: found("ip"),
        containerd: found("containerd"),
        ctr: found("ctr"),
        iptables: found("iptables"),
    };
    (tools, absent.map(need).collect())
}

/// Checks all requirements and finds the programs.
pub(super) fn look(assets: &Path, directory: &Path) -> Result<Found, MissingProgram> {
    let mut missing = Vec::new();
    let mut need = |what: String, mend: &str| missing.push(Need { what, mend: mend.to_owned() });
    if cfg!(not(target_os = "linux")) {
        need("Linux".to_owned(), "use `--kind local`, or a machine with Linux");
    }
    if !rustix::process::geteuid().is_root() {
        need("root (namespaces, mounts and cgroups of its own)".to_owned(), "run it with `sudo -E`");
    }
    if super::image::pause_program().is_none() {
        need(format!("a pause program for {}", std::env::consts::ARCH), "use a machine with x86_64");
    }
    let absent: Vec<&str> = KUBERNETES.into_iter().filter(|program| !assets.join(program).is_file()).collect();
    if !absent.is_empty() {
        let what = format!("{} in {}", absent.join(", "), assets.display());
        need(what, "put the programs of a Kubernetes release there (its server archive has them; etcd is apart)");
    }
    let places = places(std::env::var_os("PATH").as_deref());
    let (tools, absent) = tools_in(&places);
    for one in absent {
        need(one.what, &one.mend);
    }
    let has_all = |folder: &&&str| CNI_PLUGINS.iter().all(|plugin| Path::new(folder).join(plugin).is_file());
    let cni = CNI_FOLDERS.iter().find(has_all);
    if cni.is_none() {
        let what = format!("CNI's {} in {}", CNI_PLUGINS.join(", "), CNI_FOLDERS.join(" or "));
        need(what, "apt-get install containernetworking-plugins");
    }
    let hierarchies = cgroup::hierarchies();
    for controller in CONTROLLERS.iter().filter(|name| !cgroup::has(&hierarchies, name)) {
        need(format!("the cgroup controller {controller} (v1 or v2)"), &cgroup::mend(&hierarchies, controller));
    }
    if cfg!(target_os = "linux") && !Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists() {
        need("the kernel's br_netfilter".to_owned(), "modprobe br_netfilter");
    }
    for path in [assets, directory] {
        if COVERED.iter().any(|covered| path.starts_with(covered)) {
            let what = format!("another place than {}: the node has its own /var and /run", path.display());
            need(what, "set TMPDIR, XDG_STATE_HOME or KUBEBUILDER_ASSETS to a folder elsewhere");
        }
    }
    if !missing.is_empty() {
        return Err(lacks(&missing));
    }
    let path = std::iter::once(assets.to_owned()).chain(places.iter().cloned());
    Ok(Found {
        assets: assets.to_owned(),
        tools,
        cni: PathBuf::from(cni.copied().unwrap_or_default()),
        path: path.map(|place| place.display().to_string()).collect::<Vec<_>>().join(":"),
        hierarchies,
    })
}

/// The folders in which programs are searched; folders with programs for root come last.
fn places(path: Option<&OsStr>) -> Vec<PathBuf> {
    let told = path.map(|path| std::env::split_paths(path).filter(|place| place.is_absolute()).collect::<Vec<_>>());
    let mut places = told.unwrap_or_default();
    for root in ROOTS.map(PathBuf::from) {
        if !places.contains(&root) {
            places.push(root);
        }
    }
    places
}

/// The error about `needs`, one a line.
fn lacks(needs: &[Need]) -> MissingProgram {
    let lines = needs.iter().map(|Need { what, mend }| format!("\n  {what}: {mend}"));
    MissingProgram::new(lines.fold("a node needs what this machine lacks".to_owned(), |text, line| text + &line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_said_at_once_with_what_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("etcd"), "").unwrap();
        let missing = look(folder.path(), Path::new("/var/lib/x")).unwrap_err().to_string();
        assert!(missing.starts_with("a node needs what this machine lacks\n"), "{missing}");
        let wanted = "  kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet in ";
        assert!(missing.lines().any(|line| line.starts_with(wanted)), "{missing}");
        assert!(
            missing.contains("  another place than /var/lib/x: the node has its own /var and /run: set "),
            "{missing}"
        );
    }

    #[test]
    fn programs_of_root_are_found_although_they_are_not_on_the_path() {
        let all = places(Some(OsStr::new("/usr/bin:relative:/usr/sbin")));
        assert_eq!(all, ["/usr/bin", "/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    }
}
