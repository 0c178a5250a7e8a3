//! The live line of a longer task: on a terminal one line that is rewritten, elsewhere a plain line now and then.
//!
//! Owns the choice of the output: stderr, because stdout belongs to the result.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::clock::millis;

/// Interval of lines without a terminal: enough to show progress in a CI log, not enough to fill it.
pub(crate) const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The output of the line.
pub(crate) enum Live {
    Terminal(ProgressBar),
    Plain { next: Duration },
    Quiet,
}

impl Live {
    /// `template` is for a terminal; elsewhere the first line comes at `first`.
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

    /// Shows the progress.
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
