//! The first process of a node, in the node's namespaces: makes mounts and the network, and starts the programs. A
//! program that ends is started again.
//!
//! The first process reads its instructions from two files: one is written before the process starts, the other when
//! the node has its address. All processes of the node are descendants of the first process, so the kernel ends them
//! with it.

use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Pid, WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::NAME;
use super::cgroup::Hierarchy;

/// The name of the file with mounts and cgroups, which is written before this process starts.
pub(super) const GROUND: &str = "ground.json";
/// The name of the file with this process's id on the machine.
pub(super) const PID: &str = "pid";
/// The name of the file with network and programs, which is written when the node has an address.
pub(super) const PLAN: &str = "plan.json";
/// The name of a file that exists when the API server and containerd answer.
pub(super) const READY: &str = "control-plane-is-ready";
/// The folder that the node sees as `/var`.
pub(super) const VAR: &str = "var";

/// The pause between the end of a node's program and its next start, as in Kubernetes' systemd units.
const RESTART_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time limit of waiting for the file `plan.json`. The parent process writes this file within two seconds, or has
/// ended.
const PLAN_WITHIN: Duration = Duration::from_mins(1);
/// Settings of the whole machine that the kubelet insists on writing. The node gets files of its own in place of these
/// settings.
const SETTINGS: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// The data with which the first process makes mounts and cgroups.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ground {
    /// The name of the node's cgroups.
    pub(super) group: String,
    pub(super) hierarchies: Vec<Hierarchy>,
}

/// Network and programs that the first process starts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The path of the program `ip` (package iproute2).
    pub(super) ip: PathBuf,
    /// The arguments of each call of `ip`, in the order of the calls.
    pub(super) network: Vec<Vec<String>>,
    /// The environment variable PATH of the programs.
    pub(super) path: String,
    /// The folder of the programs' logs.
    pub(super) logs: PathBuf,
    pub(super) components: Vec<Component>,
}

/// A program of the node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Whether the program starts only after the API server and containerd answer.
    pub(super) late: bool,
}

/// Runs the first process of a node and never returns while the node lives. `directory` is the node's folder.
pub fn first_process(directory: &Path) -> io::Result<Infallible> {
    // `/proc` is still the machine's, so this is the process id on the machine.
    let pid = fs::read_link("/proc/self")?;
    let ground: Ground = read(&directory.join(GROUND))?;
    mounts(directory, &ground).map_err(|error| io::Error::other(format!("mounts: {error}")))?;
    rustix::system::sethostname(NAME.as_bytes())?;
    write(&directory.join(PID), pid.as_os_str().as_encoded_bytes())?;
    let deadline = Instant::now() + PLAN_WITHIN;
    let path = directory.join(PLAN);
    while !path.exists() {
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no instructions arrived"));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    let plan: Plan = read(&path)?;
    for hierarchy in ground.hierarchies.iter().filter(|one| one.controllers.is_none()) {
        unified(&hierarchy.path)?;
    }
    network(&plan)?;
    supervise(&plan, &directory.join(READY))
}

/// Makes all mounts of the node. The mounts are in the node's namespace and end with it.
fn mounts(directory: &Path, ground: &Ground) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)?;
    mount_bind(directory.join(VAR), "/var")?;
    mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")?;
    fs::create_dir("/run/lock")?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
    for hierarchy in &ground.hierarchies {
        mount_bind(hierarchy.path.join(&ground.group), &hierarchy.path)?;
    }
    let own = directory.join("settings");
    fs::create_dir_all(&own)?;
    for setting in SETTINGS {
        let (path, instead) = (Path::new("/proc/sys").join(setting), own.join(setting.replace('/', ".")));
        let Ok(value) = fs::read(&path) else { continue };
        fs::write(&instead, value)?;
        mount_bind(&instead, &path)?;
    }
    Ok(())
}

/// Moves this process into a child group of a cgroup v2 hierarchy, so that the kubelet's sibling groups can have all
/// controllers.
fn unified(path: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(path.join("cgroup.controllers"))?;
    let enable: Vec<String> = controllers.split_whitespace().map(|name| format!("+{name}")).collect();
    if enable.is_empty() {
        return Ok(());
    }
    let first = path.join("first");
    fs::create_dir(&first)?;
    fs::write(first.join("cgroup.procs"), "0")?;
    fs::write(path.join("cgroup.subtree_control"), enable.join(" "))
}

fn network(plan: &Plan) -> io::Result<()> {
    for arguments in &plan.network {
        let done = Command::new(&plan.ip).args(arguments).status()?;
        if !done.success() {
            return Err(io::Error::other(format!("ip {}: {done}", arguments.join(" "))));
        }
    }
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "1")
}

/// A program of the node, and its current process.
struct Running<'a> {
    component: &'a Component,
    pid: Option<u32>,
    /// The earliest time of the program's next start.
    due: Instant,
}

/// Starts programs, reaps ended processes, and starts ended programs again.
fn supervise(plan: &Plan, ready: &Path) -> io::Result<Infallible> {
    let now = Instant::now();
    let mut all: Vec<Running<'_>> =
        plan.components.iter().map(|component| Running { component, pid: None, due: now }).collect();
    let mut is_ready = false;
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            ended(&mut all, pid, &format!("{status:?}"));
        }
        is_ready = is_ready || ready.exists();
        let now = Instant::now();
        for one in all.iter_mut().filter(|one| one.pid.is_none() && one.due <= now) {
            if one.component.late && !is_ready {
                continue;
            }
            one.pid = start(plan, one.component).map_err(|error| eprintln!("{}: {error}", one.component.name)).ok();
            one.due = now + RESTART_AFTER;
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

fn ended(all: &mut [Running<'_>], pid: Pid, status: &str) {
    let number = u32::try_from(pid.as_raw_nonzero().get()).ok();
    if let Some(one) = all.iter_mut().find(|one| one.pid.is_some() && one.pid == number) {
        eprintln!("{} ended ({status}); it is started again", one.component.name);
        one.pid = None;
        one.due = Instant::now() + RESTART_AFTER;
    }
}

/// Starts a program and returns its process id. Only [`supervise`] waits for the end of the started process.
fn start(plan: &Plan, component: &Component) -> io::Result<u32> {
    let log = plan.logs.join(format!("{}.log", component.name));
    let output = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(&component.program);
    command.args(&component.arguments).env_clear().env("PATH", &plan.path).env("HOME", "/root");
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    Ok(command.spawn()?.id())
}

/// Makes the folder that the node sees as `/var`.
pub(super) fn make_var(directory: &Path) -> io::Result<()> {
    for folder in ["lib", "log", "tmp"] {
        fs::create_dir_all(directory.join(VAR).join(folder))?;
    }
    symlink("/run", directory.join(VAR).join("run"))
}

/// Writes a file in one step, so that readers see the whole file or none.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    fs::write(&fresh, bytes)?;
    fs::rename(&fresh, path)
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
