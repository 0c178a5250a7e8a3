//! Heartbeats: they show that a loop still runs, and that the runtime runs tasks.
//!
//! A heartbeat that is not renewed expires, so a loop that hangs is noticed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::health::Probe;

const BEAT: Duration = Duration::from_secs(1);
/// A loop of the service renews its heartbeat each second. A loop counts as stuck after this time without renewal;
/// kubelet asks every 10 s.
const STUCK_AFTER: Duration = Duration::from_secs(10);
/// If a loop's work fails for this long, the process reports that it is not ready.
const FAILING_MAX: Duration = Duration::from_secs(5);
/// If a loop's work fails for this long, the process reports that it needs a restart, because the loop does not recover
/// by itself.
const FAILING_DEAD: Duration = Duration::from_mins(1);
/// A failure of a loop's work that does not repeat within this time is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Heartbeat {
    name: &'static str,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    turned: Instant,
    failing: Option<Failing>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    first: Instant,
    last: Instant,
    what: &'static str,
}

impl Heartbeat {
    /// A heartbeat that was renewed just now.
    pub fn new(name: &'static str) -> Self {
        Self { name, state: Mutex::new(State { turned: Instant::now(), failing: None }) }
    }

    /// Records that the loop runs, with or without work.
    pub fn turn(&self) {
        let mut state = self.state.lock();
        state.turned = Instant::now();
        // Nothing has failed for a while, and there was no work that could succeed.
        state.failing = state.failing.filter(|failing| failing.last.elapsed() <= FORGET_AFTER);
    }

    /// Records that the loop runs and its work succeeded.
    pub fn beat(&self) {
        *self.state.lock() = State { turned: Instant::now(), failing: None };
    }

    /// Records that the loop runs and its work failed.
    pub fn miss(&self, what: &'static str) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.turned = now;
        state.failing.get_or_insert(Failing { first: now, last: now, what }).last = now;
    }

    /// Renews the heartbeat again and again, as long as the runtime runs tasks.
    pub async fn keep_on(self: Arc<Self>) {
        let mut ticks = interval(BEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.beat();
        }
    }

    fn trouble(&self, failing_max: Duration) -> Option<String> {
        let state = self.state.lock();
        let still = state.turned.elapsed();
        if still > STUCK_AFTER {
            return Some(format!("has not turned for {} s", still.as_secs()));
        }
        let Failing { first, what, .. } = state.failing.filter(|failing| failing.first.elapsed() > failing_max)?;
        Some(format!("{what} for {} s", first.elapsed().as_secs()))
    }
}

impl Probe for Heartbeat {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dead(&self) -> Option<String> {
        self.trouble(FAILING_DEAD)
    }

    fn unready(&self) -> Option<String> {
        self.trouble(FAILING_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_runtime_that_runs_no_tasks_is_dead() {
        let heartbeat = Arc::new(Heartbeat::new("runtime"));
        let task = tokio::spawn(Arc::clone(&heartbeat).keep_on());
        tokio::time::sleep(STUCK_AFTER * 5).await;
        assert_eq!((heartbeat.dead(), heartbeat.unready()), (None, None));
        task.abort();
        tokio::time::sleep(STUCK_AFTER + BEAT * 2).await;
        assert!(heartbeat.dead().unwrap().starts_with("has not turned for 1"));
        assert!(heartbeat.unready().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_fails_is_first_unready_then_dead_and_one_success_ends_it() {
        let heartbeat = Heartbeat::new("listener");
        let fail_for = async |span: Duration| {
            let until = Instant::now() + span;
            while Instant::now() < until {
                heartbeat.miss("connections cannot be accepted");
                tokio::time::sleep(BEAT).await;
            }
        };
        fail_for(FAILING_MAX / 2).await;
        assert_eq!(heartbeat.unready(), None);
        fail_for(FAILING_MAX).await;
        assert!(heartbeat.unready().unwrap().starts_with("connections cannot be accepted for "));
        assert_eq!(heartbeat.dead(), None);
        fail_for(FAILING_DEAD).await;
        assert!(heartbeat.dead().is_some());
        heartbeat.beat();
        assert_eq!((heartbeat.dead(), heartbeat.unready()), (None, None));
        fail_for(FAILING_DEAD * 2).await;
        tokio::time::sleep(FORGET_AFTER * 2).await;
        heartbeat.turn();
        assert_eq!(heartbeat.unready(), None, "nobody comes any more, and nothing fails");
    }
}
