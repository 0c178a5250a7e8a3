//! The policy after the end of a list or a watch: the next step, and its time.
//!
//! Owns the counters of failures and the decision; pure. It must not sleep or send requests. The rules of the correct
//! client: a clean end resumes; 410 lists. Trouble backs off and resumes; every second time in a row it lists instead,
//! because a list may work where a watch does not. Nothing ever ends it.

use std::time::Duration;

use crate::backoff;
use crate::mistakes::{Mistake, Mistakes};
use crate::wire::Trouble;

/// Pause between a clean end and the next watch.
const RESUME_PAUSE: Duration = Duration::from_millis(50);
/// Life of a watch from which on its end counts as normal, even without an event.
const LIVED: Duration = Duration::from_secs(1);
/// The limit of `gives-up-after-n-errors`.
const ERRORS_MAX: u32 = 5;
/// `aborts-healthy-streams`: the first and the longest pause while nothing happens.
const ABORT_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    List,
    Watch,
    /// Nothing, ever again. Only a mistake leads here.
    Stop,
}

#[derive(Debug)]
pub enum End {
    /// The list was accepted.
    Listed,
    /// The watch ended cleanly.
    Clean { lived: Duration },
    /// 410, as a status or as an event.
    Gone,
    /// The watch was silent for too long.
    Silent,
    /// The messages are inconsistent: only a list shows the true state.
    Doubt(#[expect(dead_code, reason = "for people, who see it with `--verbose`")] String),
    /// The abort of `aborts-healthy-streams`.
    Aborted {
        /// Whether nothing had happened.
        quiet: bool,
    },
    /// Any other failure.
    Failed(Trouble),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub next: Step,
    /// The pause before it.
    pub pause: Duration,
}

#[derive(Debug)]
pub struct Policy {
    mistakes: Mistakes,
    relist: Duration,
    /// Number of watches in a row without an event.
    watch_failures: u32,
    list_failures: u32,
    /// Number of failures in a row, of lists and watches.
    errors: u32,
    silences: u32,
    aborts: u32,
    /// Whether there is no revision to watch from.
    must_list: bool,
    /// Whether it worked once.
    connected: bool,
}

impl Policy {
    /// A policy at the start; `relist` is the interval of periodic lists.
    pub fn new(mistakes: Mistakes, relist: Duration) -> Self {
        let (watch_failures, list_failures, errors, silences, aborts) = (0, 0, 0, 0, 0);
        let (must_list, connected) = (true, false);
        Self { mistakes, relist, watch_failures, list_failures, errors, silences, aborts, must_list, connected }
    }

    /// Records that the watch delivered an event or a bookmark.
    pub fn received(&mut self) {
        (self.watch_failures, self.errors, self.silences) = (0, 0, 0);
    }

    /// Records that the initial events of a watch were complete.
    pub fn listed_by_watch(&mut self) {
        (self.list_failures, self.must_list, self.connected) = (0, false, true);
    }

    /// Whether there is no revision to watch from any more.
    pub fn must_list(&self) -> bool {
        self.must_list
    }

    /// The decision after the end of a step. `random` is between 0 and 1.
    pub fn after(&mut self, step: Step, end: &End, random: f64) -> Decision {
        let decision = match end {
            End::Listed => self.listed(random),
            End::Clean { lived } => self.clean(*lived, random),
            End::Gone => self.gone(random),
            End::Silent => self.silent(),
            End::Doubt(_) => {
                self.must_list = true;
                self.watch_failures += 1;
                Self::then(Step::List, self.after_news(random))
            }
            End::Aborted { quiet } => self.aborted(*quiet),
            End::Failed(trouble) => self.failed(step, trouble, random),
        };
        if step == Step::Watch && decision.next == Step::Watch && self.mistakes.made(Mistake::RelistWithoutDiff) {
            return Self::then(Step::List, decision.pause);
        }
        decision
    }

    fn then(next: Step, pause: Duration) -> Decision {
        Decision { next, pause }
    }

