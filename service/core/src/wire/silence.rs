//! How long peers were waited for, of all the time that some work took: whose failure it is when its time runs out.
//!
//! Owns one clock for each piece of work, which runs while a request is sent and its answer has not begun. What the work waits for here
//! (a turn, memory, its own computing, the rest of an answer) is not the peer's silence.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

tokio::task_local! {
    static CURRENT: Arc<Silence>;
}

/// The silence of the peers of some work.
#[derive(Debug)]
pub struct Silence {
    begun: Instant,
    /// The work that this is a part of.
    whole: Option<Arc<Self>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Peers that are waited for.
    waiting: usize,
    /// Since when at least one is.
    since: Instant,
    total: Duration,
}

/// A peer is waited for until this is dropped.
#[derive(Debug)]
pub struct Listening(Arc<Silence>);

impl Silence {
    /// The clock of work that is no part of other work.
    pub fn new() -> Arc<Self> {
        Self::of(None)
    }

    /// The clock of a part of the work in which this is called, when that has one.
    pub fn of_part() -> Arc<Self> {
        Self::of(CURRENT.try_with(Arc::clone).ok())
    }

    fn of(whole: Option<Arc<Self>>) -> Arc<Self> {
        let begun = Instant::now();
        let state = State { waiting: 0, since: begun, total: Duration::ZERO };
        Arc::new(Self { begun, whole, state: Mutex::new(state) })
    }

    /// Does `work` under this clock.
    pub async fn watch<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        CURRENT.scope(Arc::clone(self), work).await
    }

    /// How long a peer was waited for.
    pub fn total(&self) -> Duration {
        let state = self.state.lock();
        let now = if state.waiting > 0 { state.since.elapsed() } else { Duration::ZERO };
        state.total + now
    }

    /// Whether peers were waited for most of the time of the whole work.
    pub fn is_most(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.is_most(),
            None => 2 * self.total() > self.begun.elapsed(),
        }
    }

    /// The same of the work in which this is called; true of work without a clock, which has nothing else to wait for.
    pub fn is_most_here() -> bool {
        CURRENT.try_with(|silence| silence.is_most()).unwrap_or(true)
    }

    /// From now on a peer is waited for; nothing where no work has a clock.
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
