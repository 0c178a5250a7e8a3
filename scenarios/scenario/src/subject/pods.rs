//! Keeps the state of a subject in Pods: process IDs, and containers that have ended. Another task follows the Pods and
//! reports this state.
//!
//! This module keeps the reports about Pods until the run reads them. This module never polls a cluster itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use record::Process;

use super::tail::Tail;

/// Maximum number of crashes that are kept until the run reads them. If more crashes occur, only the newest are kept.
const CRASHES_MAX: usize = 1024;

/// The reports about the Pods. Clones of this value share the same state.
#[derive(Debug, Clone, Default)]
pub struct Pods(Arc<Mutex<PodState>>);

#[derive(Debug, Default)]
struct PodState {
    /// Process IDs, on this machine, of the first process of each container.
    pids: Vec<u32>,
    /// Whether the process IDs have changed since the run last read them.
    changed: bool,
    crashes: VecDeque<Crash>,
    /// Containers that the run itself is about to kill, each with the number of kills.
    killed: BTreeMap<String, u64>,
    /// Whether a process has disappeared since the run last read this field.
    died: bool,
    /// CPU and memory that kubelets have reported since the run last read this field.
    used: Option<Process>,
    /// The reason why the Pods can no longer be followed.
    blind: Option<String>,
    tail: Arc<Mutex<Tail>>,
}

/// The end of a container that the run did not kill, and that was restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// Pod and container, as `pod/container`.
    pub container: String,
    /// The kubelet's reason and the exit code: `OOMKilled, exit code 137`.
    pub status: String,
    /// How long the container had run.
    pub ran: Duration,
    /// Number of restarts of the container so far.
    pub restarts: u64,
}

impl Pods {
    /// Reports the process IDs of the running containers' first processes.
    pub fn are(&self, pids: Vec<u32>) {
        let mut seen = self.0.lock();
        if seen.pids != pids {
            (seen.pids, seen.changed) = (pids, true);
        }
    }

    /// Reports CPU and memory as kubelets measure them.
    pub fn use_now(&self, used: Process) {
        self.0.lock().used = Some(used);
    }

    /// The CPU and memory reported since the last call.
    pub fn take_used(&self) -> Option<Process> {
        self.0.lock().used.take()
    }

    /// Announces that the run is about to kill this container, `pod/container`, so that its end does not count as a
    /// crash.
    pub fn will_be_killed(&self, container: String) {
        *self.0.lock().killed.entry(container).or_default() += 1;
    }

    /// Reports that a process disappeared, with its unsent observations.
    pub fn died(&self) {
        self.0.lock().died = true;
    }

    /// Whether a process has disappeared since the last call.
    pub fn take_died(&self) -> bool {
        std::mem::take(&mut self.0.lock().died)
    }

    pub fn crashed(&self, crash: Crash) {
        let mut seen = self.0.lock();
        if let Some(left) = seen.killed.get_mut(&crash.container).filter(|left| **left > 0) {
            *left -= 1;
            return;
        }
        seen.died = true;
        if seen.crashes.len() == CRASHES_MAX {
            seen.crashes.pop_front();
        }
        seen.crashes.push_back(crash);
    }

    /// Reports that the Pods can no longer be followed, and why.
    pub fn blind(&self, why: String) {
        self.0.lock().blind.get_or_insert(why);
    }

    pub(super) fn tail(&self) -> Arc<Mutex<Tail>> {
        Arc::clone(&self.0.lock().tail)
    }

    pub fn pids(&self) -> Vec<u32> {
        self.0.lock().pids.clone()
    }

    /// The process IDs, if they have changed since the last call.
    pub fn take_changed(&self) -> Option<Vec<u32>> {
        let mut seen = self.0.lock();
        std::mem::take(&mut seen.changed).then(|| seen.pids.clone())
    }

    pub fn take_crashes(&self) -> Vec<Crash> {
        self.0.lock().crashes.drain(..).collect()
    }

    /// The reason why the Pods can no longer be followed; `None` if they can.
    pub fn is_blind(&self) -> Option<String> {
        self.0.lock().blind.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_once() {
        let pods = Pods::default();
        assert_eq!(pods.take_changed(), None);
        pods.are(vec![1, 2]);
        assert_eq!((pods.take_changed(), pods.take_changed()), (Some(vec![1, 2]), None));
        pods.are(vec![1, 2]);
        assert_eq!(pods.take_changed(), None, "they are the same");
        let crash =
            |restarts| Crash { container: "a/b".to_owned(), status: "Error".to_owned(), ran: Duration::ZERO, restarts };
        (0..2000).for_each(|number| pods.crashed(crash(number)));
        let all = pods.take_crashes();
        assert_eq!((all.len(), all.last()), (CRASHES_MAX, Some(&crash(1999))));
        assert!(pods.take_crashes().is_empty());
        pods.will_be_killed("a/b".to_owned());
        (1..3).for_each(|number| pods.crashed(crash(number)));
        assert_eq!(pods.take_crashes(), [crash(2)], "the first end was the run's own doing");
        assert_eq!((pods.take_died(), pods.take_died()), (true, false));
    }
}
