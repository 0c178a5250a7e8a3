//! Crashes of the subject's processes, and the times at which they are restarted.
//!
//! Owns the back-off of each process and the record rows of crashes. The delays are in `scenario/restart_policy.rs`.
//! The main task of the run owns the processes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use reports::record::CrashRow;

use crate::clock::millis;
use crate::scenario::{Delays, Restart, Scenario};
use crate::subject::{Crash, Exit};

pub(super) struct Crashes {
    policy: Option<Restart>,
    delays: Delays,
    back_offs: BTreeMap<usize, BackOff>,
    total: u64,
    /// The last crash, if no row of the record shows it yet.
    untold: Option<CrashRow>,
}

#[derive(Debug)]
pub(super) struct Restarting {
    pub(super) due: Instant,
    wait: Duration,
    in_a_row: u64,
}

/// The back-off of one process, as in a kubelet. The first restart comes at once, and later restarts come after growing
/// delays. If a process runs long enough, its back-off is reset.
#[derive(Debug, Default)]
struct BackOff {
    next: Duration,
    in_a_row: u64,
}

impl BackOff {
    /// Records a crash of a process that ran for the time `ran`. Returns the delay until the restart.
    fn crashed(&mut self, ran: Duration, delays: Delays) -> Duration {
        if self.in_a_row == 0 || ran > delays.reset_after {
            *self = Self { next: delays.initial, in_a_row: 1 };
            return Duration::ZERO;
        }
        self.in_a_row += 1;
        let wait = self.next;
        self.next = (wait * 2).min(delays.max);
        wait
    }
}

impl Crashes {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            policy: scenario.subject.upkeep().restart,
            delays: scenario.subject.upkeep().delays(scenario.compression()),
            back_offs: BTreeMap::new(),
            total: 0,
            untold: None,
        }
    }

    /// Records the end of a process. Returns when to restart the process; `None` if no rule restarts it.
    pub(super) fn after(&mut self, exit: &Exit, now: Instant) -> Option<Restarting> {
        let status = exit.status?;
        self.policy.filter(|policy| policy.follows(status.success()))?;
        let back_off = self.back_offs.entry(exit.index).or_default();
        let wait = back_off.crashed(exit.ran, self.delays);
        Some(Restarting { due: now + wait, wait, in_a_row: back_off.in_a_row })
    }

    /// The record row of a crash, and whether to write this row now.
    pub(super) fn row(
        &mut self,
        t_ms: u64,
        exit: &Exit,
        restarting: &Restarting,
        last_words: String,
    ) -> (CrashRow, bool) {
        self.total += 1;
        let row = CrashRow {
            t_ms,
            number: self.total,
            process: exit.name.clone(),
            status: exit.status.map_or_else(String::new, |status| status.to_string()),
            ran_ms: millis(exit.ran),
            in_a_row: restarting.in_a_row,
            back_off_ms: millis(restarting.wait),
            last_words,
        };
        let is_told = row.is_told();
        self.untold = (!is_told).then(|| row.clone());
        (row, is_told)
    }

    /// The record row of a container that the kubelet restarted, and whether to write this row now.
    pub(super) fn of_container(&mut self, t_ms: u64, crash: Crash) -> (CrashRow, bool) {
        self.total += 1;
        let row = CrashRow {
            t_ms,
            number: self.total,
            process: Some(crash.container),
            status: crash.status,
            ran_ms: millis(crash.ran),
            in_a_row: crash.restarts,
            back_off_ms: 0,
            last_words: String::new(),
        };
        let is_told = row.is_told();
        self.untold = (!is_told).then(|| row.clone());
        (row, is_told)
    }

    /// The last crash, if it is not in the record yet.
    pub(super) fn untold(&mut self) -> Option<CrashRow> {
        self.untold.take()
    }
}

