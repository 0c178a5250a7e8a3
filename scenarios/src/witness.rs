//! How the subject proves what it saw: the channel that carries observations.
//!
//! Every kind of witness turns what it hears into [`Observation`]s and hands them to the run through
//! one bounded channel. What it cannot read is counted with an example: a broken witness must not look like a broken
//! subject.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use facts::{Change, Observation};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::run::Clock;

pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod status;

/// Observations that may wait for the run. A full queue holds the subject's POST back, it drops nothing.
const QUEUE_MAX: usize = 16_384;

/// What a witness hands to the run.
pub(crate) struct Witness {
    pub(crate) observations: mpsc::Receiver<Observation>,
    pub(crate) tally: Arc<Tally>,
}

/// The writing end, shared by whatever hears the subject.
#[derive(Clone)]
pub(crate) struct Ear {
    sender: mpsc::Sender<Observation>,
    tally: Arc<Tally>,
    clock: Clock,
}

/// What a witness heard so far.
#[derive(Default)]
pub(crate) struct Tally {
    lines: AtomicU64,
    malformed: AtomicU64,
    example: Mutex<Option<String>>,
}

/// A witness and its ear.
pub(crate) fn channel(clock: Clock) -> (Ear, Witness) {
    let (sender, observations) = mpsc::channel(QUEUE_MAX);
    let tally = Arc::new(Tally::default());
    (Ear { sender, tally: Arc::clone(&tally), clock }, Witness { observations, tally })
}

impl Ear {
    /// The run's time now, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Passes an observation on, waiting for room.
    pub(crate) async fn heard(&self, observation: Observation) {
        self.tally.lines.fetch_add(1, Ordering::Relaxed);
        // A closed channel means that the run is over: nothing is judged any more.
        let _ = self.sender.send(observation).await;
    }

    /// Counts what could not be read and keeps the first example.
    pub(crate) fn malformed(&self, line: &str, why: &str) {
        self.tally.malformed.fetch_add(1, Ordering::Relaxed);
        let mut example = self.tally.example.lock();
        if example.is_none() {
            let shown: String = line.chars().take(200).collect();
            *example = Some(format!("{why}: {shown}"));
        }
    }
}

impl Tally {
    /// Lines that were observations.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Lines that were not.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// The first line that was not, and why.
    pub(crate) fn example(&self) -> Option<String> {
        self.example.lock().clone()
    }
}

/// Reads a change as clients spell it: `ADDED`, `added`, `create`, `Deleted` …
pub(crate) fn change(word: &str) -> Option<Change> {
    match word.to_ascii_lowercase().as_str() {
        "add" | "added" | "create" | "created" | "apply" | "applied" => Some(Change::Added),
        "modify" | "modified" | "update" | "updated" | "change" | "changed" => Some(Change::Modified),
        "delete" | "deleted" | "remove" | "removed" => Some(Change::Deleted),
        _ => None,
    }
}
