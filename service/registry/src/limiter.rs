//! The limiter of one registry: requests at one time and per second, and a circuit breaker for a registry that is down.
//!
//! After several failed requests in a row, the breaker is in doubt. A caller then checks the registry's health; only
//! the result of this check opens the breaker. While the breaker is open, every request fails at once, until a later
//! caller checks again. Callers decide which results count as failures.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::metrics::Breaker;
use service_core::wire::Silence;

/// Number of failures in a row after which the registry's health is checked: about three requests with all their
/// attempts.
pub const BREAK_AFTER: u32 = 10;
/// Time for which the breaker stays open: about the time limit of one request, and short compared with a restart of a
/// registry.
pub const BREAK_FOR: Duration = Duration::from_secs(5);
/// An abandoned request counts as a failure only if the registry was silent for this long. If the registry was silent
/// for a shorter time, the caller had too little time.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of requests at one time; further requests wait, at most until their deadline.
    pub concurrent: usize,
    /// Maximum number of requests per second; further requests wait. `None` means unlimited.
    pub per_second: Option<u32>,
}

#[derive(Debug)]
pub struct Limiter {
    limits: Limits,
    places: Semaphore,
    state: Mutex<State>,
    breaker: Breaker,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    cause: String,
    /// The end of the time in which the breaker is open; afterwards the breaker is in doubt. The value is `None` if the
    /// breaker is closed.
    open_until: Option<Instant>,
    /// Whether a caller is checking the registry's health.
    probing: bool,
    /// The time at which the rate limit allows the next request.
    next: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Shut {
    #[error("has failed {BREAK_AFTER} times in a row and is not asked for some seconds; at last: {cause}")]
    Broken { cause: String },
    /// Too many requests were open until the deadline.
    #[error("is asked as much as it may be (maxConcurrent, maxPerSecond)")]
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The registry answers health checks.
    Well,
    /// The registry does not answer, or answers with a failure of its own.
    Sick(String),
    /// The check had no result, so another caller must check.
    Unknown,
}

/// The permission to send a request. If the permission is dropped without a result, the request counts as a failure
/// only if the registry was silent for a long time.
#[derive(Debug)]
pub struct Pass<'g> {
    limiter: &'g Limiter,
    begun: Instant,
    probe: bool,
    said: bool,
    place: Option<SemaphorePermit<'g>>,
    silence: Option<Arc<Silence>>,
}

impl Limiter {
    pub fn new(limits: Limits, breaker: Breaker) -> Self {
        Self { limits, places: Semaphore::new(limits.concurrent), state: Mutex::default(), breaker }
    }

    /// Waits for the permission to send a request, at most until `deadline`.
    pub async fn enter(&self, deadline: Instant) -> Result<Pass<'_>, Shut> {
        let now = Instant::now();
        let (mut pass, at) = self.admit(now, deadline)?;
        // tokio's timer would wait for the end of the millisecond even if it is due.
        if at > now {
            sleep_until(at).await;
        }
        let place = timeout_at(deadline, self.places.acquire()).await.map_err(|_elapsed| Shut::Full);
        // The wait for a place is over only now; it must not count against the registry.
        pass.begun = Instant::now();
        pass.place = Some(place?.expect("the semaphore is never closed"));
        Ok(pass)
    }

    /// A permission, and the time from which the request may be sent.
    fn admit(&self, now: Instant, deadline: Instant) -> Result<(Pass<'_>, Instant), Shut> {
        let mut state = self.state.lock();
        let probe = match state.open_until {
            // Other callers may continue meanwhile: nothing is known yet.
            None => state.failures >= BREAK_AFTER && !state.probing,
            Some(until) if now >= until && !state.probing => true,
            Some(_) => return Err(Shut::Broken { cause: state.cause.clone() }),
        };
        let mut at = now;
        if let Some(per_second) = self.limits.per_second {
            let gap = Duration::from_secs(1) / per_second.max(1);
            // After a quiet second, a burst of as many requests is allowed.
            let credit = now.checked_sub(Duration::from_secs(1).saturating_sub(gap)).unwrap_or(now);
            let next = state.next.map_or(credit, |next| next.max(credit));
            at = next.max(now);
            if at > deadline {
                return Err(Shut::Full);
            }
            state.next = Some(next + gap);
        }
        state.probing |= probe;
        Ok((Pass { limiter: self, begun: at, probe, said: false, place: None, silence: None }, at))
    }
}

