//! Memory that is granted in turn (fair queueing): a large request waits because of its own size, and small requests do
//! not wait for it.
//!
//! Each payer (an image) has a virtual clock, which advances by the amounts of memory that the payer requests. The
//! request with the earliest end on its payer's clock is granted next. The clock of the queue advances by the granted
//! amounts, divided among the waiting payers; a new payer starts at the queue's clock. So small requests pass a large
//! request only until their payers have received as much memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The virtual clock of one payer: the amount of memory granted to the payer so far. The clock is used only under the
/// lock of the queue.
#[derive(Debug, Default)]
pub struct Account(AtomicU64);

/// A limited amount of memory, in units, and the requests that wait for it.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: u64,
    now: u64,
    serial: u64,
    /// Waiting requests, sorted by the end on the payer's clock, then by arrival.
    waiting: BTreeMap<(u64, u64), Wish>,
}

#[derive(Debug)]
struct Wish {
    units: u64,
    granted: oneshot::Sender<Grant>,
}

/// Granted units of memory; released on drop.
#[derive(Debug)]
pub struct Grant {
    turns: Option<Arc<Turns>>,
    units: u64,
}

/// A waiting request; a dropped request leaves the queue.
struct Waiting<'t> {
    turns: &'t Arc<Turns>,
    key: (u64, u64),
}

impl Turns {
    pub fn new(units: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { free: units, now: 0, serial: 0, waiting: BTreeMap::new() }) })
    }

    /// Waits for `units` on the account of `payer`; `None` if `deadline` passes first.
    pub async fn take(self: &Arc<Self>, payer: &Account, units: u64, deadline: Instant) -> Option<Grant> {
        let (key, wait) = {
            let mut state = self.state.lock();
            let end = state.now.max(payer.0.load(Ordering::Relaxed)).saturating_add(units);
            payer.0.store(end, Ordering::Relaxed);
            let (granted, wait) = oneshot::channel();
            state.serial += 1;
            let key = (end, state.serial);
            state.waiting.insert(key, Wish { units, granted });
            self.grant(&mut state);
            (key, wait)
        };
        let _waiting = Waiting { turns: self, key };
        timeout_at(deadline, wait).await.ok()?.ok()
    }

    /// Grants waiting requests in order, as long as enough memory is free for the next request.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while let Some(next) = state.waiting.first_entry().filter(|next| next.get().units <= state.free) {
            let Wish { units, granted } = next.remove();
            let grant = Grant { turns: Some(Arc::clone(self)), units };
            match granted.send(grant) {
                Ok(()) => {
                    state.free -= units;
                    state.now = state.now.saturating_add(units.div_ceil(state.waiting.len() as u64 + 1));
                }
                // The requester has gone. Nothing was taken, so nothing is given back.
                Err(mut grant) => grant.turns = None,
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        // The next request may fit.
        if state.waiting.remove(&self.key).is_some() {
            self.turns.grant(&mut state);
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        let mut state = turns.state.lock();
        state.free += self.units;
        turns.grant(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    /// The order in which requests `(payer, units)` are granted one by one, if all arrive while no memory is free.
    async fn order(turns: &Arc<Turns>, all: u64, wishes: &[(usize, u64)]) -> Vec<(usize, u64)> {
        let payers: Vec<Account> = (0..8).map(|_| Account::default()).collect();
        let taken = turns.take(&Account::default(), all, later()).await.unwrap();
        let order = Mutex::new(Vec::new());
        let wait = futures_util::future::join_all(wishes.iter().map(async |wish| {
            let grant = turns.take(&payers[wish.0], wish.1, later()).await.unwrap();
            order.lock().push(*wish);
            tokio::task::yield_now().await;
            drop(grant);
        }));
        tokio::join!(wait, async {
            tokio::task::yield_now().await;
            drop(taken);
        });
        order.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn each_payer_has_its_turn_and_a_small_wish_waits_for_no_large_one() {
        let turns = Turns::new(9);
        // Payer 0 came first with all its requests; 1 and 2 come later.
        let wishes = [(0, 9), (0, 9), (0, 9), (1, 9), (1, 9), (2, 1)];
        assert_eq!(order(&turns, 9, &wishes).await, [(2, 1), (0, 9), (1, 9), (0, 9), (1, 9), (0, 9)]);
        assert_eq!(turns.state.lock().free, 9);
    }

    /// Small requests pass a large request only until they have received as much memory as the large request needs.
    #[tokio::test(start_paused = true)]
    async fn small_wishes_do_not_pass_a_large_one_for_ever() {
        let turns = Turns::new(10);
        let large = Account::default();
        let mut held = turns.take(&Account::default(), 5, later()).await;
        let mut wait = Box::pin(turns.take(&large, 10, later()));
        assert!((&mut wait).now_or_never().is_none());
        let mut passed = 0;
        while turns.state.lock().waiting.len() == 1 {
            let next = turns.take(&Account::default(), 1, later()).now_or_never();
            let Some(next) = next else { break };
            held = next;
            passed += 1;
            assert!(passed < 100);
        }
        drop(held);
        assert!(wait.now_or_never().flatten().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_gives_its_place_and_what_it_was_given_back() {
        let (turns, leaving) = (Turns::new(10), Account::default());
        let held = turns.take(&Account::default(), 6, later()).await.unwrap();
        let soon = Instant::now() + Duration::from_secs(1);
        assert!(turns.take(&Account::default(), 5, soon).await.is_none());
        let mut left = Box::pin(turns.take(&leaving, 5, later()));
        assert!((&mut left).now_or_never().is_none());
        drop(held);
        drop(left);
        let state = turns.state.lock();
        assert_eq!((state.free, state.waiting.len()), (10, 0));
    }
}
