//! What a tracer has to say at the end: how often it was asked, and whether the rate was higher than this machine bears.

use std::path::Path;

/// Waking a thread takes about so long on a machine that is not idle: waits that became shorter take longer than their share.
pub const RESOLUTION_NS: i128 = 60_000;

/// Of so many waits the rate is judged.
const WAITS_TO_JUDGE: u64 = 1000;

/// Counts of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Times that a thread stopped.
    pub stops: u64,
    /// Waits whose limit was shortened.
    pub waits: u64,
    /// Of those, how many became shorter than the scheduler keeps.
    pub too_short: u64,
    /// Programs that were given the clock.
    pub programs: u64,
    /// Processor time of the tracer.
    pub cpu_ms: u64,
}

impl Summary {
    /// Counts waits of which the threads themselves kept the number.
    pub(crate) fn add(&mut self, waits: u64, too_short: u64) {
        self.waits += waits;
        self.too_short += too_short;
    }

    /// Counts a wait of so many real nanoseconds, that the program meant to be as long as `own_ns`.
    pub(crate) fn count(&mut self, real_ns: i128, own_ns: i128) {
        self.waits += 1;
        self.too_short += u64::from(real_ns < RESOLUTION_NS && own_ns >= RESOLUTION_NS);
    }

    /// Whether the rate is too high: most waits are not as short as they should be.
    pub(crate) fn is_too_fast(&self) -> bool {
        self.waits >= WAITS_TO_JUDGE && self.too_short > self.waits / 2
    }

    /// Writes it as one line of JSON.
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
        // The program itself meant them to be so short.
        assert!(!said(500));
        let mut summary = Summary::default();
        summary.add(1023, 900);
        assert!(summary.is_too_fast());
    }
}
