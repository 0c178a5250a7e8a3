//! Durations and sizes with units in the configuration: `5s`, `200ms`, `4MiB`.
//!
//! A number without a unit is refused: a reader could not know whether `30` means seconds.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};

/// Longest accepted duration. A longer duration is a typing mistake; timers overflow only far above this limit.
const DURATION_MAX: Duration = Duration::from_hours(24 * 30);

/// A duration with a unit, at most 30 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes with a unit, such as `4MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// Why a text is no duration or size. The error message is printed after the name of the configuration key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{text}` has no unit: write for example `{example}`")]
    NoUnit { text: String, example: &'static str },
    #[error("`{text}` has the unknown unit `{unit}`: use one of {known}")]
    UnknownUnit { text: String, unit: String, known: &'static str },
    #[error("`{text}` does not start with a whole number: write for example `{example}`")]
    NotANumber { text: String, example: &'static str },
    #[error("`{text}` is too large: at most {most}")]
    TooLarge { text: String, most: &'static str },
}

/// The duration as a configuration file writes it.
pub fn written(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

pub fn span(text: &str) -> Result<Span, Error> {
    let (number, unit) = split(text, "5s")?;
    let factor_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(Error::UnknownUnit { text: text.into(), unit: unit.into(), known: "ms, s, m, h" }),
    };
    let too_large = || Error::TooLarge { text: text.into(), most: "720h" };
    let duration = Duration::from_millis(number.checked_mul(factor_ms).ok_or_else(too_large)?);
    if duration > DURATION_MAX { Err(too_large()) } else { Ok(Span(duration)) }
}

pub fn size(text: &str) -> Result<Size, Error> {
    let (number, unit) = split(text, "4MiB")?;
    let factor = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(Error::UnknownUnit { text: text.into(), unit: unit.into(), known: "B, KiB, MiB, GiB" }),
    };
    let bytes = number.checked_mul(factor);
    bytes.map(Size).ok_or_else(|| Error::TooLarge { text: text.into(), most: "16777215GiB" })
}

fn split<'a>(text: &'a str, example: &'static str) -> Result<(u64, &'a str), Error> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number = number.parse().map_err(|_| Error::NotANumber { text: text.into(), example })?;
    if unit.is_empty() { Err(Error::NoUnit { text: text.into(), example }) } else { Ok((number, unit.trim_start())) }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        span(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        size(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn units_scale_and_unknown_ones_are_named() {
        assert_eq!(span("200ms"), Ok(Span(Duration::from_millis(200))));
        assert_eq!(span("10m"), Ok(Span(Duration::from_mins(10))));
        assert_eq!(size("4MiB"), Ok(Size(4 << 20)));
        assert_eq!(span("5").unwrap_err().to_string(), "`5` has no unit: write for example `5s`");
        assert_eq!(
            size("4MB").unwrap_err().to_string(),
            "`4MB` has the unknown unit `MB`: use one of B, KiB, MiB, GiB"
        );
        assert!(span("-5s").unwrap_err().to_string().contains("whole number"));
        assert!(span("999999999999999999h").unwrap_err().to_string().contains("too large"));
    }
}
