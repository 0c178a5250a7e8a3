//! The `Range` header of a request (RFC 9110, section 14): one range of bytes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// The whole content, because the request has no range, several ranges, or an invalid range, which the RFC lets a
    /// server ignore.
    Whole,
    /// From the first offset to before the second offset; never empty.
    Part(u64, u64),
    Unsatisfiable,
}

/// Parses the value of a `Range` header for a content of `length` bytes.
pub fn range(value: Option<&str>, length: u64) -> Range {
    let Some(spec) = value.and_then(|value| value.strip_prefix("bytes=")) else { return Range::Whole };
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let Some((first, last)) = spec.split_once('-') else { return Range::Whole };
    let (from, to) = match (number(first), number(last)) {
        (Some(from), Some(to)) if from <= to => (from, to.saturating_add(1).min(length)),
        (Some(from), None) if last.is_empty() => (from, length),
        // The last bytes, by their number.
        (None, Some(0)) if first.is_empty() => return Range::Unsatisfiable,
        (None, Some(count)) if first.is_empty() => (length.saturating_sub(count), length),
        _ => return Range::Whole,
    };
    if from < to { Range::Part(from, to) } else { Range::Unsatisfiable }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges() {
        for (value, expected) in [
            ("bytes=0-0", Range::Part(0, 1)),
            ("bytes=2-", Range::Part(2, 10)),
            ("bytes=2-99", Range::Part(2, 10)),
            ("bytes=-3", Range::Part(7, 10)),
            ("bytes=-99", Range::Part(0, 10)),
            ("bytes=9-99999999999999999999999", Range::Part(9, 10)),
            ("bytes=10-", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=3-2", Range::Whole),
            ("bytes=0-1,3-4", Range::Whole),
            ("bytes=+1-2", Range::Whole),
            ("bytes=", Range::Whole),
            ("bytes=-", Range::Whole),
            ("lines=0-1", Range::Whole),
        ] {
            assert_eq!(range(Some(value), 10), expected, "{value}");
        }
        assert_eq!(range(None, 10), Range::Whole);
        assert_eq!(range(Some("bytes=0-"), 0), Range::Unsatisfiable);
    }

    proptest! {
        /// Every parsed range lies within the content and is not empty.
        #[test]
        fn a_part_is_a_part(value in "bytes=[0-9]{0,21}-[0-9]{0,21}", length in any::<u64>()) {
            if let Range::Part(from, to) = range(Some(&value), length) {
                prop_assert!(from < to && to <= length);
            }
        }
    }
}
