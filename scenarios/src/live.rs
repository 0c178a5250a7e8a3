//! The live line of something that goes on: one line that is rewritten on a terminal, a plain line now and then elsewhere.
//!
//! Owns where it goes: to stderr, because stdout belongs to the result.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::clock::millis;

/// Without a terminal a line every ten seconds: enough to see life in a CI log, not enough to fill it.
pub(crate) const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Where the line goes.
pub(crate) enum Live {
    Terminal(ProgressBar),
    Plain { next: Duration },
    Quiet,
}

impl Live {
    /// `template` is that of the terminal; elsewhere the first line comes at `first`.
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

    /// A line of its own, for what happens once.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Terminal(bar) => bar.println(crate::shown::text(text)),
            Self::Plain { .. } => crate::out::err!("{text}"),
            Self::Quiet => {}
        }
    }

    /// Shows how far it is.
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

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
