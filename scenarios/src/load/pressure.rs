//! The load on the machine while requests were sent. On a busy machine, the webhook is not the only cause of latency.
//!
//! Owns the machine's figures before and after a measurement, and the thresholds for a note. Changes no verdict,
//! because generator and webhook may themselves load the machine.

use std::time::{Duration, Instant};

use procfs::{Current as _, CurrentSI as _};
use schemars::JsonSchema;
use serde::Serialize;

/// Threshold for a note: percentage of time in which a task waited for a processor, as in a soak.
const BUSY_PCT: f64 = 50.0;
/// Threshold for a note: percentage of processor time that other virtual machines of the host took.
const STOLEN_PCT: f64 = 5.0;

/// The kernel's total times at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    /// Microseconds since boot in which at least one task waited for a processor.
    waited_us: Option<u64>,
    steal_ms: Option<u64>,
}

/// The load on the machine between two moments. A field is null if the kernel does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pressure {
    /// Percentage of time in which at least one task waited for a processor.
    pub(crate) cpu_waited_pct: Option<f64>,
    /// Percentage of processor time that other virtual machines of the host took.
    pub(crate) stolen_pct: Option<f64>,
}

impl Reading {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            waited_us: procfs::CpuPressure::current().ok().map(|psi| psi.some.total),
            steal_ms: procfs::KernelStats::current().ok().and_then(|stats| stats.total.steal_ms()),
        }
    }

    /// The load on the machine from this moment until now.
    pub(crate) fn since(&self) -> Pressure {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::now().after(self, cores)
    }

    fn after(&self, before: &Self, cores: usize) -> Pressure {
        let passed = self.at.saturating_duration_since(before.at).max(Duration::from_millis(1));
        let share = |now: Option<u64>, then: Option<u64>, unit: Duration, whole: Duration| {
            let part = unit.as_secs_f64() * now?.saturating_sub(then?) as f64;
            Some((part / whole.as_secs_f64() * 1000.0).round() / 10.0).map(|pct| pct.min(100.0))
        };
        let all = passed * u32::try_from(cores).unwrap_or(1);
        Pressure {
            cpu_waited_pct: share(self.waited_us, before.waited_us, Duration::from_micros(1), passed),
            stolen_pct: share(self.steal_ms, before.steal_ms, Duration::from_millis(1), all),
        }
    }
}

impl Pressure {
    /// The note, if the machine was busy.
    pub(crate) fn note(&self) -> Option<String> {
        let waited = self.cpu_waited_pct.filter(|pct| *pct > BUSY_PCT);
        let stolen = self.stolen_pct.filter(|pct| *pct > STOLEN_PCT);
        let waited = waited.map(|pct| format!("{pct:.0} % of the time tasks waited for a processor"));
        let stolen = stolen.map(|pct| format!("other guests of the host took {pct:.0} % of the processors"));
        let parts: Vec<String> = waited.into_iter().chain(stolen).collect();
        (!parts.is_empty())
            .then(|| format!("the machine was busy: {}. The times include waits for the machine", parts.join(", and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, waited_us: u64, steal_ms: u64) -> Reading {
        Reading { at, waited_us: Some(waited_us), steal_ms: Some(steal_ms) }
    }

    /// A busy machine gives a note. A quiet machine, or a kernel that reports no pressure, gives no note.
    #[test]
    fn a_busy_machine_is_told() {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(10);
        let before = reading(begin, 1_000_000, 500);
        let quiet = reading(end, 2_000_000, 600).after(&before, 2);
        assert_eq!((quiet.cpu_waited_pct, quiet.stolen_pct, quiet.note()), (Some(10.0), Some(0.5), None));
        let busy = reading(end, 7_000_000, 500).after(&before, 2);
        let text = "the machine was busy: 60 % of the time tasks waited for a processor. The times include waits for the machine";
        assert_eq!(busy.note().as_deref(), Some(text));
        let stolen = reading(end, 1_000_000, 2500).after(&before, 2);
        assert!(stolen.note().is_some_and(|note| note.contains("other guests of the host took 10 %")));
        let unknown = Reading { waited_us: None, steal_ms: None, ..before };
        assert_eq!(reading(end, 9_000_000, 0).after(&unknown, 2), Pressure::default());
        assert_eq!(Pressure::default().note(), None);
    }
}
