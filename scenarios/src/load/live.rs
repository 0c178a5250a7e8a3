//! The live line during a load.

use std::time::Duration;

use loadgen::admission::Interval;
use reports::record::quantile_us;
use reports::words;

use crate::live::{Live, PLAIN_EVERY};

/// The line, not shown yet.
pub(crate) fn live(quiet: bool) -> Live {
    Live::new(quiet, "{bar:10} {wide_msg}", PLAIN_EVERY)
}

pub(super) fn line(now: Duration, length: Duration, total: &Interval, newest: &Interval) -> String {
    use std::fmt::Write as _;
    let mut line = format!(
        "{:>3}/{:.0}s sent {} answered {} errors {}",
        now.as_secs(),
        length.as_secs_f64(),
        words::count(total.counts.sent),
        words::count(total.counts.allowed + total.counts.denied),
        words::count(total.errors())
    );
    // Writing to a String cannot fail.
    if total.counts.overflow > 0 {
        let _ = write!(line, " not sent {}", words::count(total.counts.overflow));
    }
    let response = newest.response();
    let (name, value) = match quantile_us(&response, 990) {
        Some(us) => ("p99", Some(us)),
        None => ("p50", quantile_us(&response, 500)),
    };
    if let Some(us) = value {
        let _ = write!(line, " | {name} {}", words::micros(us));
    }
    if !newest.lateness.is_empty() {
        let _ = write!(line, " | late at most {}", words::micros(newest.lateness.max()));
    }
    line
}

#[cfg(test)]
mod tests {
    use loadgen::admission::Counts;

    use super::*;

    #[test]
    fn the_line_names_what_matters() {
        let counts =
            Counts { planned: 1100, sent: 1000, overflow: 100, allowed: 990, timeout: 10, ..Counts::default() };
        let mut newest = Interval { counts, ..Interval::default() };
        newest.response_allowed.record_n(4300, 990).unwrap();
        newest.response_error.record_n(900_000, 10).unwrap();
        newest.lateness.record_n(80, 1000).unwrap();
        let (now, length) = (Duration::from_millis(12_010), Duration::from_mins(1));
        assert_eq!(
            line(now, length, &newest, &newest),
            " 12/60s sent 1,000 answered 990 errors 10 not sent 100 | p50 4.3 ms | late at most 80 µs"
        );
    }
}
