//! Decides, after a list or a watch has ended, whether to list or to watch next, and after which pause.
//!
//! This module counts the failures and does no I/O. The correct client resumes the watch after a clean end, and lists
//! after 410. After any other failure the correct client pauses and resumes the watch. After every second failure in a
//! row the correct client lists instead, because a list may work where a watch does not. The correct client never gives
//! up.

use std::time::Duration;

use crate::backoff;
use crate::mistakes::{Mistake, Mistakes};
use crate::wire::Trouble;

/// Pause between a clean end of a watch and the next watch.
const RESUME_PAUSE: Duration = Duration::from_millis(50);
/// A watch that was open for at least this time ended normally, even if it delivered no event.
const LIVED: Duration = Duration::from_secs(1);
/// Number of errors after which `gives-up-after-n-errors` gives up.
const ERRORS_MAX: u32 = 5;
/// With the mistake `aborts-healthy-streams`: the first and the longest pause while no event comes.
const ABORT_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    List,
    Watch,
    /// The client does nothing for ever. Only a client with a mistake stops listing and watching.
    Stop,
}

#[derive(Debug)]
pub enum End {
    /// A list was accepted.
    Listed,
    /// The watch ended cleanly.
    Clean { lived: Duration },
    /// The server answered 410, as an HTTP status or as an event.
    Gone,
    /// The watch was silent for longer than allowed.
    Silent,
    /// The messages contradict each other, so only a list can show the true state.
    Doubt(#[expect(dead_code, reason = "for people, who see it with `--verbose`")] String),
    /// `aborts-healthy-streams` aborted the watch.
    Aborted {
        /// Whether no event had come on the aborted watch.
        quiet: bool,
    },
    /// The list or watch failed in a way that no other variant describes.
    Failed(Trouble),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub next: Step,
    /// The pause before the list or watch.
    pub pause: Duration,
}

#[derive(Debug)]
pub struct Policy {
    mistakes: Mistakes,
    relist: Duration,
    /// Number of watches in a row that delivered no event.
    watch_failures: u32,
    list_failures: u32,
    /// Number of failed lists and watches in a row.
    errors: u32,
    silences: u32,
    aborts: u32,
    /// Whether a list is needed because there is no revision to watch from.
    must_list: bool,
    /// Whether a list or watch has ever worked.
    connected: bool,
}

impl Policy {
    /// The policy at the start. `relist` is the interval of periodic lists.
    pub fn new(mistakes: Mistakes, relist: Duration) -> Self {
        let (watch_failures, list_failures, errors, silences, aborts) = (0, 0, 0, 0, 0);
        let (must_list, connected) = (true, false);
        Self { mistakes, relist, watch_failures, list_failures, errors, silences, aborts, must_list, connected }
    }

    /// Records that a watch delivered an event or a bookmark.
    pub fn received(&mut self) {
        (self.watch_failures, self.errors, self.silences) = (0, 0, 0);
    }

    /// Records that a watch delivered all its initial events.
    pub fn listed_by_watch(&mut self) {
        (self.list_failures, self.must_list, self.connected) = (0, false, true);
    }

    /// Whether a list is needed because there is no revision to watch from.
    pub fn must_list(&self) -> bool {
        self.must_list
    }

    /// The next action and pause, after `step` ended with `end`. The argument `random` is between 0 and 1.
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

    /// The next action (list or watch) if no list is required. After every second watch in a row without an event, a
    /// list comes next.
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

    /// The pause after the server answered 410. The first 410 is normal; after several 410 in a row the client stays
    /// below two requests a second.
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
