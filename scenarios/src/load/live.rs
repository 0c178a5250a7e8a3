//! The live line while load runs: rewritten on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loadgen::admission::Interval;
use reports::record::quantile_us;
use reports::words;

/// Without a terminal a line every ten seconds: enough to see life in a CI log, not enough to fill it.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Where the line goes.
pub(crate) enum Live {
    Terminal(ProgressBar),
    Plain { next: Duration },
    Quiet,
}

impl Live {
    /// On stderr: stdout belongs to the result.
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Plain { next: PLAIN_EVERY };
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:10} {wide_msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self::Terminal(bar)
    }

    /// A line of its own, for what happens once.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Terminal(bar) => bar.println(text),
            Self::Plain { .. } => crate::out::err!("{text}"),
            Self::Quiet => {}
        }
    }

    /// Shows the state after the newest interval.
    pub(crate) fn show(&mut self, now: Duration, length: Duration, total: &Interval, newest: &Interval) {
        match self {
            Self::Terminal(bar) => {
                bar.set_length(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
                bar.set_position(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(line(now, length, total, newest));
            }
            Self::Plain { next } if now >= *next => {
                *next = now + PLAIN_EVERY;
                crate::out::err!("{}", line(now, length, total, newest));
            }
            Self::Plain { .. } | Self::Quiet => {}
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(now: Duration, length: Duration, total: &Interval, newest: &Interval) -> String {
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
