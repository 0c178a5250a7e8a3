//! The number of chunks on their way at one time, by how the server answers.
//!
//! Pure. It begins with one and adds one for each round of prompt answers; slow answers and refusals take it back. A server that names
//! a time is left alone for that time.

use std::time::{Duration, Instant};

/// The first wait after a refusal that names no time; doubled with each further one in a row.
const BACKOFF: Duration = Duration::from_millis(500);
/// Longest wait: a server that names an hour is asked again earlier, because it may have been restarted since.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// An answer this many times slower than the best one says that the server is busy.
const SLOW_TIMES: u32 = 4;
/// Below this no answer is slow.
const SLOW_LEAST: Duration = Duration::from_millis(200);
/// Weight of the newest answer when the best one is let go of slowly: what was possible an hour ago may not be now.
const FORGET: u32 = 64;

/// The pace of one transfer.
#[derive(Debug)]
pub struct Pace {
    /// Chunks that may be on their way.
    window: usize,
    most: usize,
    /// Prompt answers since the window changed.
    prompt: usize,
    /// The best answer, let go of slowly.
    best: Option<Duration>,
    /// Refusals in a row.
    refusals: u32,
    /// Nothing is sent before.
    until: Option<Instant>,
    /// When something was taken last.
    progress: Instant,
}

impl Pace {
    /// A pace of at most `most` chunks at one time.
    pub fn new(most: usize, now: Instant) -> Self {
        Self { window: 1, most: most.max(1), prompt: 0, best: None, refusals: 0, until: None, progress: now }
    }

    /// Whether one more may be sent while `open` are on their way, else how long to wait; no time means until one comes back.
    pub fn may_send(&self, open: usize, now: Instant) -> Result<(), Option<Duration>> {
        match self.until {
            Some(until) if until > now => Err(Some(until - now)),
            _ if open >= self.window => Err(None),
            _ => Ok(()),
        }
    }

    /// The server took one after `latency`.
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

    /// The server refused one for now, and may have named a time. `random` is from 0 to 1.
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

    /// How long nothing has been taken.
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
        /// Whatever a server answers, one may be sent again after a minute and never more than the most.
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
