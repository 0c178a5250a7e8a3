//! Rate limits of calls: a token bucket for each client, and a token bucket for all clients.
//!
//! A client above its own rate uses up no tokens of other clients, because its own bucket is checked first.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::config::{self, Bucket};

/// Number of clients at which clients with full buckets are forgotten, because the buckets then use some megabytes of
/// memory.
const CLIENTS_MAX: usize = 10_000;

type Keyed = RateLimiter<Arc<str>, HashMapStateStore<Arc<str>, RandomState>, DefaultClock>;

pub struct Limits {
    rate: config::Rate,
    clock: DefaultClock,
    clients: Keyed,
    all: DefaultDirectRateLimiter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSoon {
    /// The owner of the empty bucket, `client` or `all`, as a label value.
    pub whose: &'static str,
    /// Time until the next token.
    pub wait: Duration,
}

impl Limits {
    pub fn new(rate: config::Rate) -> Self {
        let clock = DefaultClock::default();
        let clients = RateLimiter::new(quota(rate.client), HashMapStateStore::default(), clock.clone());
        Self { rate, clients, all: RateLimiter::direct(quota(rate.all)), clock }
    }

    pub fn rate(&self) -> config::Rate {
        self.rate
    }

    /// Takes one token of `client` and one token of all clients.
    pub fn take(&self, client: &Arc<str>) -> Result<(), TooSoon> {
        let now = self.clock.now();
        let too_soon = |whose, wait| TooSoon { whose, wait };
        if let Err(until) = self.clients.check_key(client) {
            return Err(too_soon("client", until.wait_time_from(now)));
        }
        self.all.check().map_err(|until| too_soon("all", until.wait_time_from(now)))
    }

    /// If there are many clients, forgets the clients with full buckets.
    pub fn sweep(&self) {
        if self.clients.len() > CLIENTS_MAX {
            self.clients.retain_recent();
            self.clients.shrink_to_fit();
        }
    }
}

fn quota(bucket: Bucket) -> Quota {
    Quota::per_second(bucket.per_second).allow_burst(bucket.burst)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn bucket(per_second: u32, burst: u32) -> Bucket {
        let number = |value| NonZeroU32::new(value).unwrap();
        Bucket { per_second: number(per_second), burst: number(burst) }
    }

    #[test]
    fn one_client_does_not_take_from_another_and_all_together_have_a_limit() {
        let limits = Limits::new(config::Rate { client: bucket(1, 3), all: bucket(1, 5) });
        let (greedy, honest): (Arc<str>, Arc<str>) = ("greedy".into(), "honest".into());
        let taken = |who: &Arc<str>| (0..100).filter(|_| limits.take(who).is_ok()).count();
        assert_eq!(taken(&greedy), 3);
        let soon = limits.take(&greedy).unwrap_err();
        assert_eq!(soon.whose, "client");
        assert!(soon.wait > Duration::ZERO && soon.wait <= Duration::from_secs(1), "{soon:?}");
        assert_eq!(taken(&honest), 2, "the hundred calls in vain took nothing of the other two");
        let third: Arc<str> = "third".into();
        assert_eq!(limits.take(&third).unwrap_err().whose, "all");
    }
}
