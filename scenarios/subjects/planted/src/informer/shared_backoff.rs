//! One back-off for all kinds: `shared-backoff`. The correct client shares none, and passes at once.
//!
//! Owns the pause. It must not know why a kind failed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The default of the framework in the corpus.
const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);

/// The pause of all kinds; clones share it.
#[derive(Clone, Default)]
pub struct SharedBackoff(Option<Arc<Mutex<Pause>>>);

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    failures: u32,
}

impl SharedBackoff {
    /// A back-off that a failure of one kind closes for all.
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// Waits while it is closed.
    pub async fn wait(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        self.0.as_ref()?.lock().until.filter(|until| *until > Instant::now())
    }

    /// Records the end of a step of some kind.
    pub fn ended(&self, failed: bool) {
        let Some(pause) = self.0.as_ref().filter(|_| failed) else { return };
        let mut pause = pause.lock();
        pause.until = Some(Instant::now() + FIRST.saturating_mul(1 << pause.failures.min(8)).min(LONGEST));
        pause.failures += 1;
    }

    /// Records that some kind received something: it works, whatever the state of the others.
    pub fn received(&self) {
        if let Some(pause) = &self.0 {
            pause.lock().failures = 0;
        }
    }
}