impl Pass<'_> {
    /// Whether the registry's health must be checked before the request. The caller passes the result of the check to
    /// [`Self::probed`].
    pub fn is_in_doubt(&self) -> bool {
        self.probe
    }

    /// Records a health check, which alone opens, keeps open and closes the breaker. Returns `Ok` if the request may be
    /// sent.
    pub fn probed(mut self, health: Health) -> Result<Self, Shut> {
        self.probe = false;
        self.begun = Instant::now();
        let mut state = self.limiter.state.lock();
        state.probing = false;
        match health {
            Health::Well => {
                if state.open_until.take().is_some() {
                    self.limiter.breaker.closed();
                }
                state.failures = 0;
            }
            Health::Sick(cause) => {
                if state.open_until.replace(self.begun + BREAK_FOR).is_none() {
                    self.limiter.breaker.opened();
                }
                state.cause = cause;
            }
            Health::Unknown => {}
        }
        let broken = state.open_until.map(|_| Shut::Broken { cause: state.cause.clone() });
        drop(state);
        match broken {
            Some(broken) => Err(broken),
            None => Ok(self),
        }
    }

    /// Sets the clock of the request, which measures how long the request waits for other servers. Time of waiting for
    /// anything else does not count against the registry.
    pub fn watched(&mut self, silence: &Arc<Silence>) {
        self.silence = Some(Arc::clone(silence));
    }

    /// Ends the request because of a limit of this program, without a result. The registry is not at fault for such an
    /// end.
    pub fn untold(mut self) {
        self.said = true;
        self.limiter.state.lock().probing &= !self.probe;
    }

    /// Records that the registry answered, whatever the answer was.
    pub fn well(mut self) {
        self.said = true;
        let mut state = self.limiter.state.lock();
        state.probing &= !self.probe;
        if state.open_until.is_none() {
            state.failures = 0;
        }
    }

    /// Records that the registry did not answer, or answered with a failure of its own.
    pub fn sick(mut self, cause: &str) {
        self.said = true;
        self.failed(cause);
    }

    fn failed(&self, cause: &str) {
        let mut state = self.limiter.state.lock();
        state.probing &= !self.probe;
        // Requests that were under way when it opened add nothing new.
        if state.open_until.is_none() {
            state.failures = state.failures.saturating_add(1);
            cause.clone_into(&mut state.cause);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.said {
            return;
        }
        if self.probe {
            self.limiter.state.lock().probing = false;
            return;
        }
        let silent = self.silence.as_ref().map_or_else(|| self.begun.elapsed(), |silence| silence.total());
        if self.place.is_some() && silent >= GIVEN_UP_AFTER {
            self.failed("no answer before the deadline of whoever asked");
        }
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        if self.state.get_mut().open_until.is_some() {
            self.breaker.gone();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::{advance, sleep};

    use super::*;

    fn limiter(concurrent: usize, per_second: Option<u32>) -> Limiter {
        Limiter::new(Limits { concurrent, per_second }, Breaker::default())
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    async fn fail(limiter: &Limiter, times: u32) {
        for _ in 0..times {
            limiter.enter(later()).await.unwrap().sick("503");
        }
    }

    async fn is_broken(limiter: &Limiter) -> bool {
        matches!(limiter.enter(later()).await, Err(Shut::Broken { cause }) if cause == "503")
    }

    /// Records the result of a health check; `sick` is the registry's failure, or `None`.
    async fn probed(limiter: &Limiter, sick: Option<&str>) -> bool {
        let pass = limiter.enter(later()).await.unwrap();
        assert!(pass.is_in_doubt());
        let health = sick.map_or(Health::Well, |cause| Health::Sick(cause.to_owned()));
        pass.probed(health).map(Pass::well).is_err()
    }

    /// A few requests within one millisecond do not wait for the rate limit: a signature check has four requests, one
    /// after the other.
    #[tokio::test]
    async fn what_may_be_asked_at_once_does_not_wait() {
        let limits = [limiter(64, None), limiter(64, Some(1000))];
        // Fewer than tokio lets a task do in one go.
        for _ in 0..20 {
            let passes = limits.each_ref().map(|limiter| limiter.enter(later()).now_or_never());
            assert!(passes.iter().all(|pass| matches!(pass, Some(Ok(_)))), "{passes:?}");
            for pass in passes {
                pass.unwrap().unwrap().well();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_one_probe_decides() {
        let limiter = limiter(64, None);
        fail(&limiter, BREAK_AFTER - 1).await;
        let under_way = [limiter.enter(later()).await.unwrap(), limiter.enter(later()).await.unwrap()];
        fail(&limiter, 1).await;
        assert!(probed(&limiter, Some("503")).await);
        assert!(is_broken(&limiter).await);
        assert_eq!((limiter.breaker.open(), limiter.breaker.transitions()), (1, (1, 0)));
        advance(BREAK_FOR).await;
        let probe = limiter.enter(later()).await.unwrap();
        assert!(is_broken(&limiter).await, "one probe at a time");
        drop(probe);
        for pass in under_way {
            pass.sick("502");
        }
        assert!(probed(&limiter, Some("503")).await, "a probe that was given up leaves its place");
        advance(BREAK_FOR / 2).await;
        assert!(is_broken(&limiter).await, "the probe failed");
        advance(BREAK_FOR / 2).await;
        assert!(!probed(&limiter, None).await);
        assert_eq!((limiter.breaker.open(), limiter.breaker.transitions()), (0, (1, 1)));
        fail(&limiter, BREAK_AFTER - 1).await;
        assert!(!limiter.enter(later()).await.unwrap().is_in_doubt(), "it counts from the beginning");
    }

    /// A Pod with a dozen images that get status 500 does not open the breaker while the registry is healthy.
    #[tokio::test(start_paused = true)]
    async fn images_that_fail_do_not_open_it_while_the_registry_is_well() {
        let limiter = limiter(64, None);
        for _ in 0..3 {
            fail(&limiter, BREAK_AFTER).await;
            let asking = limiter.enter(later()).await.unwrap();
            let beside = limiter.enter(later()).await.unwrap();
            assert!(asking.is_in_doubt() && !beside.is_in_doubt(), "others are asked meanwhile");
            asking.probed(Health::Well).unwrap().sick("503");
            beside.sick("503");
        }
        assert_eq!((limiter.breaker.open(), limiter.breaker.transitions()), (0, (0, 0)));
    }

    /// A health check that ends early because its caller has too little time leaves the breaker in doubt.
    #[tokio::test(start_paused = true)]
    async fn what_nobody_could_tell_neither_opens_nor_closes_it() {
        let limiter = limiter(64, None);
        fail(&limiter, BREAK_AFTER).await;
        limiter.enter(later()).await.unwrap().probed(Health::Unknown).expect("the question may be asked").sick("503");
        assert_eq!(limiter.breaker.open(), 0);
        assert!(probed(&limiter, Some("503")).await);
        advance(BREAK_FOR).await;
        let asking = limiter.enter(later()).await.unwrap();
        assert!(matches!(asking.probed(Health::Unknown), Err(Shut::Broken { cause }) if cause == "503"));
        assert_eq!(limiter.breaker.open(), 1);
        assert!(!probed(&limiter, None).await, "the next one asks at once");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_between_failures_keeps_it_closed() {
        let limiter = limiter(64, None);
        for _ in 0..3 {
            fail(&limiter, BREAK_AFTER - 1).await;
            limiter.enter(later()).await.unwrap().well();
        }
        assert!(!limiter.enter(later()).await.unwrap().is_in_doubt());
    }

    /// A registry that never answers opens the breaker, although every caller stops early.
    #[tokio::test(start_paused = true)]
    async fn questions_that_are_given_up_late_are_failures_and_early_ones_are_not() {
        let limiter = limiter(64, None);
        for (patience, opens) in [(GIVEN_UP_AFTER / 2, false), (GIVEN_UP_AFTER, true)] {
            for _ in 0..BREAK_AFTER {
                let pass = limiter.enter(later()).await.unwrap();
                sleep(patience).await;
                drop(pass);
            }
            assert_eq!(limiter.enter(later()).await.unwrap().is_in_doubt(), opens, "{patience:?}");
        }
        assert!(probed(&limiter, Some("503")).await);
        let open = limiter.breaker.clone();
        assert_eq!(open.open(), 1);
        drop(limiter);
        assert_eq!(open.open(), 0, "what is gone is not open");
    }

    /// A registry that answers at once never opens the breaker, however long this program takes to read and check its
    /// answers.
    #[tokio::test(start_paused = true)]
    async fn what_waits_for_us_is_no_failure_of_the_registry() {
        let limiter = limiter(64, None);
        for _ in 0..2 * BREAK_AFTER {
            let (mut pass, silence) = (limiter.enter(later()).await.unwrap(), Silence::new());
            pass.watched(&silence);
            silence.watch(sleep(2 * GIVEN_UP_AFTER)).await;
            drop(pass);
            limiter.enter(later()).await.unwrap().untold();
        }
        assert!(!limiter.enter(later()).await.unwrap().is_in_doubt());
        for _ in 0..BREAK_AFTER {
            let (mut pass, silence) = (limiter.enter(later()).await.unwrap(), Silence::new());
            pass.watched(&silence);
            let silent = async {
                let _listening = Silence::listen();
                sleep(GIVEN_UP_AFTER).await;
            };
            silence.watch(silent).await;
            drop(pass);
        }
        assert!(limiter.enter(later()).await.unwrap().is_in_doubt(), "its silence is");
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_holds_over_time_and_says_so_when_the_deadline_is_nearer() {
        let (limiter, now) = (limiter(64, Some(10)), Instant::now());
        let times: Vec<_> = (0..25).map(|_| limiter.admit(now, later()).unwrap().1 - now).collect();
        assert!(times[..10].iter().all(Duration::is_zero), "{times:?}");
        assert_eq!(times[24], Duration::from_millis(1500));
        assert_eq!(limiter.enter(now + Duration::from_secs(1)).await.unwrap_err(), Shut::Full);
    }

    #[tokio::test(start_paused = true)]
    async fn those_for_whom_there_is_no_place_wait_and_count_as_nothing() {
        let limiter = limiter(1, None);
        let pass = limiter.enter(later()).await.unwrap();
        for _ in 0..BREAK_AFTER {
            assert_eq!(limiter.enter(Instant::now() + 2 * GIVEN_UP_AFTER).await.unwrap_err(), Shut::Full);
        }
        pass.well();
        assert!(limiter.enter(later()).await.is_ok());
    }
}
