//! Runs many short scenarios in parallel, each scenario once.
//!
//! If a correct client fails, that is a bug of Longhaul, and no second attempt hides the failure. A run is repeated
//! alone if it reports that the machine stood still, or if its verdict lacks an expected word and names an undecided
//! budget. Repeated runs are counted and printed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::support;

/// Number of runs at the same time. Each run consists of a harness and a client, which sleep most of the time.
const AT_ONCE: usize = 20;
/// Maximum number of times that one run may report that the machine stood still. After this number of stalls the test
/// fails, because the machine is too busy.
const STALLS_MAX: usize = 2;
/// The budget that reports that the machine stood still: see `reports/src/judge/validity/stalls.rs`.
const STALL: &str = "validity.pace";

/// The result of one run.
#[derive(Debug, Default)]
pub struct PlayResult {
    /// The difference from the expected result; empty if the run was right.
    pub wrong: String,
    /// The run's message about a stall, if only the machine made the run unusable.
    pub stalled: Option<String>,
    /// The program or right that the run needs and this machine lacks.
    pub skipped: Option<String>,
    pub seconds: f64,
}

/// The results of all runs.
#[derive(Debug)]
pub struct Played<T> {
    pub done: Vec<(T, PlayResult)>,
    /// The messages of runs that were repeated.
    pub stalls: Vec<String>,
    pub seconds: f64,
}

/// Runs all scenarios, and repeats each run that the machine made unusable.
pub fn play_all<T: Send>(things: Vec<T>, play: impl Fn(&T) -> PlayResult + Sync) -> Played<T> {
    play_so_many(AT_ONCE, things, play)
}

/// Like [`play_all`], but with this many runs at a time, for subjects that use much CPU.
pub fn play_so_many<T: Send>(at_once_max: usize, things: Vec<T>, play: impl Fn(&T) -> PlayResult + Sync) -> Played<T> {
    let began = Instant::now();
    let mut played = Played { done: Vec::new(), stalls: Vec::new(), seconds: 0.0 };
    let mut waiting = things;
    for round in 0..=STALLS_MAX {
        // A run that was held up before must not be held up by others.
        let at_once = if round == 0 { at_once_max } else { 1 };
        for (thing, seen) in side_by_side(std::mem::take(&mut waiting), at_once, &play) {
            match &seen.stalled {
                Some(why) if round < STALLS_MAX => {
                    played.stalls.push(why.clone());
                    waiting.push(thing);
                }
                _ => played.done.push((thing, seen)),
            }
        }
    }
    played.seconds = began.elapsed().as_secs_f64();
    played
}

fn side_by_side<T: Send>(
    things: Vec<T>,
    at_once: usize,
    play: &(impl Fn(&T) -> PlayResult + Sync),
) -> Vec<(T, PlayResult)> {
    let waiting = Mutex::new(VecDeque::from(things));
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some(thing) = waiting.lock().unwrap().pop_front() else { return };
                    let began = Instant::now();
                    let mut result = play(&thing);
                    result.seconds = began.elapsed().as_secs_f64();
                    seen.lock().unwrap().push((thing, result));
                }
            });
        }
    });
    seen.into_inner().unwrap()
}

impl<T> Played<T> {
    /// The differences of all runs from the expected results, one line for each run.
    pub fn wrong(&self, name: impl Fn(&T) -> String) -> String {
        let mut text = String::new();
        for (thing, seen) in self.done.iter().filter(|(_, seen)| !seen.wrong.is_empty()) {
            let _ = writeln!(text, "{}, {:.0} s: {}", name(thing), seen.seconds, seen.wrong);
        }
        text
    }

    /// Number of runs that were repeated because the machine stood still, with their messages.
    pub fn summary(&self) -> String {
        match self.stalls.len() {
            0 => format!("{:.0} s, none was played again", self.seconds),
            count => format!("{:.0} s, {count} played again:\n{}", self.seconds, self.stalls.join("\n")),
        }
    }
}

/// The run's message that the machine stood still, if its budgets are undecided for that reason. `answer` is the output
/// of `longhaul soak bugs/NAME --json`.
pub fn stalled(answer: &Value) -> Option<String> {
    if answer["verdict"] != "invalid" && answer["verdict"] != "inconclusive" {
        return None;
    }
    let verdict = support::verdict(Path::new(answer["record"].as_str()?));
    is_held_up(&verdict).then(|| format!("{}: {}", answer["id"], answer["reason"]))
}

/// The budgets that the run, one of twenty parallel runs, could not decide. An expected word that is missing in the
/// verdict may belong to one of these budgets.
pub fn left_open(answer: &Value) -> Option<String> {
    let verdict = support::verdict(Path::new(answer["record"].as_str()?));
    let findings = verdict["findings"].as_array()?.iter();
    let open = findings.filter(|finding| finding["verdict"] != "pass" && finding["verdict"] != "fail");
    let open: Vec<String> = open.map(|finding| format!("{}: {}", finding["budget"], finding["text"])).collect();
    (!open.is_empty()).then(|| format!("{}: {}", answer["id"], open.join("; ")))
}

/// Whether the machine stood still for so long that the run leaves a budget undecided.
pub fn is_held_up(verdict: &Value) -> bool {
    let open = |finding: &&Value| finding["verdict"] != "pass";
    let findings = verdict["findings"].as_array().map_or(&[][..], Vec::as_slice);
    findings.iter().filter(open).any(|finding| finding["budget"] == STALL)
}
