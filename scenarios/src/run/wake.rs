//! Wakes the conductor (the main task of a run) between its ticks: after a hit for which another fault waits, and when
//! the next fault is due.
//!
//! Owns the limit of how often the conductor wakes. Without hits the main task is not woken, so a long run costs
//! nothing. With very many hits, the main task is woken once per millisecond.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Hits within this time are handled together: some faults hit every event, and the main task has other work.
const TOGETHER: Duration = Duration::from_millis(1);

/// Waits for hits and times of faults.
#[derive(Debug)]
pub(super) struct Wake {
    quiet_until: Instant,
}

impl Wake {
    pub(super) fn new() -> Self {
        Self { quiet_until: Instant::now() }
    }

    /// Returns when `struck` returns or at the time `due`, but at least [`TOGETHER`] after the last return.
    pub(super) async fn next(&mut self, struck: impl Future<Output = ()>, due: Option<std::time::Instant>) {
        sleep_until(self.quiet_until).await;
        let due = async {
            match due {
                Some(due) => sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = struck => {}
            () = due => {}
        }
        self.quiet_until = Instant::now() + TOGETHER;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    /// A hit wakes the main task at once, without waiting for a tick, even if the hit came before the wait began.
    #[tokio::test(start_paused = true)]
    async fn a_hit_wakes_at_once() {
        let (mut wake, hits, begin) = (Wake::new(), Notify::new(), Instant::now());
        hits.notify_one();
        wake.next(hits.notified(), None).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        let hit = async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            hits.notify_one();
        };
        tokio::join!(wake.next(hits.notified(), None), hit);
        assert_eq!(begin.elapsed(), Duration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn very_many_hits_wake_each_millisecond_and_none_never() {
        let (mut wake, hits, begin) = (Wake::new(), Notify::new(), Instant::now());
        for _ in 0..100 {
            hits.notify_one();
            wake.next(hits.notified(), None).await;
        }
        assert_eq!(begin.elapsed(), TOGETHER * 99);
        let never = tokio::time::timeout(Duration::from_hours(100), wake.next(hits.notified(), None)).await;
        assert!(never.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_wakes_at_its_time() {
        let (mut wake, begin) = (Wake::new(), Instant::now());
        let due = begin.into_std() + Duration::from_secs(5);
        wake.next(std::future::pending(), Some(due)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
    }
}