/// The text that the terminal shows for a crash.
pub(super) fn crash_text(row: &CrashRow) -> String {
    let who = row.process.as_ref().map_or_else(|| "the subject".to_owned(), |name| format!("`{name}`"));
    let (status, ran) = (&row.status, reports::words::millis(row.ran_ms));
    let next = match (row.in_a_row, row.back_off_ms) {
        (0 | 1, _) => "it is started again".to_owned(),
        (times, wait_ms) => {
            let wait = reports::words::millis(wait_ms);
            format!("CrashLoopBackOff: {times} times in a row, it is started again in {wait}")
        }
    };
    format!("{who} ended with {status} after {ran}; {next}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The delays of restarts, in seconds, equal the delays of a kubelet.
    #[test]
    fn the_back_off_is_that_of_a_kubelet() {
        let delays = crate::scenario::BackOff::default().delays(1);
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = (0..8).map(|_| back_off.crashed(SECOND, delays).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!((back_off.crashed(SECOND * 600, delays).as_secs(), back_off.in_a_row), (300, 9));
        assert_eq!((back_off.crashed(SECOND * 601, delays).as_secs(), back_off.in_a_row), (0, 1));
        assert_eq!((back_off.crashed(SECOND, delays).as_secs(), back_off.in_a_row), (10, 2));
    }

    fn crashes(restart: &str) -> Crashes {
        let mut scenario = crate::scenario::Source::read("example-watcher").unwrap().scenario;
        scenario.subject.command_mut().unwrap().restart = serde_saphyr::from_str(restart).unwrap();
        Crashes::new(&scenario)
    }

    fn exit(index: usize, code: i32) -> Exit {
        Exit { index, name: None, status: Some(ExitStatus::from_raw(code << 8)), ran: SECOND }
    }

    #[test]
    fn a_policy_says_which_ends_are_followed_by_a_start() {
        let now = Instant::now();
        let follows = |restart, code| crashes(restart).after(&exit(0, code), now).is_some();
        assert!(follows("always", 0) && follows("always", 3) && follows("onFailure", 3));
        assert!(!follows("onFailure", 0) && !follows("null", 3));
        let theirs = Exit { status: None, ..exit(0, 1) };
        assert!(crashes("always").after(&theirs, now).is_none(), "nobody knows how to start it");
    }

    /// A crash of one process does not delay the restart of another process.
    #[test]
    fn each_process_has_its_own_back_off() {
        let (mut crashes, now) = (crashes("always"), Instant::now());
        let waits: Vec<u64> =
            [0, 0, 1, 0].map(|index| crashes.after(&exit(index, 1), now).unwrap().wait.as_secs()).to_vec();
        assert_eq!(waits, [0, 10, 0, 20]);
    }

    /// If a process crashes very often, only some crashes have record rows, but the last crash always has a row.
    #[test]
    fn rows_are_bounded_and_the_last_is_told() {
        let (mut crashes, now) = (crashes("always"), Instant::now());
        let mut told = 0;
        for _ in 0..5000 {
            let restarting = crashes.after(&exit(0, 1), now).unwrap();
            told += u64::from(crashes.row(0, &exit(0, 1), &restarting, String::new()).1);
        }
        assert_eq!(told, reports::record::CRASH_ROWS_MAX + 3, "1,024, 2,048 and 4,096");
        assert_eq!(crashes.untold().map(|row| row.number), Some(5000));
    }

    #[test]
    fn a_loop_is_named() {
        let row = CrashRow { status: "signal: 9 (SIGKILL)".into(), ran_ms: 1200, in_a_row: 1, ..CrashRow::default() };
        assert_eq!(crash_text(&row), "the subject ended with signal: 9 (SIGKILL) after 1.2 s; it is started again");
        let row = CrashRow { process: Some("hook".into()), in_a_row: 3, back_off_ms: 20_000, ..row };
        assert!(
            crash_text(&row).ends_with("CrashLoopBackOff: 3 times in a row, it is started again in 20 s"),
            "{}",
            crash_text(&row)
        );
    }
}
