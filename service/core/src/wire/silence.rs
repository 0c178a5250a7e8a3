//! The time that some work spent waiting for peers, of all its time: it decides which side is at fault when the
//! deadline passes.
//!
//! Each piece of work has one clock, which runs from the sending of a request until its answer begins. Waiting on our
//! own side (for a turn, memory, computing, the rest of an answer) does not count.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

tokio::task_local! {
    static CURRENT: Arc<Silence>;
}

/// The waiting time for the peers of some work.
#[derive(Debug)]
pub struct Silence {
    begun: Instant,
    /// The work that this is a part of.
    whole: Option<Arc<Self>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Number of requests without an answer so far.
    waiting: usize,
    /// Since when at least one request waits.
    since: Instant,
    total: Duration,
}

/// A wait for a peer, until dropped.
#[derive(Debug)]
pub struct Listening(Arc<Silence>);

impl Silence {
    /// A clock for work that is no part of other work.
    pub fn new() -> Arc<Self> {
        Self::of(None)
    }

    /// A clock for a part of the current work, if that work has a clock.
    pub fn of_part() -> Arc<Self> {
        Self::of(CURRENT.try_with(Arc::clone).ok())
    }

    fn of(whole: Option<Arc<Self>>) -> Arc<Self> {
        let begun = Instant::now();
        let state = State { waiting: 0, since: begun, total: Duration::ZERO };
        Arc::new(Self { begun, whole, state: Mutex::new(state) })
    }

    /// Runs `work` under this clock.
    pub async fn watch<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), work).await
    }

    /// How long peers were waited for.
    pub fn total(&self) -> Duration {
        let state = self.state.lock();
        let now = if state.waiting > 0 { state.since.elapsed() } else { Duration::ZERO };
        state.total + now
    }

    /// Whether peers took most of the time of the whole work.
    pub fn is_most(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.is_most(),
            None => 2 * self.total() > self.begun.elapsed(),
        }
    }

    /// Like [`Self::is_most`], for the current work; true without a clock, because such work waits for nothing else.
    pub fn is_most_here() -> bool {
        CURRENT.try_with(|silence| silence.is_most()).unwrap_or(true)
    }

    /// Begins a wait for a peer; `None` if the current work has no clock.
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
