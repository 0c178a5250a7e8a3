//! Repeats a suite, and gives the verdict over all runs.
//!
//! Owns the number of runs and the repetitions of a failed seed. A run without hits of faults does not count as passed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reports::exit;

use super::behind::Behind;
use super::{How, Played, Suite, page};
use crate::out::err;
use crate::signals::Signals;

/// Default seed of the first run.
const SEED: u64 = 1;
const SEEDS_SHOWN: usize = 20;

/// How often a suite is run, and how often a failed seed is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repetition {
    /// Maximum number of runs, each with the next seed.
    pub times: u64,
    /// Time after which no further run begins.
    pub lasts: Option<Duration>,
    /// Whether to continue after a failed run.
    pub goes_on: bool,
    /// How often the first failed seed is repeated.
    pub replays: u64,
}

#[derive(Debug, Default)]
struct Runs {
    ran: u64,
    failed: Vec<(u64, u8)>,
    /// Seeds of passed runs in which no fault hit anything.
    undisturbed: Vec<u64>,
    /// Seeds of passed runs that `--judge` left undecided.
    undecided: Vec<u64>,
    reads: Behind,
}

/// How often a failed seed failed again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Odds {
    pub again: u64,
    pub plays: u64,
    /// Whether the suite also failed without faults; `None` if this was not tried.
    pub without: Option<bool>,
}

impl Suite {
    /// Runs the suite once per seed. Returns the exit code of the first failure, or 2 if no run had hits of faults or
    /// `--judge` left a run undecided.
    pub(crate) async fn repeat(&self, repetition: Repetition) -> Result<u8> {
        let first = self.chaos.seed.or(self.seed).unwrap_or(SEED);
        let mut signals = Signals::listen().context("failed to listen for signals")?;
        let (began, mut runs, mut first_failed, mut ended) = (Instant::now(), Runs::default(), None, None);
        for seed in (0..repetition.times).map(|number| first.wrapping_add(number)) {
            if runs.ran > 0 && repetition.lasts.is_some_and(|lasts| began.elapsed() >= lasts) {
                break;
            }
            let played = self.play(seed, How::Told, &mut signals).await?;
            if played.was_ended {
                // An interrupted run proves nothing about its seed.
                ended = Some(played.code);
                break;
            }
            let has_failed = runs.add(&played);
            if has_failed && first_failed.is_none() {
                first_failed = Some(played);
            }
            if has_failed && !repetition.goes_on {
                break;
            }
        }
        for line in runs.lines(first, self.has_faults()) {
            err!("longhaul: {line}");
        }
        if let Some(failed) = first_failed {
            // An error in the analysis of a failure does not hide the failure.
            if self.has_faults()
                && ended.is_none()
                && let Err(error) = self.conclude(&failed, repetition.replays, &mut signals).await
            {
                err!("longhaul: seed {} could not be played again: {error:#}", failed.seed);
            }
            return Ok(failed.code);
        }
        if let Some(versions) = self.chaos.stale.filter(|_| runs.ran > 0) {
            err!("longhaul: {}", runs.reads.proven(versions, runs.ran));
        }
        Ok(ended.unwrap_or(runs.code()))
    }

    /// Repeats a failed seed, and prints how often it failed and the probable cause.
    async fn conclude(&self, failed: &Played, replays: u64, signals: &mut Signals) -> Result<()> {
        let seed = failed.seed;
        let mut odds = Odds::default();
        // If only `--judge` failed the run, the suite's own code is a pass. A failing suite may exit with any number.
        let has_failed = |played: &Played| played.suites != exit::PASS || played.code == exit::FAIL;
        for number in 1..=replays {
            err!("longhaul: playing seed {seed} again, {number} of {replays}");
            let played = self.play(seed, How::Again, signals).await?;
            if played.was_ended {
                break;
            }
            odds.plays += 1;
            odds.again += u64::from(has_failed(&played));
        }
        if odds.plays == replays && replays > 0 {
            err!("longhaul: playing the suite without faults");
            let plain = self.play(seed, How::WithoutFaults, signals).await?;
            odds.without = (!plain.was_ended).then_some(plain.suites != exit::PASS);
        }
        let mut story = odds.lines(seed);
        if self.chaos.stale.is_some() && failed.suites != exit::PASS {
            story.insert(0, failed.accused(odds.without == Some(true)));
        }
        for line in &story {
            err!("longhaul: {line}");
        }
        err!("longhaul: the command that plays seed {seed}: {}", self.again(seed));
        page::write(self, failed, &story)
    }
}

