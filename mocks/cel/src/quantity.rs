//! Quantities of resources (`500m`, `1Gi`), and the canonical form in which a real server returns them.
//!
//! Owns parsing quantities and their canonical form ("Quantity" in the Kubernetes API reference): no fraction, no
//! trailing zeros, the largest suffix that keeps the value, at most nine decimal places.

/// Number of decimal places that a quantity keeps; further digits are rounded up.
const PLACES: u32 = 9;
/// The largest quantity: 2^63 - 1.
const MAX: i128 = i64::MAX as i128;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

/// A quantity, in billionths. Two quantities with the same value are equal, whatever their suffixes.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nano: i128,
    form: Form,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Quantity {
    /// Parses a quantity; `None` if the text is not a quantity.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let (form, ten, binary) = scale(suffix)?;
        let nano = nano(whole, fraction, ten, binary)?;
        Some(Self { nano: if negative { -nano } else { nano }, form })
    }

    pub fn whole(number: i64) -> Self {
        Self { nano: i128::from(number) * 10_i128.pow(PLACES), form: Form::Exponent }
    }

    /// The quantity as an integer, if it is one.
    pub fn as_whole(self) -> Option<i64> {
        let unit = 10_i128.pow(PLACES);
        if self.nano % unit == 0 { i64::try_from(self.nano / unit).ok() } else { None }
    }

    /// The floating-point number that is nearest to the quantity.
    pub fn approximate(self) -> f64 {
        self.nano as f64 / 1e9
    }

    /// The sign of the quantity: -1, 0 or 1.
    pub fn signum(self) -> i8 {
        match self.nano {
            0 => 0,
            nano if nano < 0 => -1,
            _ => 1,
        }
    }

    /// The sum of two quantities, with the kind of suffix that `self` has.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano), form: self.form }
    }

    /// The difference of two quantities, with the kind of suffix that `self` has.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_sub(other.nano), form: self.form }
    }

    /// The quantity rounded to thousandths, away from zero.
    #[must_use]
    pub fn in_thousandths(self) -> Self {
        let unit = 10_i128.pow(PLACES - 3);
        let rest = self.nano % unit;
        let nano = if rest == 0 { self.nano } else { self.nano - rest + unit * rest.signum() };
        Self { nano, ..self }
    }

    /// The quantity in the canonical form, in which a real API server returns it.
    pub fn canonical(self) -> String {
        let unit = 10_i128.pow(PLACES);
        let whole = self.nano % unit == 0;
        // Below 1,024 both forms have the same suffix.
        if self.form == Form::Binary && whole && (self.nano / unit).abs() >= 1024 {
            let (mut number, mut power) = (self.nano / unit, 0);
            while number % 1024 == 0 && power + 1 < BINARY.len() {
                (number, power) = (number / 1024, power + 1);
            }
            return format!("{number}{}", BINARY[power]);
        }
        if self.nano == 0 {
            return "0".to_owned();
        }
        let (mut number, mut exponent) = (self.nano, -9);
        while number % 1000 == 0 && exponent < 18 {
            (number, exponent) = (number / 1000, exponent + 3);
        }
        match self.form {
            Form::Exponent if exponent != 0 => format!("{number}e{exponent}"),
            _ => {
                let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent).map_or("", |(suffix, _)| *suffix);
                format!("{number}{suffix}")
            }
        }
    }
}

/// The factor of a suffix: an exponent of ten, and an exponent of 1,024.
fn scale(suffix: &str) -> Option<(Form, i32, u32)> {
    if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
        return Some((Form::Binary, 0, u32::try_from(power).ok()? + 1));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Form::Decimal, *power, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((Form::Exponent, exponent.parse().ok()?, 0))
}

/// The quantity in billionths, rounded away from zero and limited to [`MAX`].
fn nano(whole: &str, fraction: &str, ten: i32, binary: u32) -> Option<i128> {
    let max = MAX * 10_i128.pow(PLACES);
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // More digits than those of the largest quantity mean a larger one, wherever the point is.
    let places = i32::try_from(PLACES).ok()? + ten - i32::try_from(fraction.len()).ok()?;
    let length = i32::try_from(digits.len()).ok()?;
    if length + places > 38 {
        return Some(max);
    }
    let kept = usize::try_from((length + places.min(0)).max(0)).ok()?.min(digits.len());
    let (kept, lost) = digits.split_at(if places < 0 && binary == 0 { kept } else { digits.len().min(37) });
    let mut number: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    if places >= 0 {
        number = number.checked_mul(10_i128.checked_pow(u32::try_from(places).ok()?)?)?;
    }
    let mut up = lost.bytes().any(|digit| digit != b'0');
    for _ in 0..binary {
        number = number.saturating_mul(1024);
    }
    if binary > 0 && places < 0 {
        let divisor = 10_i128.checked_pow(u32::try_from(-places).ok()?)?;
        up |= number % divisor != 0;
        number /= divisor;
    }
    Some(number.saturating_add(i128::from(up)).min(max))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> Option<String> {
        Quantity::parse(text).map(Quantity::canonical)
    }

    /// The canonical forms are those that kube-apiserver 1.20.2 returns.
    #[test]
    fn the_form_that_comes_back() {
        for (given, back) in [
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1000", "1k"),
            ("0.1", "100m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1Ki", "1Ki"),
            ("1000Ki", "1000Ki"),
            ("512", "512"),
            ("0.5Gi", "512Mi"),
            ("0.0001Ki", "102400u"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e6", "12e6"),
            ("1E", "1E"),
            ("-5", "-5"),
            ("+5", "5"),
            ("1.", "1"),
            (".5", "500m"),
            ("0.0000000001", "1n"),
            ("1234567", "1234567"),
            ("99999999999999999999", "9223372036854775807"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(back), "{given}");
        }
    }

    #[test]
    fn amounts_of_resources_are_whole_thousandths() {
        for (given, back) in [("0.0001", "1m"), ("1.5", "1500m"), ("1u", "1m"), ("-1n", "-1m"), ("2", "2"), ("0", "0")]
        {
            assert_eq!(Quantity::parse(given).map(|amount| amount.in_thousandths().canonical()).as_deref(), Some(back));
        }
    }

    #[test]
    fn what_is_no_amount() {
        for text in ["", "x", "-", "1x", "1 Gi", "1..2", "1.2.3", "Gi", ".", "1e", "1e9999", "1mi", "--1"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    proptest! {
        /// Parsing any text ends, and a canonical form stays unchanged if it is parsed and printed again.
        #[test]
        fn once_is_enough(text in "[+-]?[0-9]{0,40}[.]?[0-9]{0,40}(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,3})?") {
            if let Some(once) = canonical(&text) {
                prop_assert_eq!(canonical(&once), Some(once));
            }
        }
    }
}
