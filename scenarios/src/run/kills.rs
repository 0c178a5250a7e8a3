//! The fault that kills the subject's processes.
//!
//! Owns the list of running processes and the hits. The subject's `restart` policy starts killed processes again.

use std::collections::BTreeMap;
use std::time::Instant;

use mock_faults::{Error, Fault, FaultId, Hit, Player, process_of};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Kills {
    epoch: Instant,
    state: Mutex<State>,
    struck: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The first process of each process group of the subject, with its name in the scenario.
    running: Vec<(Option<String>, u32)>,
    hits: BTreeMap<FaultId, u64>,
    fresh: Vec<Hit>,
}

impl Kills {
    /// A state without processes. Times of hits count from `epoch`.
    pub(super) fn new(epoch: Instant) -> Self {
        Self { epoch, state: Mutex::default(), struck: Notify::new() }
    }

    /// Sets the processes that run now.
    pub(super) fn running(&self, processes: Vec<(Option<String>, u32)>) {
        self.state.lock().running = processes;
    }

    /// Returns after the next hit.
    pub(super) async fn struck(&self) {
        self.struck.notified().await;
    }
}

impl Player for Kills {
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let at_us = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        let only = process_of(fault);
        let mut state = self.state.lock();
        let is_meant = |name: &Option<String>| only.is_none() || only == *name;
        let meant = |(name, _): &mut (Option<String>, u32)| is_meant(name);
        // A process that has ended since then is no hit.
        for (name, pid) in state.running.extract_if(.., meant).collect::<Vec<_>>() {
            let which = name.map_or_else(|| format!("process {pid}"), |name| format!("`{name}` (process {pid})"));
            let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
            if group.is_some_and(|group| kill_process_group(group, Signal::KILL).is_ok()) {
                state.fresh.push(Hit { fault: id, at_us, detail: format!("{which} was killed") });
                *state.hits.entry(id).or_default() += 1;
            }
        }
        self.struck.notify_one();
        Ok(())
    }

    fn end(&self, _id: FaultId) {}

    fn hits(&self, id: FaultId) -> u64 {
        self.state.lock().hits.get(&id).copied().unwrap_or(0)
    }

    fn take_hits(&self) -> Vec<Hit> {
        std::mem::take(&mut self.state.lock().fresh)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::Command;

    use mock_faults::Name;

    use super::*;

    #[test]
    fn each_process_is_killed_once() {
        let kills = Kills::new(Instant::now());
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let mut other = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        kills.running(vec![(Some("a".to_owned()), child.id()), (Some("b".to_owned()), other.id())]);
        let fault = Fault::new(Name::ProcessKill, units::Span::from_secs(1)).set("process", "a");
        kills.begin(FaultId(4), &fault).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        kills.begin(FaultId(4), &fault).unwrap();
        assert_eq!((kills.hits(FaultId(4)), kills.take_hits().len()), (1, 1));
        assert!(other.try_wait().unwrap().is_none(), "the other process lives");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