impl Played {
    /// A sentence on the stale read and the write that was based on it, if they probably made the suite fail.
    fn accused(&self, fails_without: bool) -> String {
        if fails_without {
            return "the suite fails without a stale cache as well: make it pass first".to_owned();
        }
        let failed: Vec<_> = self.ledger.tests.iter().filter(|test| test.failed).collect();
        let reads = &self.ledger.reads;
        for test in &failed {
            if let Some(culprit) = reads.culprit(test.from_us, test.to_us) {
                let said = test.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
                return format!("{}; then `{}` failed{said}", culprit.sentence(), test.name);
            }
        }
        if failed.is_empty()
            && let Some(culprit) = reads.culprit(0, u64::MAX)
        {
            return format!("{}; then the suite failed (exit code {})", culprit.sentence(), self.suites);
        }
        let times: u64 = reads.late_by.values().sum();
        let name = if times == 0 {
            ""
        } else {
            "; `--manager-agent` or `--manager-user` separates the manager's writes from the test's"
        };
        format!(
            "not safe with a stale cache, but the write is not known: {times} of {} writes came while a cache was behind{name}",
            reads.writes
        )
    }
}

impl Runs {
    /// Counts a run, and returns whether the run failed.
    fn add(&mut self, played: &Played) -> bool {
        self.ran += 1;
        self.reads.merge(&played.ledger.reads);
        match played.code {
            exit::PASS if !played.is_disturbed => self.undisturbed.push(played.seed),
            exit::PASS => {}
            // The suite passed, but `--judge` had too few facts.
            exit::INCONCLUSIVE if played.suites == exit::PASS => self.undecided.push(played.seed),
            code => self.failed.push((played.seed, code)),
        }
        self.failed.last().is_some_and(|(seed, _)| *seed == played.seed)
    }

    fn code(&self) -> u8 {
        let is_open = !self.undecided.is_empty() || (self.ran > 0 && self.undisturbed.len() as u64 == self.ran);
        if is_open { exit::INCONCLUSIVE } else { exit::PASS }
    }

    fn lines(&self, first: u64, has_faults: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let failed: Vec<u64> = self.failed.iter().map(|(seed, _)| *seed).collect();
        let undisturbed = self.undisturbed.len() as u64;
        if self.ran > 1 && !failed.is_empty() {
            lines.push(format!("{} of {} runs failed: seeds {}", failed.len(), self.ran, seeds(&failed)));
        } else if self.ran > 1 && undisturbed < self.ran {
            let passed = self.ran - undisturbed - self.undecided.len() as u64;
            let last = first.wrapping_add(self.ran - 1);
            lines.push(format!("{passed} of {} runs passed, seeds {first} to {last}", self.ran));
        }
        if has_faults && undisturbed > 0 {
            lines.push(if undisturbed == self.ran {
                let runs = if self.ran == 1 { "the run".to_owned() } else { format!("any of {} runs", self.ran) };
                format!(
                    "no fault hit anything in {runs}, so there is no verdict (the suite has no caches, or is too short)"
                )
            } else {
                format!(
                    "no fault hit anything in {undisturbed} of {} runs, which do not count: seeds {}",
                    self.ran,
                    seeds(&self.undisturbed)
                )
            });
        }
        if !self.undecided.is_empty() {
            lines.push(format!("`--judge` cannot decide: seeds {}", seeds(&self.undecided)));
        }
        lines
    }
}

impl Odds {
    fn lines(self, seed: u64) -> Vec<String> {
        let mut lines = Vec::new();
        if self.plays > 0 {
            lines.push(format!("failed again in {} of {} plays of seed {seed}", self.again, self.plays));
        }
        match self.without {
            Some(true) => lines.push("failed without faults as well, so no fault is the reason".to_owned()),
            Some(false) => lines.push("passed without faults".to_owned()),
            None => {}
        }
        lines
    }
}

fn seeds(seeds: &[u64]) -> String {
    let shown: Vec<String> = seeds.iter().take(SEEDS_SHOWN).map(u64::to_string).collect();
    let more = if seeds.len() > SEEDS_SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which no fault hit anything does not count as passed.
    #[test]
    fn what_was_not_disturbed_is_counted_apart() {
        let runs = |ran, undisturbed: &[u64], failed: &[(u64, u8)]| Runs {
            ran,
            undisturbed: undisturbed.to_vec(),
            failed: failed.to_vec(),
            ..Runs::default()
        };
        let all = runs(3, &[4, 5, 6], &[]);
        assert_eq!((all.code(), all.lines(4, true).len()), (exit::INCONCLUSIVE, 1));
        assert!(
            all.lines(4, true)[0].starts_with("no fault hit anything in any of 3 runs"),
            "{:?}",
            all.lines(4, true)
        );
        let some = runs(3, &[5], &[]);
        assert_eq!(some.code(), exit::PASS);
        assert_eq!(
            some.lines(4, true),
            ["2 of 3 runs passed, seeds 4 to 6", "no fault hit anything in 1 of 3 runs, which do not count: seeds 5"]
        );
        assert_eq!(runs(1, &[], &[]).lines(4, true), [""; 0]);
        assert_eq!(runs(2, &[], &[(5, 1)]).lines(4, true), ["1 of 2 runs failed: seeds 5"]);
    }

    #[test]
    fn the_odds_are_told() {
        let odds = Odds { again: 2, plays: 3, without: Some(false) };
        assert_eq!(odds.lines(4), ["failed again in 2 of 3 plays of seed 4", "passed without faults"]);
        assert_eq!(Odds::default().lines(4), [""; 0]);
    }
}
