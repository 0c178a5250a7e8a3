//! The run's clock: zero is the start of the warm-up.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Milliseconds since the start of the warm-up. Earlier events (the start of the world, the fill of the population)
/// have the time zero. Clones share the same zero.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    zero: Arc<OnceLock<Instant>>,
}

impl Clock {
    /// Starts the clock, unless it runs already.
    pub fn start(&self, zero: Instant) {
        let _ = self.zero.set(zero);
    }

    /// Whether it has been started.
    pub fn runs(&self) -> bool {
        self.zero.get().is_some()
    }

    /// The time of an instant, in milliseconds.
    pub fn at_ms(&self, instant: Instant) -> u64 {
        self.zero.get().map_or(0, |zero| millis(instant.saturating_duration_since(*zero)))
    }

    /// The instant of a time; `None` before the clock runs.
    pub fn instant(&self, at_ms: u64) -> Option<Instant> {
        self.zero.get()?.checked_add(Duration::from_millis(at_ms))
    }

    /// The present time in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.at_ms(Instant::now())
    }
}

/// Whole milliseconds of a duration.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
