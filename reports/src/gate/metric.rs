//! The metrics that a gate compares, each with the size from which a difference matters. Each metric has one entry in
//! the table [`RULES`].
//!
//! Owns the limits and floors of the metrics of a gate. Counts come first in the table, because noise of the machine
//! hardly affects them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

/// A metric of a gate. The order of these metrics is that of the gate's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Metric {
    /// Fraction of requests without a valid and correct answer.
    Failures,
    /// Fraction of object versions that were missed, or seen late or in a wrong order.
    EventFailures,
    /// Instructions per request.
    Instructions,
    /// Instructions per event.
    InstructionsPerEvent,
    /// Allocations per request.
    Allocations,
    /// Allocations per event.
    AllocationsPerEvent,
    /// System calls per request.
    Syscalls,
    /// System calls per event.
    SyscallsPerEvent,
    /// Calls of read and write on files and pipes, per request.
    FileCalls,
    /// Bytes in the body of an answer.
    AnswerBytes,
    /// Bytes between subject and control plane in both directions, per event.
    BytesPerEvent,
    /// CPU time per request.
    CpuPerRequest,
    /// CPU time per event.
    CpuPerEvent,
    /// The median of the response time.
    P50,
    /// The 99th percentile of the response time.
    P99,
    /// The median of the time until an event was seen.
    Lag,
    /// Anonymous memory after a measured time of load, while the subject is idle.
    Memory,
    /// Growth of anonymous memory over a measured time of load, per request.
    GrowthPerRequest,
    /// Growth of anonymous memory over a measured time of load, per object created in it.
    GrowthPerObject,
    /// Fraction of starts in which the program died or did not become ready.
    StartFailures,
    /// The highest resident memory of a start, until the program was at rest.
    StartMemory,
    /// The highest resident memory while the program lists everything again.
    RelistMemory,
    /// CPU time from the start until the program was ready.
    StartCpu,
    /// Time from the start until the program was ready.
    StartTime,
}

/// The kind of load under which a metric is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Reviews that are sent to a webhook.
    Reviews,
    /// Changes that a controller watches.
    Events,
    /// Starts against an API server with many objects.
    Starts,
    /// The metric is measured under any load.
    Either,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Micros,
    Bytes,
    Count,
    /// A fraction: 1 is 100 %.
    Share,
}

/// How two values are compared, and the size from which a difference matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Values are compared by their ratio, which must change by more than `limit` and, in the metric's unit, by more
    /// than `floor`.
    Ratio {
        /// The limit as a fraction, such as 0.05.
        limit: f64,
        /// Minimum difference that matters, in the metric's unit: a large change of a small value, in percent, does not
        /// matter.
        floor: f64,
    },
    /// Values are compared by their difference, because they may be zero.
    Difference {
        /// The limit, in the metric's unit.
        limit: f64,
    },
}

/// The quantity that a metric measures: count, time or memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A count, which hardly depends on other programs of the machine.
    Count,
    /// A time, which depends on other programs of the machine.
    Time,
    /// Memory that stays in use.
    Memory,
}

/// The rule for a metric: name, unit, comparison and load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    pub metric: Metric,
    /// The metric's name for people.
    pub name: &'static str,
    pub unit: Unit,
    pub scale: Scale,
    pub kind: Kind,
    pub load: Load,
    /// Whether a gate with this load cannot pass while the metric is undecided, see [`Rule::leads_in`].
    pub leads: bool,
}

/// The largest fraction by which CPU time may grow. This limit is below the limit of 5 % for latencies, because CPU
/// time is steadier. With a limit of 5 %, a build that is slower by 5 % would pass in every second gate (decision 043).
const CPU_LIMIT: f64 = 0.03;
/// The largest fraction by which exact counts may grow. Different addresses and hash seeds of two processes change
/// counts by less.
const COUNT_LIMIT: f64 = 0.02;

/// The limit for system calls per request. The number of sleeps between requests depends on their arrival times, and
/// each sleep is a system call.
const SYSCALLS_LIMIT: f64 = 0.05;

/// The limit for counts per event. The number of events in one read depends on their arrival times, and each read has a
/// cost.
const EVENT_COUNT_LIMIT: f64 = 0.05;
const EVENT_SYSCALLS_LIMIT: f64 = 0.10;

const fn rule(metric: Metric, name: &'static str, unit: Unit, kind: Kind, scale: Scale) -> Rule {
    Rule { metric, name, unit, scale, kind, load: Load::Reviews, leads: false }
}

const fn ratio(metric: Metric, name: &'static str, unit: Unit, kind: Kind, (limit, floor): (f64, f64)) -> Rule {
    rule(metric, name, unit, kind, Scale::Ratio { limit, floor })
}

const fn difference(metric: Metric, name: &'static str, unit: Unit, kind: Kind, limit: f64) -> Rule {
    rule(metric, name, unit, kind, Scale::Difference { limit })
}

/// Marks a metric that must be decided before a gate can pass.
const fn leads(rule: Rule) -> Rule {
    Rule { leads: true, ..rule }
}

