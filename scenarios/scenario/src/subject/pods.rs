//! A subject in Pods, as whoever follows them sees it: processes that come and go, containers that ended.
//!
//! Owns what was seen and is not told yet. It must not look by itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use record::Process;

use super::tail::Tail;

/// Ended containers that wait to be told; whoever has more loops so fast that the newest say enough.
const CRASHES_MAX: usize = 1024;

/// What is seen of it. Clones see the same.
#[derive(Debug, Clone, Default)]
pub struct Pods(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// First processes of all containers, as the machine numbers them.
    pids: Vec<u32>,
    /// They are others than when they were asked for last.
    changed: bool,
    crashes: VecDeque<Crash>,
    /// Containers that the run itself is about to kill, and how often.
    killed: BTreeMap<String, u64>,
    /// A process ended without a word since that was asked for last.
    died: bool,
    /// What kubelets told of them since that was asked for last.
    used: Option<Process>,
    /// Why nothing can be seen any more.
    blind: Option<String>,
    tail: Arc<Mutex<Tail>>,
}

/// A container that ended and was started again, though nobody of the run killed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// `pod/container`.
    pub container: String,
    /// Why it ended, as the kubelet says: `OOMKilled, exit code 137`.
    pub status: String,
    /// For how long it had run.
    pub ran: Duration,
    /// How often it was started again by now.
    pub restarts: u64,
}

impl Pods {
    /// These processes are there now.
    pub fn are(&self, pids: Vec<u32>) {
        let mut seen = self.0.lock();
        if seen.pids != pids {
            (seen.pids, seen.changed) = (pids, true);
        }
    }

    /// Kubelets told that they use this.
    pub fn use_now(&self, used: Process) {
        self.0.lock().used = Some(used);
    }

    /// What they told since the last call.
    pub fn take_used(&self) -> Option<Process> {
        self.0.lock().used.take()
    }

    /// The run is about to kill this container, `pod/container`: its end is no crash.
    pub fn will_be_killed(&self, container: String) {
        *self.0.lock().killed.entry(container).or_default() += 1;
    }

    /// A process ended without a word: what it was about to tell nobody will tell.
    pub fn died(&self) {
        self.0.lock().died = true;
    }

    /// Whether one did since the last call.
    pub fn take_died(&self) -> bool {
        std::mem::take(&mut self.0.lock().died)
    }

    /// A container ended.
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

    /// Nobody looks any more.
    pub fn blind(&self, why: String) {
        self.0.lock().blind.get_or_insert(why);
    }

    /// The last lines of all of them.
    pub(super) fn tail(&self) -> Arc<Mutex<Tail>> {
        Arc::clone(&self.0.lock().tail)
    }

    /// The processes of all its Pods.
    pub fn pids(&self) -> Vec<u32> {
        self.0.lock().pids.clone()
    }

    /// The processes, if they are others than at the last call.
    pub fn take_changed(&self) -> Option<Vec<u32>> {
        let mut seen = self.0.lock();
        std::mem::take(&mut seen.changed).then(|| seen.pids.clone())
    }

    /// The crashes since the last call.
    pub fn take_crashes(&self) -> Vec<Crash> {
        self.0.lock().crashes.drain(..).collect()
    }

    /// Why nothing is seen any more.
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
