//! Flow control (RFC 9113, section 5.2): how many bytes the client and the server may send. Pure: no I/O.

use super::frame::Fault;

/// The largest flow-control window in bytes (RFC 9113, section 6.9.1).
const WINDOW_MAX: i64 = (1 << 31) - 1;

/// Number of bytes of DATA that the client may send on a stream or connection. The number is negative after the server
/// made its flow-control windows smaller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance(i64);

impl Allowance {
    pub(super) fn new(bytes: u32) -> Self {
        Self(i64::from(bytes))
    }

    pub(super) fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Subtracts sent bytes; `bytes` is at most [`Allowance::bytes`].
    pub(super) fn spend(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(WINDOW_MAX);
    }

    /// Changes the allowance: the server allows more bytes, or, after a change of its settings, fewer.
    pub(super) fn change(&mut self, by: i64) -> Result<(), Fault> {
        if self.0 + by > WINDOW_MAX {
            return Err(Fault::flow_control("a window grows beyond 2^31-1"));
        }
        self.0 += by;
        Ok(())
    }
}

/// Number of bytes of DATA that the server may send on a stream or connection. Received data is processed at once, so
/// the number lacks only received bytes for which the client has not sent a window update yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    size: u32,
    used: u32,
}

impl Grant {
    pub(super) fn new(size: u32) -> Self {
        Self { size, used: 0 }
    }

    /// Uses up received bytes, and returns the number to give back now: none before half of the flow-control window is
    /// used.
    pub(super) fn use_up(&mut self, bytes: u32) -> Result<Option<u32>, Fault> {
        self.used = self
            .used
            .checked_add(bytes)
            .filter(|used| *used <= self.size)
            .ok_or(Fault::flow_control("more DATA came than was allowed"))?;
        if self.used < self.size / 2 {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_may_fall_below_zero_and_never_overflows() {
        let mut allowance = Allowance::new(10);
        allowance.spend(8);
        allowance.change(-5).unwrap();
        assert_eq!(allowance.bytes(), 0);
        allowance.change(4).unwrap();
        assert_eq!(allowance.bytes(), 1);
        assert!(allowance.change(WINDOW_MAX).is_err());
        allowance.change(WINDOW_MAX - 1).unwrap();
    }

    /// All bytes that are given back were used, and bytes beyond the flow-control window are refused.
    #[test]
    fn a_grant_gives_back_what_was_used() {
        let mut grant = Grant::new(100);
        assert_eq!(grant.use_up(49).unwrap(), None);
        assert_eq!(grant.use_up(2).unwrap(), Some(51));
        assert_eq!(grant.use_up(100).unwrap(), Some(100));
        assert_eq!(grant.use_up(40).unwrap(), None);
        assert!(grant.use_up(61).is_err());
        assert!(Grant::new(100).use_up(u32::MAX).is_err());
    }
}
