//! Moments, as certificates and logs state them.

use std::fmt;

/// Seconds since 1970-01-01T00:00:00Z. No decision depends on finer times in certificates, logs and timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub i64);

impl fmt::Display for UnixTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0) {
            Ok(time) => write!(out, "{time}"),
            Err(_) => write!(out, "{} s since 1970", self.0),
        }
    }
}
