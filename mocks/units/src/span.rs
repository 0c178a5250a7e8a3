//! [`Span`], a duration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Error, spelled, split};

const EXAMPLE: &str = "15s";
const KNOWN: &str = "us, ms, s, m, h";
/// The longest span in seconds, a year: longer than any soak, and too short to overflow.
const MOST_SECONDS: f64 = 366.0 * 24.0 * 3600.0;

/// A length of time, written `200us`, `250ms`, `1.5s`, `10m` or `100h`. Resolution: microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub Duration);

impl Span {
    pub const fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }

    pub const fn from_secs(s: u64) -> Self {
        Self(Duration::from_secs(s))
    }

    /// Whole milliseconds, rounded down.
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, unit) = split(text, EXAMPLE)?;
        let seconds = match unit {
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            other => {
                return Err(Error::UnknownUnit {
                    text: text.to_owned(),
                    unit: other.to_owned(),
                    known: KNOWN,
                    example: EXAMPLE,
                });
            }
        } * number;
        if seconds > MOST_SECONDS {
            return Err(Error::TooLarge { text: text.to_owned(), most: "one year" });
        }
        // Through whole microseconds, so that `0.1s` prints as `100ms` again.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above: 0 to one year")]
        Ok(Self(Duration::from_micros((seconds * 1e6).round() as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0.as_micros();
        for (unit, size) in [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000)] {
            if us >= size && us.is_multiple_of(size) {
                return write!(f, "{}{unit}", us / size);
            }
        }
        if us == 0 { f.write_str("0s") } else { write!(f, "{us}us") }
    }
}

spelled!(Span, "a duration with a unit such as `250ms`, `15s`, `10m` or `100h`", r"^[0-9.]+(us|ms|s|m|h)$");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A printed span is read back as the same span.
        #[test]
        fn spelling_round_trips(us in 0u64..31_000_000_000_000) {
            let span = Span(Duration::from_micros(us));
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(error("30"), "`30` has no unit: write for example `15s`");
        assert_eq!(error("3d"), "`3d` has the unknown unit `d`: use one of us, ms, s, m, h, for example `15s`");
        assert_eq!(error("-3s"), "`-3s` is not a quantity: write a number and a unit, for example `15s`");
        assert_eq!(error("1.2.3s"), "`1.2.3s` is not a quantity: write a number and a unit, for example `15s`");
        assert_eq!(error("9999999h"), "`9999999h` is too large: the most is one year");
    }

    #[test]
    fn bare_numbers_in_json_are_refused() {
        let error = serde_json::from_str::<Span>("30").unwrap_err().to_string();
        assert!(error.contains("`30` has no unit"), "{error}");
    }
}
