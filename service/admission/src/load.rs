//! The limit of reviews that are being answered, and how overload affects the health of the process.
//!
//! The limit exists to refuse short peaks of reviews, so refusals affect health only after a while. A replica that has
//! refused reviews for half a minute becomes unready. A replica at its limit counts as stuck if no review ends for
//! longer than any deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use service_core::edge::Probe;

/// After this time without a refused review, the overload has ended.
const CALM: Duration = Duration::from_secs(5);
/// After this time of overload, the replica becomes unready.
const SATURATED_AFTER: Duration = Duration::from_secs(30);
/// If no review ends for this long while the limit is reached, the process counts as stuck. One minute is twice the
/// longest time of a review, 30 s.
const STUCK_AFTER: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub struct Load {
    born: Instant,
    places: Semaphore,
    /// The time at which a review last started or ended, in milliseconds. While the limit is reached, no review can
    /// start.
    moved_ms: AtomicU64,
    shedding: Mutex<Option<Shedding>>,
}

#[derive(Debug, Clone, Copy)]
struct Shedding {
    first: Instant,
    last: Instant,
}

/// The permit to answer one review; released on drop.
#[derive(Debug)]
pub struct Slot<'a> {
    load: &'a Load,
    _permit: SemaphorePermit<'a>,
}

impl Load {
    pub fn new(places: usize) -> Self {
        let places = Semaphore::new(places);
        Self { born: Instant::now(), places, moved_ms: AtomicU64::new(0), shedding: Mutex::default() }
    }

    /// A permit to answer a review; `None` if the review must be refused.
    pub fn enter(&self) -> Option<Slot<'_>> {
        if let Ok(permit) = self.places.try_acquire() {
            self.moved();
            return Some(Slot { load: self, _permit: permit });
        }
        let now = Instant::now();
        let mut shedding = self.shedding.lock();
        let first = shedding.filter(|shedding| now - shedding.last <= CALM).map_or(now, |shedding| shedding.first);
        *shedding = Some(Shedding { first, last: now });
        None
    }

    fn moved(&self) {
        let now_ms = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.load.moved();
    }
}

impl Probe for Load {
    fn name(&self) -> &'static str {
        "reviews"
    }

    fn dead(&self) -> Option<String> {
        if self.places.available_permits() > 0 {
            return None;
        }
        let last = Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
        let since = self.born.elapsed().saturating_sub(last);
        (since > STUCK_AFTER).then(|| format!("all places are taken and none has ended for {} s", since.as_secs()))
    }

    fn unready(&self) -> Option<String> {
        let shedding = *self.shedding.lock();
        let saturated = shedding.map(|Shedding { first, last }| (last.elapsed(), last - first));
        let saturated = saturated.filter(|(pause, span)| *pause <= CALM && *span >= SATURATED_AFTER);
        let what = |(_, span): (_, Duration)| {
            format!("reviews have been shed for {} s (admission.maxInFlight)", span.as_secs())
        };
        saturated.map(what).or_else(|| self.dead())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn shedding_for_long_is_unready_and_a_burst_is_not() {
        let load = Load::new(1);
        let place = load.enter().unwrap();
        let shed_for = async |span: Duration| {
            let until = Instant::now() + span;
            while Instant::now() < until {
                assert!(load.enter().is_none());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        shed_for(SATURATED_AFTER / 2).await;
        assert_eq!(load.unready(), None, "a burst");
        tokio::time::sleep(CALM * 2).await;
        shed_for(SATURATED_AFTER / 2 + CALM).await;
        assert_eq!(load.unready(), None, "another burst");
        drop(place);
        let place = load.enter().unwrap();
        shed_for(SATURATED_AFTER).await;
        assert!(load.unready().unwrap().starts_with("reviews have been shed for "));
        assert_eq!(load.dead(), None, "it works as much as it can");
        tokio::time::sleep(CALM * 2).await;
        assert_eq!(load.unready(), None);
        drop(place);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_house_in_which_nothing_ends_is_dead() {
        let load = Load::new(1);
        drop(load.enter().unwrap());
        tokio::time::sleep(STUCK_AFTER * 2).await;
        assert_eq!(load.dead(), None, "nobody came");
        let place = load.enter().unwrap();
        tokio::time::sleep(STUCK_AFTER / 2).await;
        assert_eq!((load.dead(), load.unready()), (None, None), "a long review");
        tokio::time::sleep(STUCK_AFTER).await;
        assert!(load.dead().unwrap().ends_with("none has ended for 90 s"));
        assert!(load.unready().is_some());
        drop(place);
        assert_eq!(load.dead(), None);
    }
}