/// Marks a metric that applies only to a load of events.
const fn events(rule: Rule) -> Rule {
    Rule { load: Load::Events, ..rule }
}

/// Marks a metric that applies only to starts against many objects.
const fn starts(rule: Rule) -> Rule {
    Rule { load: Load::Starts, ..rule }
}

/// The largest fraction by which memory of a start may grow, and the smallest growth that matters, in bytes: the heap of
/// a runtime with garbage collection grows in steps.
const START_MEMORY: (f64, f64) = (0.05, 4_194_304.0);

/// Every metric, in the order of the gate's report.
pub const RULES: &[Rule] = &[
    leads(difference(Metric::Failures, "requests that failed", Unit::Share, Kind::Count, 0.001)),
    leads(events(difference(Metric::EventFailures, "events missed or late", Unit::Share, Kind::Count, 0.001))),
    ratio(Metric::Instructions, "instructions a request", Unit::Count, Kind::Count, (COUNT_LIMIT, 100.0)),
    events(ratio(
        Metric::InstructionsPerEvent,
        "instructions an event",
        Unit::Count,
        Kind::Count,
        (EVENT_COUNT_LIMIT, 1000.0),
    )),
    ratio(Metric::Allocations, "allocations a request", Unit::Count, Kind::Count, (COUNT_LIMIT, 0.5)),
    events(ratio(
        Metric::AllocationsPerEvent,
        "allocations an event",
        Unit::Count,
        Kind::Count,
        (EVENT_COUNT_LIMIT, 0.5),
    )),
    ratio(Metric::Syscalls, "system calls a request", Unit::Count, Kind::Count, (SYSCALLS_LIMIT, 0.5)),
    events(ratio(
        Metric::SyscallsPerEvent,
        "system calls an event",
        Unit::Count,
        Kind::Count,
        (EVENT_SYSCALLS_LIMIT, 0.5),
    )),
    difference(Metric::FileCalls, "calls of read and write a request", Unit::Count, Kind::Count, 0.5),
    ratio(Metric::AnswerBytes, "bytes an answer", Unit::Bytes, Kind::Count, (COUNT_LIMIT, 32.0)),
    events(ratio(Metric::BytesPerEvent, "bytes an event", Unit::Bytes, Kind::Count, (EVENT_COUNT_LIMIT, 64.0))),
    leads(ratio(Metric::CpuPerRequest, "CPU time a request", Unit::Micros, Kind::Count, (CPU_LIMIT, 2.0))),
    leads(events(ratio(Metric::CpuPerEvent, "CPU time an event", Unit::Micros, Kind::Count, (0.05, 5.0)))),
    leads(ratio(Metric::P50, "response time p50", Unit::Micros, Kind::Time, (0.05, 50.0))),
    ratio(Metric::P99, "response time p99", Unit::Micros, Kind::Time, (0.10, 500.0)),
    leads(events(ratio(Metric::Lag, "lag of events p50", Unit::Micros, Kind::Time, (0.10, 500.0)))),
    Rule {
        load: Load::Either,
        ..ratio(Metric::Memory, "memory at rest", Unit::Bytes, Kind::Memory, (0.10, 2_097_152.0))
    },
    difference(Metric::GrowthPerRequest, "memory kept a request", Unit::Bytes, Kind::Memory, 256.0),
    events(difference(Metric::GrowthPerObject, "memory kept an object", Unit::Bytes, Kind::Memory, 256.0)),
    leads(starts(difference(Metric::StartFailures, "starts that failed", Unit::Share, Kind::Count, 0.001))),
    leads(starts(ratio(Metric::StartMemory, "highest memory of a start", Unit::Bytes, Kind::Memory, START_MEMORY))),
    starts(ratio(Metric::RelistMemory, "highest memory of a relist", Unit::Bytes, Kind::Memory, START_MEMORY)),
    starts(ratio(Metric::StartCpu, "CPU time of a start", Unit::Micros, Kind::Count, (0.10, 50_000.0))),
    starts(ratio(Metric::StartTime, "time to ready", Unit::Micros, Kind::Time, (0.20, 500_000.0))),
];

impl Metric {
    /// The metric's name in JSON and in the table of a calibration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::EventFailures => "eventFailures",
            Self::Instructions => "instructions",
            Self::InstructionsPerEvent => "instructionsPerEvent",
            Self::Allocations => "allocations",
            Self::AllocationsPerEvent => "allocationsPerEvent",
            Self::Syscalls => "syscalls",
            Self::SyscallsPerEvent => "syscallsPerEvent",
            Self::FileCalls => "fileCalls",
            Self::AnswerBytes => "answerBytes",
            Self::BytesPerEvent => "bytesPerEvent",
            Self::CpuPerRequest => "cpuPerRequest",
            Self::CpuPerEvent => "cpuPerEvent",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Lag => "lag",
            Self::Memory => "memory",
            Self::GrowthPerRequest => "growthPerRequest",
            Self::GrowthPerObject => "growthPerObject",
            Self::StartFailures => "startFailures",
            Self::StartMemory => "startMemory",
            Self::RelistMemory => "relistMemory",
            Self::StartCpu => "startCpu",
            Self::StartTime => "startTime",
        }
    }

    pub fn of_key(key: &str) -> Option<Self> {
        RULES.iter().map(|rule| rule.metric).find(|metric| metric.key() == key)
    }

    pub fn rule(self) -> &'static Rule {
        // The test below shows that every metric has a row.
        RULES.iter().find(|rule| rule.metric == self).unwrap_or(&RULES[0])
    }
}

