//! The limit of frames without content, after which the client ends the connection with `ENHANCE_YOUR_CALM`. Pure: no
//! I/O.
//!
//! HTTP/2 allows a PING, an empty DATA frame, or a window update of one byte, but each takes time from other calls.
//! Each such frame uses up one unit of a budget. This budget grows with time, and with every sent frame, because a
//! server may react to it.

use std::time::Instant;

use super::frame::{Code, Fault};

/// The initial budget of a connection; no HTTP/2 implementation starts with more than a dozen such frames.
const FIRST: u32 = 10_000;
/// The units that each sent frame adds: one window update for each 256 of its at most 16 KiB.
const FOR_EACH_SENT: u32 = 64;
/// The units that each second adds; even one PING a second is unusual.
const PER_SECOND: f64 = 1000.0;
/// The largest budget. Reading this many frames takes a moment, and a thousand streams with bodies of 3 MiB may cause
/// as many.
const SAVED_MAX: u32 = 1_000_000;

/// The budget of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    left: u32,
    filled: Instant,
}

impl Patience {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: FIRST, filled: now }
    }

    /// Called for a sent frame to which the server may react.
    pub(super) fn sent(&mut self) {
        self.left = self.left.saturating_add(FOR_EACH_SENT).min(SAVED_MAX);
    }

    /// Called for a received frame without content.
    pub(super) fn spend(&mut self, now: Instant) -> Result<(), Fault> {
        if self.left == 0 {
            self.fill(now);
        }
        let text = "it sends frame after frame that brings nothing";
        self.left = self.left.checked_sub(1).ok_or(Fault { code: Code::ENHANCE_YOUR_CALM, text })?;
        Ok(())
    }

    /// Adds the units for the time that has passed. The clock is read only when the budget is empty.
    fn fill(&mut self, now: Instant) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to what may be saved up")]
        let gained =
            (now.saturating_duration_since(self.filled).as_secs_f64() * PER_SECOND).min(f64::from(SAVED_MAX)) as u32;
        if gained > 0 {
            (self.left, self.filled) = (gained, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Number of frames without content that are accepted at this time.
    fn let_pass(patience: &mut Patience, now: Instant) -> u32 {
        (0..2 * SAVED_MAX).find(|_| patience.spend(now).is_err()).unwrap()
    }

    #[test]
    fn patience_ends_and_comes_back_with_time() {
        let begin = Instant::now();
        let mut patience = Patience::new(begin);
        assert_eq!(let_pass(&mut patience, begin), FIRST);
        assert_eq!(let_pass(&mut patience, begin + Duration::from_secs(2)), 2_000);
        assert_eq!(let_pass(&mut patience, begin + Duration::from_secs(2)), 0);
        assert_eq!(
            let_pass(&mut patience, begin + Duration::from_hours(100)),
            SAVED_MAX,
            "not more than may be saved up"
        );
    }

    /// Fractions of a unit are not lost if frames come often.
    #[test]
    fn slow_frames_are_let_pass_for_ever() {
        let begin = Instant::now();
        let mut patience = Patience::new(begin);
        for number in 0..100_000 {
            // A little slower than time pays for.
            patience.spend(begin + Duration::from_micros(1_010) * number).unwrap();
        }
    }

    #[test]
    fn what_is_sent_may_be_answered() {
        let begin = Instant::now();
        let mut patience = Patience::new(begin);
        (0..100).for_each(|_| patience.sent());
        assert_eq!(let_pass(&mut patience, begin), FIRST + 100 * FOR_EACH_SENT);
        (0..100_000).for_each(|_| patience.sent());
        assert_eq!(let_pass(&mut patience, begin), SAVED_MAX);
    }
}
