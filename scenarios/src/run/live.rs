//! The live line while a run goes on: one line that is rewritten on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Without a terminal a line every ten seconds: enough to see life in a CI log, not enough to fill it.
const PLAIN_EVERY_MS: u64 = 10_000;

/// What the line shows.
#[derive(Debug, Default, Clone)]
pub(super) struct Facts {
    pub(super) now_ms: u64,
    pub(super) total_ms: u64,
    pub(super) phase: &'static str,
    pub(super) commits: u64,
    pub(super) observations: u64,
    pub(super) missing: u64,
    pub(super) late: u64,
    pub(super) requests: u64,
    pub(super) admission_p99_us: Option<u64>,
    pub(super) wrong: u64,
    pub(super) rss_bytes: Option<u64>,
    pub(super) faults: Vec<String>,
    /// How far each verdict on growth is from being decided.
    pub(super) growth: String,
}

/// Where the line goes.
pub(super) enum Live {
    Terminal(ProgressBar),
    Plain { next_ms: u64 },
    Quiet,
}

impl Live {
    /// On stderr: stdout belongs to the verdict.
    pub(super) fn new(quiet: bool, total: Duration) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Plain { next_ms: 0 };
        }
        let length = crate::clock::millis(total);
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent:>3} % ends in {eta} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self::Terminal(bar)
    }

    /// A line of its own, for what happens once.
    pub(super) fn say(&self, text: &str) {
        match self {
            Self::Terminal(bar) => bar.println(crate::shown::text(text)),
            Self::Plain { .. } => crate::out::err!("{text}"),
            Self::Quiet => {}
        }
    }

    /// Shows the newest facts.
    pub(super) fn show(&mut self, facts: &Facts) {
        match self {
            Self::Terminal(bar) => {
                bar.set_position(facts.now_ms);
                bar.set_message(line(facts));
            }
            Self::Plain { next_ms } => {
                if facts.now_ms >= *next_ms {
                    *next_ms = facts.now_ms + PLAIN_EVERY_MS;
                    crate::out::err!("{}", line(facts));
                }
            }
            Self::Quiet => {}
        }
    }

    /// Takes the line away.
    pub(super) fn end(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(facts: &Facts) -> String {
    use std::fmt::Write as _;
    let mut line = format!(
        "{:>3}/{}s {:8} commits {} seen {} waiting {} late {}",
        facts.now_ms / 1000,
        facts.total_ms / 1000,
        facts.phase,
        facts.commits,
        facts.observations,
        facts.missing,
        facts.late
    );
    if facts.requests > 0 {
        let _ = write!(line, " | reviews {} wrong {}", facts.requests, facts.wrong);
        if let Some(p99) = facts.admission_p99_us {
            let _ = write!(line, " p99 {:.1}ms", p99 as f64 / 1000.0);
        }
    }
    if let Some(rss) = facts.rss_bytes {
        let _ = write!(line, " | RSS {:.1}MiB", rss as f64 / f64::from(1 << 20));
    }
    if !facts.growth.is_empty() {
        let _ = write!(line, " | {}", facts.growth);
    }
    if !facts.faults.is_empty() {
        let _ = write!(line, " | fault: {}", facts.faults.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_what_matters() {
        let facts = Facts {
            now_ms: 31_000,
            total_ms: 60_000,
            phase: "steady",
            commits: 900,
            observations: 880,
            missing: 20,
            late: 1,
            requests: 3000,
            admission_p99_us: Some(4300),
            rss_bytes: Some(18 << 20),
            faults: vec!["silent-watch".to_owned()],
            growth: "growthPerObject 12 B/object: decided in 4 min".to_owned(),
            ..Facts::default()
        };
        assert_eq!(
            line(&facts),
            " 31/60s steady   commits 900 seen 880 waiting 20 late 1 | reviews 3000 wrong 0 p99 4.3ms | RSS 18.0MiB | growthPerObject 12 B/object: decided in 4 min | fault: silent-watch"
        );
    }
}
