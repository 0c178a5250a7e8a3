//! The mistake `shared-backoff`: one back-off for all kinds of objects. In the correct client this module does nothing
//! and never waits. With the mistake this module holds the common pause, without the reason why a kind failed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// First pause, the default of the framework that had this bug.
const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);

/// A pause that all kinds share. Clones share the same pause.
#[derive(Clone, Default)]
pub struct SharedBackoff(Option<Arc<Mutex<Pause>>>);

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    failures: u32,
}

impl SharedBackoff {
    /// A back-off in which the failure of one kind makes all kinds wait.
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// Waits while the common pause lasts.
    pub async fn wait(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        self.0.as_ref()?.lock().until.filter(|until| *until > Instant::now())
    }

    /// Records whether a list or watch of some kind has failed.
    pub fn ended(&self, failed: bool) {
        let Some(pause) = self.0.as_ref().filter(|_| failed) else { return };
        let mut pause = pause.lock();
        pause.until = Some(Instant::now() + FIRST.saturating_mul(1 << pause.failures.min(8)).min(LONGEST));
        pause.failures += 1;
    }

    /// Records that some kind received an event, which ends the common pause.
    pub fn received(&self) {
        if let Some(pause) = &self.0 {
            pause.lock().failures = 0;
        }
    }
}
