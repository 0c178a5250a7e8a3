//! A subject's process that existed before the run and continues after it.
//!
//! The kernel reuses process IDs, so this module checks that the ID still belongs to the subject's process. The harness
//! never sends a signal to this process.

use std::time::{Duration, Instant};

use procfs::process::Process;

/// A subject that existed before the run. The process of such a subject may be unknown.
#[derive(Debug)]
pub struct Attached {
    process: Option<Known>,
    since: Instant,
}

#[derive(Debug)]
struct Known {
    pid: u32,
    /// Start time of the process in ticks since boot.
    started: u64,
}

impl Attached {
    /// Finds the process of the subject, if the scenario names one. The error says what the user can change.
    pub fn find(pid: Option<u32>) -> Result<Self, String> {
        let process = pid.map(known).transpose()?;
        Ok(Self { process, since: Instant::now() })
    }

    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// If the process has ended: the time since the run found the process.
    pub(super) fn gone(&self) -> Option<Duration> {
        let known = self.process.as_ref()?;
        (started(known.pid) != Some(known.started)).then(|| self.since.elapsed())
    }
}

fn known(pid: u32) -> Result<Known, String> {
    let started = started(pid)
        .ok_or_else(|| format!("`pid: {pid}`: there is no such process; `pgrep -f NAME` prints the number"))?;
    // Without this check it would seem to have no descriptors.
    let may_read = std::fs::read_dir(format!("/proc/{pid}/fd"));
    may_read.map_err(|error| {
        format!("`pid: {pid}`: its descriptors cannot be read ({error}): run longhaul as the user of that process, or leave `pid` out")
    })?;
    Ok(Known { pid, started })
}

/// The start time of a process; `None` if it does not exist or is a zombie.
fn started(pid: u32) -> Option<u64> {
    let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let attached = Attached::find(Some(child.id())).unwrap();
        assert_eq!((attached.pid(), attached.gone()), (Some(child.id()), None));
        child.kill().unwrap();
        // A zombie counts as gone.
        let deadline = Instant::now() + Duration::from_secs(10);
        while attached.gone().is_none() {
            assert!(Instant::now() < deadline, "it was killed");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(attached.gone().is_some());
        let error = Attached::find(Some(child.id())).unwrap_err();
        assert!(error.contains("there is no such process"), "{error}");
        assert!(Attached::find(None).unwrap().gone().is_none());
    }
}
