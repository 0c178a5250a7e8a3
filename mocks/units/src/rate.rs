//! [`Rate`]: a number per unit of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Error, spelled, split};

const EXAMPLE: &str = "200/s";
/// The highest rate. A higher rate would need more than a thousand arrivals in each microsecond.
const MOST_PER_SECOND: f64 = 1e9;

/// A number per unit of time, written `200/s`, `30/m` or `5/h`. Zero is accepted here; the code that uses the rate may
/// refuse zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate {
    per_second: f64,
}

impl Rate {
    /// Makes a rate from a number per second. Negative and non-finite numbers count as zero.
    pub fn per_second(number: f64) -> Self {
        let sane = if number.is_finite() { number.clamp(0.0, MOST_PER_SECOND) } else { 0.0 };
        Self { per_second: sane }
    }

    pub const fn per_minute(number: u16) -> Self {
        Self { per_second: number as f64 / 60.0 }
    }

    pub fn as_per_second(self) -> f64 {
        self.per_second
    }

    /// The time between two events, or `None` for a rate of zero.
    pub fn interval(self) -> Option<Duration> {
        (self.per_second > 0.0).then(|| Duration::from_secs_f64(1.0 / self.per_second))
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, unit) = split(text, EXAMPLE)?;
        let seconds = match unit {
            "/s" => 1.0,
            "/m" => 60.0,
            "/h" => 3600.0,
            other => {
                return Err(Error::UnknownUnit {
                    text: text.to_owned(),
                    unit: other.to_owned(),
                    known: "/s, /m, /h",
                    example: EXAMPLE,
                });
            }
        };
        let per_second = number / seconds;
        if per_second > MOST_PER_SECOND {
            return Err(Error::TooLarge { text: text.to_owned(), most: "1000000000/s" });
        }
        Ok(Self { per_second })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, seconds) in [("s", 1.0), ("m", 60.0), ("h", 3600.0)] {
            let number = self.per_second * seconds;
            if (number - number.round()).abs() < 1e-9 * number.max(1.0) && (number >= 1.0 || self.per_second == 0.0) {
                return write!(f, "{}/{unit}", number.round());
            }
        }
        write!(f, "{}/s", self.per_second)
    }
}

spelled!(Rate, "a rate with a unit such as `200/s`, `30/m` or `5/h`", r"^[0-9.]+/(s|m|h)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for text in ["200/s", "30/m", "5/h", "0/s", "0.3/s"] {
            let rate: Rate = text.parse().unwrap();
            let again: Rate = rate.to_string().parse().unwrap();
            assert!((rate.as_per_second() - again.as_per_second()).abs() < 1e-9, "{text} became {rate}");
        }
        assert_eq!("200".parse::<Rate>().unwrap_err().to_string(), "`200` has no unit: write for example `200/s`");
        assert_eq!("30/m".parse::<Rate>().unwrap().interval(), Some(Duration::from_secs(2)));
        assert_eq!("0/s".parse::<Rate>().unwrap().interval(), None);
    }
}
