//! The pace of sending: the number of chunks on their way at one time, by the server's answers.
//!
//! Pure. It begins with one and adds one for each round of prompt answers; slow answers and refusals reduce it. If a
//! server names a time, nothing is sent until then.

use std::time::{Duration, Instant};

/// The first wait after a refusal that names no time; doubled with each further one in a row.
const BACKOFF: Duration = Duration::from_millis(500);
/// Longest wait: a server that names an hour is asked again earlier, because it may have been restarted since.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// An answer this many times slower than the best one means that the server is busy.
const SLOW_TIMES: u32 = 4;
/// A faster answer than this is never slow.
const SLOW_LEAST: Duration = Duration::from_millis(200);
/// Weight of the newest answer in the slow decay of the best one: the best time of an hour ago may not be possible now.
const FORGET: u32 = 64;

#[derive(Debug)]
pub struct Pace {
    /// Chunks that may be on their way.
    window: usize,
    most: usize,
    /// Prompt answers since the window changed.
    prompt: usize,
    /// The best answer, which decays slowly.
    best: Option<Duration>,
    /// Refusals in a row.
    refusals: u32,
    /// Nothing is sent before.
    until: Option<Instant>,
    /// When a chunk was accepted last.
    progress: Instant,
}

impl Pace {
    /// A pace of at most `most` chunks at one time.
    pub fn new(most: usize, now: Instant) -> Self {
        Self { window: 1, most: most.max(1), prompt: 0, best: None, refusals: 0, until: None, progress: now }
    }

    /// Whether one more may be sent while `open` are on their way, else how long to wait; `None` means until one comes
    /// back.
    pub fn may_send(&self, open: usize, now: Instant) -> Result<(), Option<Duration>> {
        match self.until {
            Some(until) if until > now => Err(Some(until - now)),
            _ if open >= self.window => Err(None),
            _ => Ok(()),
        }
    }

    /// Records that the server accepted a chunk after `latency`.
    pub fn taken(&mut self, latency: Duration, now: Instant) {
        self.progress = now;
        self.refusals = 0;
        let best = self.best.map_or(latency, |best| latency.min(best + best / FORGET));
        self.best = Some(best);
        if latency > (best * SLOW_TIMES).max(SLOW_LEAST) {
            self.prompt = 0;
            self.window = (self.window - 1).max(1);
            return;
        }
        self.prompt += 1;
        if self.prompt >= self.window && self.window < self.most {
            self.prompt = 0;
            self.window += 1;
        }
    }

    /// Records that the server refused a chunk for now, and its named time if any. `random` is from 0 to 1.
    pub fn refused(&mut self, named: Option<Duration>, random: f64, now: Instant) {
        let backoff = BACKOFF * 2_u32.saturating_pow(self.refusals.min(16));
        let backoff = backoff.min(WAIT_MAX).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        let wait = named.map_or(backoff, |named| named.min(WAIT_MAX).max(backoff / 2));
        self.refusals = self.refusals.saturating_add(1);
        self.prompt = 0;
        self.window = (self.window / 2).max(1);
        let until = now + wait;
        self.until = Some(self.until.map_or(until, |before| before.max(until)));
    }

    /// Time since a chunk was accepted last.
    pub fn stuck(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.progress)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn prompt_answers_widen_and_refusals_narrow() {
        let now = Instant::now();
        let mut pace = Pace::new(4, now);
        assert_eq!(pace.may_send(0, now), Ok(()));
        assert_eq!(pace.may_send(1, now), Err(None));
        for _ in 0..20 {
            pace.taken(10 * MS, now);
        }
        assert_eq!((pace.may_send(3, now), pace.may_send(4, now)), (Ok(()), Err(None)));
        pace.refused(None, 1.0, now);
        assert_eq!(pace.may_send(0, now), Err(Some(BACKOFF)));
        assert_eq!((pace.may_send(1, now + BACKOFF), pace.may_send(2, now + BACKOFF)), (Ok(()), Err(None)));
    }

    #[test]
    fn a_time_that_the_server_names_is_kept_within_reason() {
        let now = Instant::now();
        let mut pace = Pace::new(4, now);
        pace.refused(Some(Duration::from_secs(7)), 0.0, now);
        assert_eq!(pace.may_send(0, now), Err(Some(Duration::from_secs(7))));
        pace.refused(Some(Duration::from_hours(24)), 0.0, now);
        assert_eq!(pace.may_send(0, now), Err(Some(WAIT_MAX)));
    }

    #[test]
    fn a_slow_server_gets_less() {
        let now = Instant::now();
        let mut pace = Pace::new(4, now);
        for _ in 0..20 {
            pace.taken(100 * MS, now);
        }
        pace.taken(2_000 * MS, now);
        assert_eq!((pace.may_send(2, now), pace.may_send(3, now)), (Ok(()), Err(None)));
    }

    proptest! {
        /// For any answers of a server, a chunk may be sent again after a minute, and never more than the most.
        #[test]
        fn never_stuck_and_never_too_many(answers in prop::collection::vec((any::<bool>(), 0..100_000_u64, 0.0..1.0_f64), 0..200)) {
            let mut now = Instant::now();
            let mut pace = Pace::new(8, now);
            for (taken, millis, random) in answers {
                now += Duration::from_millis(millis / 100);
                if taken {
                    pace.taken(Duration::from_millis(millis), now);
                } else {
                    let named = (millis % 3 == 0).then(|| Duration::from_millis(millis));
                    pace.refused(named, random, now);
                }
                prop_assert_eq!(pace.may_send(0, now + WAIT_MAX), Ok(()));
                prop_assert!(pace.may_send(8, now + WAIT_MAX).is_err());
            }
        }
    }
}
