//! Times and durations in CEL (CEL language definition, "Timestamp" and "Duration"). Durations are written as in Go.
//!
//! Owns parsing and printing times and durations, and reading their components such as hours. A duration is a 64-bit
//! count of nanoseconds, as in a real server.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::Failed;

const SECOND: i64 = 1_000_000_000;
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

/// The longest text of a time or a duration in bytes; a longer text could only have useless digits.
const TEXT_MAX_BYTES: usize = 128;
/// The first and the last second of the years 1 to 9999 (CEL language definition, "Timestamp"). The crate `jiff` cannot
/// represent the last 26 hours, because in some time zones they are in the year 10000.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The names of units in durations. The last name of a unit may have any ending, as in `minutes`.
const WORDS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "\u{b5}s", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], SECOND),
    (&["m", "min"], 60 * SECOND),
    (&["h", "hr", "hour"], 3_600 * SECOND),
    (&["d", "day"], 24 * 3_600 * SECOND),
    (&["w", "wk", "week"], 7 * 24 * 3_600 * SECOND),
];

/// Parses a time as strictly as Go does (RFC 3339): `2024-02-29T23:30:15.25Z`, `…+02:00`.
pub fn read(text: &str) -> Option<Timestamp> {
    let shape = |text: &str, like: &str| {
        text.len() == like.len()
            && text
                .bytes()
                .zip(like.bytes())
                .all(|(byte, like)| if like == b'0' { byte.is_ascii_digit() } else { byte == like })
    };
    if text.len() > TEXT_MAX_BYTES || !shape(text.get(..19)?, "0000-00-00T00:00:00") {
        return None;
    }
    let rest = &text[19..];
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(digits) => digits.split_at(digits.find(|c: char| !c.is_ascii_digit())?),
        None => ("", rest),
    };
    let has_point = rest.len() > zone.len();
    let zoned = zone == "Z" || shape(zone, "+00:00") || shape(zone, "-00:00");
    // The crate reads a leap second as the second before it.
    if !zoned || (has_point && fraction.is_empty()) || &text[17..19] == "60" {
        return None;
    }
    let point = if has_point { "." } else { "" };
    let kept = &fraction[..fraction.len().min(9)];
    in_range(format!("{}{point}{kept}{zone}", &text[..19]).parse().ok()?)
}

/// The time that is `seconds` after the start of 1970.
pub(super) fn from_second(seconds: i64) -> Option<Timestamp> {
    in_range(Timestamp::from_second(seconds).ok()?)
}

fn in_range(time: Timestamp) -> Option<Timestamp> {
    // Before 1970 a fraction belongs to the second before.
    let seconds = time.as_nanosecond().div_euclid(i128::from(SECOND));
    i64::try_from(seconds).is_ok_and(|seconds| SECONDS.contains(&seconds)).then_some(time)
}

/// Parses a date; the result is the first moment of the day.
pub fn read_date(text: &str) -> Option<Timestamp> {
    let date: jiff::civil::Date = if text.len() == 10 { text.parse().ok()? } else { return None };
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Parses a duration of a schema's `format: duration` into nanoseconds. Words are allowed: `3 days`, `2 weeks 1h`.
pub fn read_duration(text: &str) -> Option<i64> {
    read_span(text).or_else(|| read_words(text))
}

/// Parses numbers with units anywhere in a text. All other text is skipped, as by the real server's library.
fn read_words(text: &str) -> Option<i64> {
    let (mut total, mut rest) = (None, text);
    if text.len() > TEXT_MAX_BYTES {
        return None;
    }
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (number, after) = cut(&rest[at..], |c| c.is_ascii_digit());
        let (unit, after) = cut(after.trim_start(), |c| c.is_ascii_alphabetic() || c == '\u{b5}');
        rest = after;
        if unit.is_empty() {
            continue;
        }
        let unit = unit.to_ascii_lowercase();
        // The last of the names may have an ending: `minutes`.
        let is = |names: &&(&[&str], i64)| {
            names.0.iter().any(|name| *name == unit) || names.0.last().is_some_and(|last| unit.starts_with(last))
        };
        if let Some((_, factor)) = WORDS.iter().find(is) {
            let number = number.parse::<i64>().ok()?.checked_mul(*factor)?;
            total = Some(total.unwrap_or(0_i64).checked_add(number)?);
        }
    }
    total
}