impl Rule {
    /// Whether a gate with this load cannot pass while the metric is undecided: such a metric *leads*. Metrics that do
    /// not lead affect the verdict only if they are worse. If reviews are sent, the metrics of reviews lead; if a
    /// controller only watches, the metrics of events lead.
    pub fn leads_in(&self, load: Load) -> bool {
        self.leads && self.load == load
    }

    /// The value of B compared with that of A: the logarithm of the ratio, or the difference. None if the two values
    /// have no ratio.
    pub fn against(&self, a: f64, b: f64) -> Option<f64> {
        let compared = match self.scale {
            Scale::Ratio { .. } => (b / a).ln(),
            Scale::Difference { .. } => b - a,
        };
        compared.is_finite().then_some(compared)
    }

    /// The size from which a change matters, on the scale of [`Rule::against`], for a typical value `a` of A.
    pub fn limit(&self, a: f64) -> f64 {
        match self.scale {
            Scale::Ratio { limit, floor } => {
                let floor = if a > 0.0 { (floor / a).ln_1p() } else { 0.0 };
                limit.ln_1p().max(floor)
            }
            Scale::Difference { limit } => limit,
        }
    }

    /// A change on the scale of [`Rule::against`] as text: `+5.2 %`, or a difference with its unit.
    pub fn change(&self, place: f64) -> String {
        match self.scale {
            Scale::Ratio { .. } => {
                let percent = place.exp_m1() * 100.0;
                signed(percent, &format!("{} %", words::three_digits(percent.abs())))
            }
            Scale::Difference { .. } => signed(place, &self.value(place.abs())),
        }
    }

    /// A change in the unit of the gate report's rows (a fraction or a difference), as text.
    pub fn change_text(&self, change: f64) -> String {
        match self.scale {
            Scale::Ratio { .. } => self.change(change.ln_1p()),
            Scale::Difference { .. } => self.change(change),
        }
    }

    /// A value with its unit, as text.
    pub fn value(&self, value: f64) -> String {
        let sign = if value < 0.0 { "−" } else { "" };
        let size = value.abs();
        let text = match self.unit {
            Unit::Micros if size < 1000.0 => format!("{} µs", words::three_digits(size)),
            Unit::Micros => words::micros(whole(size)),
            Unit::Bytes if size < 1024.0 => format!("{} B", words::three_digits(size)),
            Unit::Bytes => words::bytes(whole(size)),
            Unit::Count if size < 1000.0 => words::three_digits(size),
            Unit::Count => words::count(whole(size)),
            Unit::Share => words::percent(size),
        };
        format!("{sign}{text}")
    }
}

/// Puts the sign of a number before the text of its absolute value; zero has no sign.
fn signed(number: f64, size: &str) -> String {
    if size.split(' ').next() == Some("0") {
        return size.to_owned();
    }
    let sign = if number < 0.0 { "−" } else { "+" };
    format!("{sign}{size}")
}

fn whole(number: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is what is meant")]
    let whole = number.round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_row_in_its_order() {
        assert!(RULES.windows(2).all(|two| two[0].metric < two[1].metric));
        assert!(RULES.iter().all(|rule| rule.metric.rule() == rule));
        assert!(RULES.iter().all(|rule| serde_json::to_value(rule.metric).unwrap() == rule.metric.key()));
        assert_eq!(RULES.len(), Metric::StartTime as usize + 1);
    }

    /// A small value may change by many percent without being worse, if the change is below the floor.
    #[test]
    fn the_floor_wins_where_there_is_little() {
        let cpu = Metric::CpuPerRequest.rule();
        assert!((cpu.limit(1000.0) - 1.03_f64.ln()).abs() < 1e-12);
        assert!((cpu.limit(10.0) - 1.2_f64.ln()).abs() < 1e-12);
        assert_eq!(cpu.against(0.0, 5.0), None);
        assert_eq!(Metric::FileCalls.rule().against(0.0, 2.0), Some(2.0));
    }

    #[test]
    fn changes_read_well() {
        let cpu = Metric::CpuPerRequest.rule();
        assert_eq!(cpu.change(1.052_f64.ln()), "+5.2 %");
        assert_eq!(cpu.change(0.9_f64.ln()), "−10 %");
        assert_eq!((cpu.value(84.25), cpu.value(1500.0)), ("84.2 µs".to_owned(), "1.5 ms".to_owned()));
        assert_eq!(Metric::GrowthPerRequest.rule().change(1024.0), "+1 KiB");
        assert_eq!(Metric::FileCalls.rule().change(-2.0), "−2");
        assert_eq!((Metric::FileCalls.rule().change(-0.001), cpu.change(0.0)), ("0".to_owned(), "0 %".to_owned()));
    }
}
