//! The final report of a tracer: its counts, and whether this machine was too slow for the rate.

use std::path::Path;

/// The time to wake a thread on a machine that is not idle. A shorter wait takes too long by the program's clock.
pub const RESOLUTION_NS: i128 = 60_000;

/// Minimum number of waits before the tracer decides whether the rate is too high.
const WAITS_TO_JUDGE: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Number of times that a thread stopped for the tracer.
    pub stops: u64,
    /// Number of waits whose limit was shortened.
    pub waits: u64,
    /// Number of waits that became shorter than the time to wake a thread.
    pub too_short: u64,
    /// Number of programs that got the changed clock.
    pub programs: u64,
    /// CPU time of the tracer, in milliseconds.
    pub cpu_ms: u64,
}

impl Summary {
    /// Adds waits that the traced threads counted themselves.
    pub(crate) fn add(&mut self, waits: u64, too_short: u64) {
        self.waits += waits;
        self.too_short += too_short;
    }

    /// Counts a wait of `real_ns`, which is `own_ns` by the program's clock.
    pub(crate) fn count(&mut self, real_ns: i128, own_ns: i128) {
        self.waits += 1;
        self.too_short += u64::from(real_ns < RESOLUTION_NS && own_ns >= RESOLUTION_NS);
    }

    /// Whether the rate is too high: most waits take longer than they should by the program's clock.
    pub(crate) fn is_too_fast(&self) -> bool {
        self.waits >= WAITS_TO_JUDGE && self.too_short > self.waits / 2
    }

    /// Writes the summary as one line of JSON.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let Self { stops, waits, too_short, programs, cpu_ms } = self;
        let line = format!(
            r#"{{"stops":{stops},"waits":{waits},"tooShort":{too_short},"programs":{programs},"cpuMs":{cpu_ms}}}"#
        );
        std::fs::write(path, line + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_too_high_is_noticed() {
        let said = |real_ns: i128| {
            let mut summary = Summary::default();
            (0..1000).for_each(|_| summary.count(real_ns, real_ns * 30));
            summary.is_too_fast()
        };
        assert_eq!((said(10_000), said(100_000)), (true, false));
        // The program itself wanted such short waits.
        assert!(!said(500));
        let mut summary = Summary::default();
        summary.add(1023, 900);
        assert!(summary.is_too_fast());
    }
}
