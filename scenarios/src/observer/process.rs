//! Resource usage of a process tree, from `/proc`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use procfs::process::{FDTarget, Process as Proc};
use reports::record::{Fds, Process};

/// Maximum number of the subject's processes sampled. Processes above this number are left out.
const PROCESSES_MAX: usize = 512;

/// Total usage of these processes, and the time for reading `smaps_rollup`. `None` if all processes are gone.
pub(super) fn tree(pids: &[i32], with_rollup: bool, starts: u32) -> Option<(Process, Duration)> {
    let mut total = Process { starts, ..Process::default() };
    let mut pss = with_rollup.then_some(0u64);
    let (mut seen, mut took) = (0, Duration::ZERO);
    for pid in pids {
        // A process that ends while it is read does not count.
        if let Some((one, cost)) = one(*pid, with_rollup) {
            seen += 1;
            took += cost;
            add(&mut total, &one);
            pss = pss.zip(one.pss_bytes).map(|(sum, part)| sum + part);
        }
    }
    total.pss_bytes = pss;
    (seen > 0).then_some((total, took))
}

/// Usage of the harness itself, without its child processes, which are the subject.
pub(super) fn own() -> Option<Process> {
    let me = i32::try_from(std::process::id()).ok()?;
    one(me, false).map(|(process, _)| process)
}

fn add(total: &mut Process, one: &Process) {
    total.processes += one.processes;
    total.rss_bytes += one.rss_bytes;
    total.anon_bytes += one.anon_bytes;
    total.cpu_ms += one.cpu_ms;
    total.threads += one.threads;
    total.fds.socket += one.fds.socket;
    total.fds.file += one.fds.file;
    total.fds.pipe += one.fds.pipe;
    total.fds.other += one.fds.other;
}

/// The processes `roots` and all their descendants, each once, parents first.
pub(super) fn descendants(roots: &[i32]) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat() {
            children.entry(stat.ppid).or_default().push(stat.pid);
        }
    }
    let mut found = roots.to_vec();
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        let below = children.remove(&found[next]).unwrap_or_default();
        found.extend(below.into_iter().filter(|pid| !roots.contains(pid)));
        next += 1;
    }
    found
}

fn one(pid: i32, with_rollup: bool) -> Option<(Process, Duration)> {
    let process = Proc::new(pid).ok()?;
    let stat = process.stat().ok()?;
    let status = process.status().ok()?;
    let rss_bytes = status.vmrss.unwrap_or(0) * 1024;
    let ticks = procfs::ticks_per_second().max(1);
    let began = Instant::now();
    let pss_bytes = with_rollup.then(|| pss(&process)).flatten();
    let took = began.elapsed();
    let used = Process {
        processes: 1,
        rss_bytes,
        pss_bytes,
        anon_bytes: status.rssanon.unwrap_or(0) * 1024,
        cpu_ms: (stat.utime + stat.stime) * 1000 / ticks,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        fds: fds(&process),
        starts: 1,
        told: false,
    };
    Some((used, took))
}

fn pss(process: &Proc) -> Option<u64> {
    let rollup = process.smaps_rollup().ok()?;
    let mapping = rollup.memory_map_rollup.0.first()?;
    mapping.extension.map.get("Pss").copied()
}

fn fds(process: &Proc) -> Fds {
    let mut fds = Fds::default();
    for fd in process.fd().into_iter().flatten().flatten() {
        match fd.target {
            FDTarget::Socket(_) => fds.socket += 1,
            FDTarget::Path(_) => fds.file += 1,
            FDTarget::Pipe(_) => fds.pipe += 1,
            _ => fds.other += 1,
        }
    }
    fds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_with_its_descriptors() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = own().unwrap();
        let more: Vec<_> = (0..20).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let after = own().unwrap();
        assert!(before.rss_bytes > 100_000, "{before:?}");
        assert!(after.fds.socket >= before.fds.socket + 15, "{before:?} {after:?}");
        drop((socket, more));
    }

    #[test]
    fn children_belong_to_the_tree() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, child_id) = (std::process::id().cast_signed(), child.id().cast_signed());
        let below = descendants(&[own]);
        // Only these two processes count: other tests of this process start and end children meanwhile.
        let (tree, _) = tree(&[own, child_id], true, 1).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(below.contains(&child_id), "{below:?}");
        assert_eq!(tree.processes, 2, "{tree:?}");
        assert!(tree.pss_bytes.is_some());
    }

    #[test]
    fn a_process_that_is_gone_is_none() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(tree(&descendants(&[pid.cast_signed()]), false, 1).is_none());
    }
}
