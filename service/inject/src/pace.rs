//! The rate of sending: how many chunks are sent at one time, depending on the server's answers.
//!
//! The number n of chunks starts at one and grows by one after n prompt answers; slow answers and refusals reduce n. If
//! the API server states a delay, no chunk is sent until the delay has passed.

use std::time::{Duration, Instant};

/// The first delay after a refusal that states no delay; the delay doubles with each further refusal in a row.
const BACKOFF: Duration = Duration::from_millis(500);
/// Longest delay after a refusal. Even if the server states a longer delay, the next request is sent after one minute,
/// because the server may have been restarted.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// An answer this many times slower than the fastest answer shows that the server is busy.
const SLOW_TIMES: u32 = 4;
/// An answer within this time never counts as slow.
const SLOW_LEAST: Duration = Duration::from_millis(200);
/// A slower answer raises the fastest time by at most one part in this number, because the fastest time of an hour ago
/// may not be possible now.
const FORGET: u32 = 64;

#[derive(Debug)]
pub struct Pace {
    /// Maximum number of chunks that may be unanswered at present.
    window: usize,
    most: usize,
    /// The number of prompt answers since `window` changed.
    prompt: usize,
    /// The time of the fastest answer, which slowly adapts to later answers.
    best: Option<Duration>,
    refusals: u32,
    /// No chunk is sent before this time.
    until: Option<Instant>,
    /// The time at which a chunk was last accepted.
    progress: Instant,
}

impl Pace {
    /// A rate that allows at most `most` unanswered chunks.
    pub fn new(most: usize, now: Instant) -> Self {
        Self { window: 1, most: most.max(1), prompt: 0, best: None, refusals: 0, until: None, progress: now }
    }

    /// Whether one more chunk may be sent while `open` chunks are unanswered. If no chunk may be sent, the error is the
    /// delay; `None` means to wait until an open chunk is answered.
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

    /// Records that the server refused a chunk at present; `named` is the delay that the server states. The number
    /// `random` is from 0 to 1.
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

    /// Time since a chunk was last accepted.
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
        /// For any answers of the server, another chunk may be sent after at most a minute, and the number of
        /// unanswered chunks never exceeds the limit.
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
