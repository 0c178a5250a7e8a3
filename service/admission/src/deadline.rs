//! The time limit of a review, from the `timeout` that the API server sends with each call.
//!
//! The functions of this module read no clock.

use std::time::Duration;

/// The default timeout of a webhook (Kubernetes: `timeoutSeconds` defaults to 10).
const DEFAULT: Duration = Duration::from_secs(10);
/// Longest timeout of a webhook: Kubernetes allows 1 s to 30 s. Timeouts above 30 s are shortened to 30 s.
const MOST: Duration = Duration::from_secs(30);
/// Maximum of the time that is reserved for sending the answer; the reserved time is a tenth of the timeout.
const MARGIN_MAX: Duration = Duration::from_millis(500);

/// The time that a review may take, from the query of the call's URL.
pub fn budget(query: Option<&str>) -> Duration {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let timeout = pairs.filter(|(name, _)| *name == "timeout").find_map(|(_, value)| go_duration(value));
    let timeout = timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(DEFAULT).min(MOST);
    timeout.saturating_sub((timeout / 10).min(MARGIN_MAX))
}

/// Parses a duration as Go prints it: `10s`, `1m30s`, `500ms`, `1.5s`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|char: char| char.is_ascii_digit()).map_or(rest.len(), |at| at + digits);
        let seconds = match &rest[digits..unit] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &rest[unit..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets() {
        for (query, expected_ms) in [
            (None, 9_500),
            (Some("timeout=10s"), 9_500),
            (Some("a=b&timeout=1s"), 900),
            (Some("timeout=1m0s"), 29_500),
            (Some("timeout=500ms"), 450),
            (Some("timeout=abc"), 9_500),
            (Some("timeout=0s"), 9_500),
            (Some("timeout=99999999999999999999h"), 9_500),
        ] {
            assert_eq!(budget(query), Duration::from_millis(expected_ms), "{query:?}");
        }
    }
}
