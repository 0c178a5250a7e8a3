//! Compares `resourceVersion`s of objects.
//!
//! Since Kubernetes 1.35 (KEP-5504), decimal versions of one resource may be compared: without leading zeros, by
//! length, then by digits. Any other version is opaque and has no order, so [`compare`] returns `None` for it.

use std::cmp::Ordering;

/// The order of two versions of the same resource; `None` if they have no order.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    (is_decimal(a) && is_decimal(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Whether `a` is certainly older than `b`.
pub fn older(a: &str, b: &str) -> bool {
    compare(a, b) == Some(Ordering::Less)
}

/// Whether `a` is certainly as new as `b` or newer.
pub fn reaches(a: &str, b: &str) -> bool {
    a == b || matches!(compare(a, b), Some(Ordering::Equal | Ordering::Greater))
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && text.bytes().next().is_some_and(|first| first != b'0' || text.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_versions_compare_as_numbers_and_others_not_at_all() {
        assert!(older("9", "10") && older("99", "100") && !older("10", "9") && !older("7", "7"));
        assert_eq!(compare("340282366920938463463374607431768211456", "5"), Some(Ordering::Greater));
        assert_eq!(compare("01", "2"), None);
        assert_eq!(compare("abc", "abd"), None);
        assert!(reaches("abc", "abc") && !reaches("abc", "abd") && reaches("10", "9"));
    }
}
