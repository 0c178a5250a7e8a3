//! The progress line of a run.

use std::time::Duration;

use crate::live::Live;

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
    /// The text on growth: how long until each growth budget is decided.
    pub(super) growth: String,
}

/// Creates a progress line that is not shown yet.
pub(super) fn live(quiet: bool) -> Live {
    Live::new(quiet, "{bar:20} {percent:>3} % ends in {eta} {msg}", Duration::ZERO)
}

/// Shows the latest values in the progress line.
pub(super) fn show(live: &mut Live, facts: &Facts) {
    let length = Duration::from_millis(facts.total_ms);
    live.show(Duration::from_millis(facts.now_ms), length, || line(facts));
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
