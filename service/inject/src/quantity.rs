//! Kubernetes quantities (`100m`, `64Mi`, `1e3`) as whole thousandths.
//!
//! An invalid quantity counts as 0, because quantities come from an API server, which has already checked them.

const SUFFIXES: [(&str, i128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// The quantity `text` in thousandths, rounded up as in Kubernetes; 0 if `text` is invalid.
pub fn milli(text: &str) -> i128 {
    parse(text.trim()).unwrap_or(0)
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    // The value is the number times `times`, divided by `parts`.
    let (times, parts) = match suffix {
        "" => (1, 1),
        "m" => (1, 1_000),
        "u" => (1, 1_000_000),
        "n" => (1, 1_000_000_000),
        suffix => {
            if let Some((_, times)) = SUFFIXES.iter().find(|(name, _)| *name == suffix) {
                (*times, 1)
            } else {
                let power: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|power| *power <= 18)?;
                (10_i128.pow(power), 1)
            }
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than this are below a billionth, which no quantity has.
    let fraction = &fraction[..fraction.len().min(9)];
    let digits = format!("{whole}{fraction}");
    let value: i128 = digits.parse().ok().filter(|value: &i128| value.unsigned_abs() < 1 << 64)?;
    let scaled = value.checked_mul(times)?.checked_mul(1_000)?;
    let parts = 10_i128.pow(u32::try_from(fraction.len()).ok()?) * parts;
    Some(scaled.div_euclid(parts) + i128::from(scaled.rem_euclid(parts) > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (text, expected) in [
            ("1", 1_000),
            ("500m", 500),
            ("0.5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("64Mi", 67_108_864_000),
            ("1e3", 1_000_000),
            ("2E2", 200_000),
            ("128k", 128_000_000),
            ("1500u", 2),
            ("1n", 1),
            (".5", 500),
            ("", 0),
            ("x", 0),
            ("1Qi", 0),
            ("1e99", 0),
            ("99999999999999999999999999", 0),
        ] {
            assert_eq!(milli(text), expected, "{text}");
        }
    }
}
