//! Texts of numbers for people, such as `12,345`, `4.2 ms`, `18.4 MiB`, `1 h 5 min`.
//!
//! Owns the texts of numbers in findings and reports. Rounding may move a text across a limit, so judges compare
//! numbers and never these texts.

/// The nearest whole number; negative numbers become zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates at both ends")]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A number with thousands separated: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Maximum number of characters of a sentence for which a report has one line; longer sentences are cut.
const SENTENCE_MAX: usize = 270;

pub fn first_sentence(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = |rest: &str| rest.trim_start().chars().next().is_some_and(|next| next.is_uppercase() || next == '`');
    let mut ends = line.match_indices(". ").map(|(at, _)| at + 1).filter(|end| begins(&line[*end..]));
    let sentence = ends.next().map_or(line.as_str(), |end| &line[..end]);
    if sentence.chars().count() <= SENTENCE_MAX {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(SENTENCE_MAX).collect();
    let words = cut.rfind(' ').map_or(cut.as_str(), |at| &cut[..at]);
    format!("{words} …")
}

/// A number with its noun: `1 version`, `2 versions`.
pub fn counted(number: u64, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", count(number))
}

/// Microseconds with three digits: `850 µs`, `4.21 ms`, `12.3 s`, `2 min 5 s`.
pub fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..1_000_000 => format!("{} ms", three_digits(us as f64 / 1e3)),
        1_000_000..60_000_000 => format!("{} s", three_digits(us as f64 / 1e6)),
        _ => millis(us / 1000),
    }
}

/// Milliseconds: `350 ms`, `12.3 s`, `2 min 5 s`, `3 h 10 min`.
pub fn millis(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{} s", three_digits(ms as f64 / 1e3)),
        60..3600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3600),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Bytes with three digits: `512 B`, `18.4 MiB`.
pub fn bytes(bytes: u64) -> String {
    let (unit, size) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..0x10_0000 => ("KiB", 1u64 << 10),
        0x10_0000..0x4000_0000 => ("MiB", 1 << 20),
        _ => ("GiB", 1 << 30),
    };
    format!("{} {unit}", three_digits(bytes as f64 / size as f64))
}

pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 1.0 {
        format!("{} %", three_digits(percent))
    } else {
        // Two significant digits, however small.
        let mut places = 2;
        while percent * 10f64.powi(places - 1) < 1.0 && places < 12 {
            places += 1;
        }
        let places = usize::try_from(places).unwrap_or_default();
        let text = format!("{percent:.places$}");
        format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A number with three significant digits below 1000, without trailing zeros.
pub fn three_digits(number: f64) -> String {
    let places = match number.abs() {
        x if x < 9.995 => 2,
        x if x < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sentence_is_one_line() {
        assert_eq!(first_sentence("It broke at 1.5 s. Its last words: no"), "It broke at 1.5 s.");
        assert_eq!(first_sentence("one\nline, e.g. this one"), "one line, e.g. this one");
        let long = first_sentence(&"word ".repeat(100));
        assert!(long.ends_with("word …") && long.chars().count() <= SENTENCE_MAX + 2, "{long}");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "version"), counted(2, "version")], ["1 version", "2 versions"]);
        assert_eq!([micros(850), micros(4210), micros(12_300_000)], ["850 µs", "4.21 ms", "12.3 s"]);
        assert_eq!([millis(350), millis(60_000), millis(125_000)], ["350 ms", "1 min", "2 min 5 s"]);
        assert_eq!([millis(11_400_000), millis(7_200_000)], ["3 h 10 min", "2 h"]);
        assert_eq!([bytes(512), bytes(2048), bytes(19_293_798)], ["512 B", "2 KiB", "18.4 MiB"]);
        assert_eq!([percent(0.000_24), percent(0.5), percent(1.0), percent(0.0)], ["0.024 %", "50 %", "100 %", "0 %"]);
    }
}
