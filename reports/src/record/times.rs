//! Times that a record may hold.
//!
//! Owns the bound and which fields of a row it is for. Every chart, axis and sum over time is made for the length of the run: one
//! row with a time in a far future would make them endless.

use super::{AnomalyRow, CrashRow, End, EndState, FaultRow, Interval, Manifest, MetricsRow, RequestLine, Sample, Step};

/// No run is longer: its three phases have at most a leap year each, and it may take as long again to end.
pub const TIME_MS_MAX: u64 = 4 * 366 * 24 * 3_600_000;

/// A row that has times.
pub(super) trait Times {
    /// The latest of its times.
    fn latest_ms(&self) -> u64;
}

impl Times for Interval {
    fn latest_ms(&self) -> u64 {
        self.start_ms.max(self.end_ms).max(self.deadline_ms)
    }
}

impl Times for Sample {
    fn latest_ms(&self) -> u64 {
        self.t_ms
    }
}

impl Times for MetricsRow {
    fn latest_ms(&self) -> u64 {
        self.t_ms
    }
}

impl Times for CrashRow {
    fn latest_ms(&self) -> u64 {
        self.t_ms.saturating_add(self.back_off_ms)
    }
}

impl Times for FaultRow {
    fn latest_ms(&self) -> u64 {
        self.t_ms
    }
}

impl Times for AnomalyRow {
    fn latest_ms(&self) -> u64 {
        let evidence = self.evidence.iter().flat_map(|evidence| evidence.steps.iter().map(Step::t_ms));
        evidence.fold(self.t_ms.max(self.committed_ms.unwrap_or(0)).max(self.observed_ms.unwrap_or(0)), u64::max)
    }
}

impl Times for RequestLine {
    fn latest_ms(&self) -> u64 {
        match self {
            Self::Request(row) => {
                let times = [row.ended_ms, row.first_object_ms, row.last_object_ms];
                times.into_iter().flatten().fold(row.t_ms, u64::max)
            }
            Self::Summary(summary) => summary.start_ms.max(summary.end_ms),
        }
    }
}

impl Times for Manifest {
    fn latest_ms(&self) -> u64 {
        let phases = [self.phases.warm_up_ms, self.phases.steady_ms, self.phases.drain_ms];
        let faults = self.faults.iter().map(|fault| fault.at_ms.saturating_add(fault.for_ms.unwrap_or(0)));
        faults.fold(phases.into_iter().fold(0, u64::saturating_add), u64::max)
    }
}

impl Times for EndState {
    fn latest_ms(&self) -> u64 {
        let children = self.children.as_ref().map_or(0, |children| children.listed_ms);
        self.listed_ms.max(self.read_ms).max(children)
    }
}

impl Times for End {
    fn latest_ms(&self) -> u64 {
        self.ended_ms
    }
}