fn cut(text: &str, of: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !of(c)).unwrap_or(text.len()))
}

/// Parses a duration such as `1h30m`, `-1.5s` or `0` into nanoseconds.
pub(super) fn read_span(text: &str) -> Option<i64> {
    if text.len() > TEXT_MAX_BYTES {
        return None;
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let digits = |text: &str| -> Option<i128> { if text.is_empty() { Some(0) } else { text.parse().ok() } };
        total = total.checked_add(digits(whole)?.checked_mul(i128::from(*factor))?)?;
        // Digits below a nanosecond add nothing.
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        total = total.checked_add(digits(fraction)? * i128::from(*factor) / scale)?;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// The text of a duration in seconds, as CEL prints it: `3600s`, `1.5s`.
pub(super) fn show_span(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, part) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if part == 0 {
        return format!("{sign}{whole}s");
    }
    let part = format!("{part:09}");
    format!("{sign}{whole}.{}s", part.trim_end_matches('0'))
}

/// The sum of a time and a duration; `None` outside the valid years.
pub(super) fn shift(time: Timestamp, nanos: i64) -> Option<Timestamp> {
    in_range(Timestamp::from_nanosecond(time.as_nanosecond().checked_add(i128::from(nanos))?).ok()?)
}

/// The duration from `other` to `one` in nanoseconds.
pub(super) fn between(one: Timestamp, other: Timestamp) -> Option<i64> {
    i64::try_from(one.as_nanosecond() - other.as_nanosecond()).ok()
}

/// The duration in the unit that the function `name` returns, rounded towards zero.
pub(super) fn of_span(name: &str, nanos: i64) -> Option<i64> {
    match name {
        "getHours" => Some(nanos / (3_600 * SECOND)),
        "getMinutes" => Some(nanos / (60 * SECOND)),
        "getSeconds" => Some(nanos / SECOND),
        "getMilliseconds" => Some(nanos / 1_000_000),
        _ => None,
    }
}

/// The component of a time that the function `name` returns, in a time zone such as `UTC` or `+02:00`.
pub(super) fn of_time(name: &str, time: Timestamp, zone: &str) -> Result<i64, Failed> {
    let zone = read_zone(zone).ok_or_else(|| Failed::Zone(zone.to_owned()))?;
    let local = zone.to_datetime(time);
    let part = match name {
        "getFullYear" => i64::from(local.year()),
        "getMonth" => i64::from(local.month()) - 1,
        "getDayOfYear" => i64::from(local.date().day_of_year()) - 1,
        "getDayOfMonth" => i64::from(local.day()) - 1,
        "getDate" => i64::from(local.day()),
        "getDayOfWeek" => i64::from(local.date().weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(local.hour()),
        "getMinutes" => i64::from(local.minute()),
        "getSeconds" => i64::from(local.second()),
        "getMilliseconds" => i64::from(local.millisecond()),
        _ => return Err(Failed::Overload),
    };
    Ok(part)
}

fn read_zone(text: &str) -> Option<Offset> {
    if matches!(text, "" | "UTC") {
        return Some(Offset::UTC);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str, below: i32| {
        let fits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| fits && *number < below)
    };
    Offset::from_seconds(sign * (part(hours, 24)? * 3_600 + part(minutes, 60)? * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_shown() {
        for (text, nanos, shown) in [
            ("1h30m", 5_400 * SECOND, "5400s"),
            ("-1.5s", -1_500_000_000, "-1.5s"),
            ("0", 0, "0s"),
            ("300ms", 300_000_000, "0.3s"),
            ("1us", 1_000, "0.000001s"),
            (".5m", 30 * SECOND, "30s"),
            ("+2ns", 2, "0.000000002s"),
            ("1.0000000000000000000000001s", SECOND, "1s"),
        ] {
            assert_eq!(read_span(text), Some(nanos), "{text}");
            assert_eq!(show_span(nanos), shown);
        }
        for text in ["", "-", "1", "1d", "h", "1..2s", ".s", "1h ", "9999999999h", "\u{e9}"] {
            assert_eq!(read_span(text), None, "{text}");
        }
        assert_eq!(show_span(i64::MIN), "-9223372036.854775808s");
    }

    #[test]
    fn spans_in_words() {
        for (text, seconds) in [
            ("1d", 86_400),
            ("3 days", 3 * 86_400),
            ("2 Weeks", 14 * 86_400),
            ("1 hour 30 minutes", 5_400),
            ("1h30m", 5_400),
            ("5 apples 2s", 2),
            ("about 2 min", 120),
        ] {
            assert_eq!(read_duration(text), Some(seconds * SECOND), "{text}");
        }
        for text in ["", "day", "5 apples", "99999999999999999999 d", "9223372036854775807 weeks", "\u{b5}5"] {
            assert_eq!(read_duration(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, shown) in [
            ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
            ("2024-01-01T00:00:00.5+01:00", "2023-12-31T23:00:00.5Z"),
            ("2024-01-01T00:00:00.12345678987654321Z", "2024-01-01T00:00:00.123456789Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-30T22:00:00.9Z", "9999-12-30T22:00:00.9Z"),
        ] {
            assert_eq!(read(text).map(|time| time.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in "|2024-01-01|2024-01-01T00:00Z|2024-01-01 00:00:00Z|2024-01-01t00:00:00z|20240101T000000Z|\
            2024-01-01T00:00:00|2024-01-01T00:00:00+01|2024-01-01T00:00:00.Z|2024-01-01T00:00:60Z|\
            2024-02-30T00:00:00Z|2024-01-01T00:00:00Z[UTC]|0000-12-31T23:59:59Z|0001-01-01T00:00:00+01:00|\
            2024-01-01T00:00:0\u{e9}"
            .split('|')
        {
            assert_eq!(read(text), None, "{text}");
        }
        let (first, last) = (read("0001-01-01T00:00:00Z").unwrap(), read("9999-12-30T22:00:00Z").unwrap());
        assert_eq!((shift(first, -1), shift(last, SECOND)), (None, None));
        assert_eq!((from_second(-62_135_596_801), from_second(253_402_300_800)), (None, None));
    }

    #[test]
    fn parts_of_times() {
        let time = read("2024-02-29T23:30:15.25Z").unwrap();
        for (name, zone, part) in [
            ("getFullYear", "", 2024),
            ("getMonth", "UTC", 1),
            ("getDate", "", 29),
            ("getDayOfMonth", "", 28),
            ("getDayOfYear", "", 59),
            ("getDayOfWeek", "", 4),
            ("getHours", "", 23),
            ("getMinutes", "", 30),
            ("getSeconds", "", 15),
            ("getMilliseconds", "", 250),
            ("getMonth", "+01:00", 2),
            ("getHours", "-02:30", 21),
            ("getHours", "02:00", 1),
        ] {
            assert_eq!(of_time(name, time, zone), Ok(part), "{name} {zone}");
        }
        assert_eq!(of_time("getHours", time, "Mars"), Err(Failed::Zone("Mars".to_owned())));
        assert_eq!(read_date("2024-02-29").map(|date| date.to_string()).as_deref(), Some("2024-02-29T00:00:00Z"));
        assert_eq!((read_date("2024-02-30"), read_date("2024-2-9")), (None, None));
    }
}
