//! The progress line of a longer task: on a terminal one line that is rewritten, otherwise a plain line every few
//! seconds.
//!
//! Writes to stderr, because stdout belongs to the result.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::clock::millis;

/// Interval of plain progress lines without a terminal, so that a CI log shows progress and stays short.
pub(crate) const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Where and how the progress is shown.
pub(crate) enum Live {
    Terminal(ProgressBar),
    Plain { next: Duration },
    Quiet,
}

impl Live {
    /// `template` is the format of the progress line on a terminal. Without a terminal, the first line is printed after
    /// the time `first`.
    pub(crate) fn new(quiet: bool, template: &str, first: Duration) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Plain { next: first };
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self::Terminal(bar)
    }

    /// Prints a separate line for a single event.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Terminal(bar) => bar.println(crate::shown::text(text)),
            Self::Plain { .. } => crate::out::err!("{text}"),
            Self::Quiet => {}
        }
    }

    /// Shows the progress at time `now` of a task that takes the time `length`.
    pub(crate) fn show(&mut self, now: Duration, length: Duration, line: impl FnOnce() -> String) {
        match self {
            Self::Terminal(bar) => {
                bar.set_length(millis(length));
                bar.set_position(millis(now));
                bar.set_message(line());
            }
            Self::Plain { next } if now >= *next => {
                *next = now + PLAIN_EVERY;
                crate::out::err!("{}", line());
            }
            Self::Plain { .. } | Self::Quiet => {}
        }
    }

    pub(crate) fn end(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
