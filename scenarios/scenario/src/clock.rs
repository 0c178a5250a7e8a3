//! The run's clock: zero is the start of the warm-up.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Milliseconds since the start of the warm-up. Events before the warm-up, such as starting servers and creating the
/// first objects, have the time zero. Clones of a clock share its start.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    zero: Arc<OnceLock<Instant>>,
}

impl Clock {
    /// Starts the clock at `zero`, unless it has been started already.
    pub fn start(&self, zero: Instant) {
        let _ = self.zero.set(zero);
    }

    /// Whether the clock has been started.
    pub fn runs(&self) -> bool {
        self.zero.get().is_some()
    }

    /// Milliseconds from the start of the clock to `instant`.
    pub fn at_ms(&self, instant: Instant) -> u64 {
        self.zero.get().map_or(0, |zero| millis(instant.saturating_duration_since(*zero)))
    }

    /// The instant at `at_ms` milliseconds of the clock; `None` if the clock has not been started.
    pub fn instant(&self, at_ms: u64) -> Option<Instant> {
        self.zero.get()?.checked_add(Duration::from_millis(at_ms))
    }

    /// The present time of the clock in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.at_ms(Instant::now())
    }
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
