//! Points in time in certificates and logs.

use std::fmt;

/// Seconds since 1970-01-01T00:00:00Z. Fractions of seconds are dropped, because no decision depends on them.
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
