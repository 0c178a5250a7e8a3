//! [`Bytes`], a size, [`Growth`], a size per hour, and [`Throughput`], a size per second.

use std::fmt;
use std::str::FromStr;

use crate::{Error, spelled, split};

const EXAMPLE: &str = "64MiB";
const GROWTH_EXAMPLE: &str = "1MiB/h";
const THROUGHPUT_EXAMPLE: &str = "4KiB/s";
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const KNOWN: &str = "B, KiB, MiB, GiB";
const MOST: f64 = (1u64 << 50) as f64;

/// A size, written `16B`, `2KiB`, `64MiB` or `1.5GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A size per hour, written `1MiB/h`: a limit of memory growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Growth {
    pub bytes_per_hour: u64,
}

/// A size per second, written `4KiB/s`: a rate of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Throughput {
    pub bytes_per_second: u64,
}

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, unit) = split(text, EXAMPLE)?;
        let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(Error::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                known: KNOWN,
                example: EXAMPLE,
            });
        };
        let bytes = number * *size as f64;
        if bytes > MOST {
            return Err(Error::TooLarge { text: text.to_owned(), most: "1024 TiB" });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above: 0 to 2^50")]
        Ok(Self(bytes.round() as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in UNITS {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        f.write_str("0B")
    }
}

impl FromStr for Growth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let no_unit = || Error::NoUnit { text: text.to_owned(), example: GROWTH_EXAMPLE };
        let size = text.trim().strip_suffix("/h").ok_or_else(no_unit)?;
        Ok(Self { bytes_per_hour: size.parse::<Bytes>()?.0 })
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/h", Bytes(self.bytes_per_hour))
    }
}

impl FromStr for Throughput {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let no_unit = || Error::NoUnit { text: text.to_owned(), example: THROUGHPUT_EXAMPLE };
        let size = text.trim().strip_suffix("/s").ok_or_else(no_unit)?;
        Ok(Self { bytes_per_second: size.parse::<Bytes>()?.0 })
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.bytes_per_second))
    }
}

spelled!(Bytes, "a size with a unit such as `16B`, `2KiB` or `64MiB`", r"^[0-9.]+(B|KiB|MiB|GiB)$");
spelled!(Growth, "a size per hour such as `1MiB/h`", r"^[0-9.]+(B|KiB|MiB|GiB)/h$");
spelled!(Throughput, "a size per second such as `4KiB/s`", r"^[0-9.]+(B|KiB|MiB|GiB)/s$");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A printed size is read back as the same size.
        #[test]
        fn spelling_round_trips(bytes in 0u64..(1 << 50)) {
            prop_assert_eq!(Bytes(bytes).to_string().parse::<Bytes>().unwrap(), Bytes(bytes));
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(error("64"), "`64` has no unit: write for example `64MiB`");
        assert_eq!(error("64MB"), "`64MB` has the unknown unit `MB`: use one of B, KiB, MiB, GiB, for example `64MiB`");
        assert_eq!("1MiB".parse::<Growth>().unwrap_err().to_string(), "`1MiB` has no unit: write for example `1MiB/h`");
        assert_eq!("1".parse::<Throughput>().unwrap_err().to_string(), "`1` has no unit: write for example `4KiB/s`");
        assert_eq!("100B/s".parse::<Throughput>().unwrap().to_string(), "100B/s");
        assert_eq!("1.5KiB/h".parse::<Growth>().unwrap().bytes_per_hour, 1536);
    }
}
