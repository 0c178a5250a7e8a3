//! Measures the fraction of a task's time in which the task waits for other servers. The fraction decides whether other
//! servers are the reason for a missed deadline.
//!
//! Each task has one clock, which runs from sending a request until its answer begins. Waiting inside this process (for
//! memory, computation, or the rest of an answer) does not count.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

tokio::task_local! {
    static CURRENT: Arc<Silence>;
}

/// The time that a task has waited for other servers.
#[derive(Debug)]
pub struct Silence {
    begun: Instant,
    /// The clock of the larger task that contains this task.
    whole: Option<Arc<Self>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Number of requests that wait for an answer.
    waiting: usize,
    /// The time since which at least one request has waited.
    since: Instant,
    total: Duration,
}

/// A wait for another server, which ends on drop.
#[derive(Debug)]
pub struct Listening(Arc<Silence>);

impl Silence {
    /// A clock for a task that is not part of another task.
    pub fn new() -> Arc<Self> {
        Self::of(None)
    }

    /// A clock for a subtask of the current task, if the current task has a clock.
    pub fn of_part() -> Arc<Self> {
        Self::of(CURRENT.try_with(Arc::clone).ok())
    }

    fn of(whole: Option<Arc<Self>>) -> Arc<Self> {
        let begun = Instant::now();
        let state = State { waiting: 0, since: begun, total: Duration::ZERO };
        Arc::new(Self { begun, whole, state: Mutex::new(state) })
    }

    /// Runs `work` and measures its waits with this clock.
    pub async fn watch<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), work).await
    }

    /// How long the task has waited for other servers.
    pub fn total(&self) -> Duration {
        let state = self.state.lock();
        let now = if state.waiting > 0 { state.since.elapsed() } else { Duration::ZERO };
        state.total + now
    }

    /// Whether waiting for other servers took most of the whole task's time.
    pub fn is_most(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.is_most(),
            None => 2 * self.total() > self.begun.elapsed(),
        }
    }

    /// Like [`Self::is_most`], for the current task; true for a task without a clock, because such a task waits only
    /// for servers.
    pub fn is_most_here() -> bool {
        CURRENT.try_with(|silence| silence.is_most()).unwrap_or(true)
    }

    /// Starts a wait for another server; `None` if the current task has no clock.
    pub fn listen() -> Option<Listening> {
        let silence = CURRENT.try_with(Arc::clone).ok()?;
        silence.begins();
        Some(Listening(silence))
    }

    fn begins(&self) {
        let mut state = self.state.lock();
        if state.waiting == 0 {
            state.since = Instant::now();
        }
        state.waiting += 1;
        drop(state);
        if let Some(whole) = &self.whole {
            whole.begins();
        }
    }

    fn ends(&self) {
        let mut state = self.state.lock();
        state.waiting -= 1;
        if state.waiting == 0 {
            let silent = state.since.elapsed();
            state.total += silent;
        }
        drop(state);
        if let Some(whole) = &self.whole {
            whole.ends();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.ends();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn listened(time: Duration) {
        let _listening = Silence::listen();
        sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_waited_for_here_is_not_the_peers_silence() {
        let silence = Silence::new();
        silence.watch(listened(SECOND)).await;
        assert!(silence.is_most());
        silence.watch(sleep(SECOND)).await;
        assert_eq!(silence.total(), SECOND);
        assert!(!silence.is_most());
        assert!(Silence::is_most_here() && Silence::listen().is_none(), "here nobody watches");
    }

    #[tokio::test(start_paused = true)]
    async fn parts_count_for_the_whole_and_times_at_once_count_once() {
        let whole = Silence::new();
        let part = whole
            .watch(async {
                sleep(2 * SECOND).await;
                let part = Silence::of_part();
                part.watch(async { tokio::join!(listened(SECOND), listened(SECOND)) }).await;
                part
            })
            .await;
        assert_eq!((part.total(), whole.total()), (SECOND, SECOND));
        assert!(!part.is_most(), "the whole decides");
    }
}