    /// The next step if no list is required: a list every second time in a row that watches deliver nothing.
    fn list_or_watch(&self, times: u32) -> Step {
        let precaution = times.is_multiple_of(2) && !self.mistakes.made(Mistake::NeverRelists);
        if self.must_list || precaution { Step::List } else { Step::Watch }
    }

    fn listed(&mut self, random: f64) -> Decision {
        self.listed_by_watch();
        Self::then(Step::Watch, backoff::pause(self.watch_failures, random))
    }

    fn clean(&mut self, lived: Duration, random: f64) -> Decision {
        if self.mistakes.made(Mistake::GivesUpSilentlyAtEnd) {
            return Self::then(Step::Stop, Duration::ZERO);
        }
        if self.mistakes.made(Mistake::HotLoopOnEmpty) {
            return Self::then(Step::Watch, Duration::ZERO);
        }
        if lived >= LIVED {
            (self.watch_failures, self.errors) = (0, 0);
            return Self::then(Step::Watch, RESUME_PAUSE);
        }
        self.watch_failures += 1;
        Self::then(self.list_or_watch(self.watch_failures), backoff::pause(self.watch_failures, random))
    }

    fn gone(&mut self, random: f64) -> Decision {
        self.watch_failures += 1;
        if self.mistakes.made(Mistake::ExitsOn410) {
            return Self::then(Step::Stop, Duration::ZERO);
        }
        if self.mistakes.made(Mistake::KeepsRvAfter410) {
            return Self::then(Step::Watch, backoff::pause(self.watch_failures, random));
        }
        self.must_list = true;
        Self::then(Step::List, self.after_news(random))
    }

    /// The pause after a 410. The first one in a row is normal; several in a row stay below two requests a second.
    fn after_news(&self, random: f64) -> Duration {
        if self.watch_failures == 1 { Duration::ZERO } else { backoff::pause(self.watch_failures, random) }
    }

    fn silent(&mut self) -> Decision {
        self.silences += 1;
        Self::then(self.list_or_watch(self.silences), Duration::ZERO)
    }

    fn aborted(&mut self, quiet: bool) -> Decision {
        if !quiet {
            self.aborts = 0;
            return Self::then(Step::Watch, Duration::ZERO);
        }
        let pause = ABORT_PAUSES.0.saturating_mul(1 << self.aborts.min(8)).min(ABORT_PAUSES.1);
        self.aborts += 1;
        Self::then(Step::Watch, pause)
    }

    fn failed(&mut self, step: Step, trouble: &Trouble, random: f64) -> Decision {
        self.errors += 1;
        let code = trouble.code().unwrap_or(0);
        let stops = (self.mistakes.made(Mistake::GivesUpOn5xx) && (code == 429 || code >= 500))
            || (self.mistakes.made(Mistake::GivesUpAfterNErrors) && self.errors >= ERRORS_MAX)
            || (self.mistakes.made(Mistake::StopsOn403) && code == 403)
            || (self.mistakes.made(Mistake::PendingFlagStuck)
                && self.connected
                && matches!(trouble, Trouble::Connect(_)));
        if stops {
            return Self::then(Step::Stop, Duration::ZERO);
        }
        let asked = trouble.refusal().map_or(Duration::ZERO, |refusal| refusal.retry_after);
        let (next, failures) = if step == Step::List {
            self.list_failures += 1;
            if self.mistakes.made(Mistake::ListFailureKillsWatch) {
                return Self::then(Step::List, self.relist.max(asked));
            }
            (if self.must_list { Step::List } else { Step::Watch }, self.list_failures)
        } else {
            self.watch_failures += 1;
            // A resource that is gone has lost its objects; a revision from the future cannot be waited for.
            let anew = code == 404 || trouble.is_too_large();
            self.must_list |= anew && !self.mistakes.made(Mistake::IgnoresRewind);
            (self.list_or_watch(self.watch_failures), self.watch_failures)
        };
        Self::then(next, backoff::pause(failures, random).max(asked))
    }
}
