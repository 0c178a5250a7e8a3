//! Single flight: several callers that need the same lookup at the same time share one lookup.
//!
//! The waiting callers drive the lookup together. When the last caller stops waiting, the lookup stops at once. No lock
//! is held during a lookup.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use service_core::wire::Silence;

type Flight<V> = WeakShared<BoxFuture<'static, V>>;
type FlightsByKey<V> = Arc<Mutex<HashMap<String, Entry<V>>>>;

struct Entry<V: Clone> {
    serial: u64,
    flight: Flight<V>,
    silence: Arc<Silence>,
}

pub struct Joined<V: Clone> {
    pub flight: Shared<BoxFuture<'static, V>>,
    pub started: bool,
    /// The time that the lookup has waited for other servers.
    pub silence: Arc<Silence>,
}

pub struct Flights<V: Clone> {
    board: FlightsByKey<V>,
}

impl<V: Clone + Send + Sync + 'static> Flights<V> {
    pub fn new() -> Self {
        Self { board: Arc::default() }
    }

    /// Joins the lookup of `key`, or starts the lookup `work` with a new clock.
    pub fn join(&self, key: &str, work: impl FnOnce() -> BoxFuture<'static, V>) -> Joined<V> {
        let mut board = self.board.lock();
        if let Some(place) = board.get(key)
            && let Some(flight) = place.flight.upgrade()
        {
            return Joined { flight, started: false, silence: Arc::clone(&place.silence) };
        }
        let serial = board.get(key).map_or(0, |place| place.serial + 1);
        let landing = Landing { board: Arc::clone(&self.board), key: key.to_owned(), serial };
        let (work, silence) = (work(), Silence::new());
        let clock = Arc::clone(&silence);
        let flight = async move {
            let value = clock.watch(work).await;
            drop(landing);
            value
        };
        let flight = flight.boxed().shared();
        let weak = flight.downgrade().expect("a future that was never polled has not ended");
        board.insert(key.to_owned(), Entry { serial, flight: weak, silence: Arc::clone(&silence) });
        Joined { flight, started: true, silence }
    }

    pub fn len(&self) -> usize {
        self.board.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<V: Clone + Send + Sync + 'static> Default for Flights<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Removes a lookup from the table when the lookup ends, unless a later lookup has replaced it.
struct Landing<V: Clone> {
    board: FlightsByKey<V>,
    key: String,
    serial: u64,
}

impl<V: Clone> Drop for Landing<V> {
    fn drop(&mut self) {
        let mut board = self.board.lock();
        if board.get(&self.key).is_some_and(|place| place.serial == self.serial) {
            board.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn five_hundred_callers_cause_one_question() {
        let flights = Arc::new(Flights::<usize>::new());
        let asked = Arc::new(AtomicUsize::new(0));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let (flights, asked) = (Arc::clone(&flights), Arc::clone(&asked));
            callers.spawn(async move {
                let Joined { flight, .. } = flights.join("a", || {
                    async move {
                        let n = asked.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        n
                    }
                    .boxed()
                });
                flight.await
            });
        }
        while let Some(value) = callers.join_next().await {
            assert_eq!(value.unwrap(), 0);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(flights.is_empty(), "an ended flight leaves the board");
    }

    #[tokio::test(start_paused = true)]
    async fn the_starter_may_leave_and_the_others_still_get_the_answer() {
        let flights = Flights::<u8>::new();
        let work = || tokio::time::sleep(Duration::from_secs(1)).map(|()| 7).boxed();
        let Joined { flight: starter, started, .. } = flights.join("a", work);
        let Joined { flight: joined, started: again, .. } = flights.join("a", work);
        assert!(started && !again);
        assert!(tokio::time::timeout(Duration::from_millis(10), starter).await.is_err());
        assert_eq!(joined.await, 7);
        let Joined { flight: alone, started, .. } = flights.join("a", work);
        assert!(started);
        drop(alone);
        assert!(flights.is_empty(), "an abandoned flight leaves the board");
    }
}
