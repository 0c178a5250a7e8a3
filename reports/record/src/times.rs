//! The bounds on times and other numbers in a record.
//!
//! Owns the bounds on numbers and the list of fields that are times. Every chart, axis and sum over time has the length
//! of the run. One row with a time in the far future would make charts and sums endless.

use super::{
    AnomalyRow, Answers, CrashRow, End, EndState, FaultRow, Interval, Manifest, MetricsRow, Objects, RequestLine,
    Sample, Step,
};

/// The latest time in a record: three phases of at most a leap year each, and one more leap year until the run has
/// ended.
pub const TIME_MS_MAX: u64 = 4 * 366 * 24 * 3_600_000;

/// Maximum number of digits of a whole number in a row: 9 TiB in bytes, 115 days in microseconds. With this bound, sums
/// over all rows of a record do not overflow.
const DIGITS_MAX: usize = 13;

/// The number of digits of the longest whole number in a JSON text; none if no number is too long.
pub(super) fn too_long(json: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while json.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'0'..=b'9' => {
                let number =
                    json[at..].iter().take_while(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte)).count();
                let digits = json[at..at + number].iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits == number && digits > DIGITS_MAX {
                    return Some(digits);
                }
                at += number;
            }
            _ => at += 1,
        }
    }
    None
}

pub(super) trait Times {
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

impl Times for Answers {
    fn latest_ms(&self) -> u64 {
        0
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
        let evidence = self.evidence.iter().flat_map(|evidence| {
            evidence.steps.iter().map(Step::t_ms).chain(evidence.read_on.iter().map(|read_on| read_on.t_ms))
        });
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
        let children = self.all_children().map(|children| children.listed_ms).max().unwrap_or(0);
        self.listed_ms.max(self.read_ms).max(children)
    }
}

impl Times for Objects {
    fn latest_ms(&self) -> u64 {
        let quiet = self.quiet.iter().flat_map(|quiet| {
            let rows = quiet.worst.iter().flat_map(|row| [row.first_ms, row.last_ms]);
            rows.chain([quiet.from_ms, quiet.to_ms])
        });
        let held = self.hanging.iter().flat_map(|hanging| {
            let rows = hanging.held.iter().map(|row| row.for_ms);
            rows.chain([hanging.read_ms])
        });
        let examples = self.siblings.iter().flat_map(|kind| &kind.examples);
        let times = examples.flat_map(|one| [one.from_ms, one.to_ms.unwrap_or(0)]);
        let queues = self.queues.iter().flat_map(|queue| [queue.from_ms, queue.to_ms]);
        let orphans = self.siblings.iter().flat_map(|kind| kind.orphans.iter().map(|orphan| orphan.for_ms));
        let deeds = self.foreign.iter().flat_map(|foreign| foreign.again.iter().chain(&foreign.deletions));
        let deeds = deeds.flat_map(|deed| {
            let read = deed.read.iter().map(|read| read.t_ms());
            read.chain([deed.t_ms, deed.gone_ms.unwrap_or(0)])
        });
        quiet.chain(held).chain(times).chain(queues).chain(orphans).chain(deeds).max().unwrap_or(0)
    }
}

impl Times for End {
    fn latest_ms(&self) -> u64 {
        let holes = self.holes.iter().flat_map(|hole| [hole.from_ms, hole.to_ms]);
        holes.fold(self.ended_ms, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::too_long;

    #[test]
    fn only_whole_numbers_have_a_bound() {
        for json in [
            r#"{"a":9999999999999,"b":[-1,0]}"#,
            r#"{"a":"99999999999999","b\"99999999999999":1}"#,
            r#"{"a":0.12345678901234567,"b":1e300,"c":12345678901234567.0,"d":1.5E+20}"#,
            r#"{"a":"99999999999999"#,
            "\"\\",
        ] {
            assert_eq!(too_long(json.as_bytes()), None, "{json}");
        }
        assert_eq!(too_long(br#"{"a":[1,{"b":18446744073709551615}]}"#), Some(20));
        assert_eq!(too_long(b"-10000000000000"), Some(14));
    }
}
