//! The run record: the directory that a run writes, and the only input of judges and renderers.
//!
//! Owns the names of the record's files, the types of their rows and their versioned schema. Rows are plain facts; the
//! crate `reports` has the judges. Readers tolerate unknown fields, so that an older build can still show a newer
//! record of the same schema version.
//!
//! All fields named `*_ms` are milliseconds since the run's epoch or lengths in milliseconds. Fields named `*_us` are
//! lengths in microseconds.

use std::io;
use std::path::PathBuf;

mod answers;
pub mod budgets;
mod crashes;
mod end_state;
mod events;
mod evidence;
#[cfg(any(test, feature = "example"))]
pub mod example;
mod files;
mod hidden;
mod last;
mod latency;
mod manifest;
mod objects;
mod open;
mod outcome;
mod reader;
mod requests;
mod rows;
mod sees;
mod signals;
mod sink;
mod slices;
mod times;
mod writer;

pub use answers::{Answers, DIFFERENCES_MAX};
pub use crashes::{CRASH_ROWS_MAX, CrashRow};
pub use end_state::{
    ChildProblem, ChildProblemKind, ChildrenState, Difference, DifferenceKind, Differences, EXAMPLES_MAX, EndState,
    IdeaSource, Left,
};
pub use events::{EVENTS_MAX, Events};
pub use evidence::{Evidence, ReadOn, STEPS_MAX, Step};
pub use files::write_whole;
pub use hidden::is_hidden;
pub use latency::{BANDS, HistogramLog, Latency, RESPONSE_TAGS, Slice, band_edge_us, tag};
pub use manifest::{
    Machine, Manifest, Need, PLANNED_FAULTS_MAX, Phases, PlannedFault, SCHEMA, Subject, Versions, WebhookPlan,
};
pub use objects::{
    Backlog, Carried, DEEDS_MAX, Drifted, FLIPS_MAX, Flip, Foreign, ForeignRequest, HUNG_MAX, Hanging, Met,
    NAMED_CHILDREN_MAX, ORPHANS_MAX, Objects, Orphaned, PutOn, Quiet, REWRITTEN_MAX, Read, Refusals, Rewritten,
    Siblings, StuckFinalizer, TOO_MANY_MAX, TooMany,
};
pub use open::file_of;
pub use outcome::{EventCounts, Outcome};
pub use reader::{Record, RecordFile};
pub use requests::{
    EndedBy, LEASES, OTHER_LINES_MAX, REQUEST_LINES_MAX, RequestLine, RequestRow, RequestSummary, Requests, Verb,
};
pub use rows::{
    AdmissionRow, AlertsRow, AnomalyRow, ApiRow, Audited, CallsRow, ChurnRow, CommitEvent, End, EndReason, FaultEvent,
    FaultRow, Fds, HOLE_DETAIL_MAX, HOLES_MAX, Hole, Interval, Lost, MachineRow, Phase, Process, Quantiles, Refused,
    RegistryRow, SAMPLES_BEYOND, Sample, StoredRow, WebhookRow, WitnessRow, is_unsure, quantile_us, samples_needed,
};
pub use sees::{Sees, Sight};
pub use signals::{Cgroup, METRIC_SERIES_MAX, MetricsPlan, MetricsRow, Sockets};
pub use times::TIME_MS_MAX;
pub use writer::{ANOMALY_ROWS_PER_OUTCOME, Writer, tell_story};

pub mod file {
    /// The file with the [`super::Manifest`].
    pub const MANIFEST: &str = "manifest.json";
    /// Each line is an [`super::Interval`].
    pub const INTERVALS: &str = "intervals.jsonl";
    /// Each line is a [`super::Sample`].
    pub const SAMPLES: &str = "samples.jsonl";
    /// The histograms of [`super::Latency`].
    pub const LATENCY: &str = "latency.hlog";
    /// Latencies that move to [`LATENCY`] when their time range is complete. The file is absent once a run has ended.
    pub const LATENCY_OPEN: &str = "latency.open.hlog";
    /// Each line is a [`super::FaultRow`].
    pub const FAULTS: &str = "faults.jsonl";
    /// Each line is an [`super::AnomalyRow`].
    pub const ANOMALIES: &str = "anomalies.jsonl";
    /// Each line is a [`super::CommitEvent`].
    pub const COMMITS: &str = "commits.jsonl.zst";
    /// Each line is a [`facts::Observation`].
    pub const OBSERVATIONS: &str = "observations.jsonl.zst";
    /// Each line is a [`super::CrashRow`]. The file is absent if the subject is not started again after a crash.
    pub const CRASHES: &str = "crashes.jsonl";
    /// Each line is a [`super::MetricsRow`].
    pub const METRICS: &str = "metrics.jsonl";
    /// Each line is a [`super::RequestLine`].
    pub const REQUESTS: &str = "requests.jsonl";
    /// The file with the [`super::EndState`].
    pub const END_STATE: &str = "end-state.json";
    /// The file with the [`super::Objects`].
    pub const OBJECTS: &str = "objects.json";
    /// The file with the [`super::Answers`].
    pub const ANSWERS: &str = "answers.json";
    /// The file with the [`super::End`].
    pub const END: &str = "end.json";
    /// A text about a run of a documented bug, in order of time, for people.
    pub const STORY: &str = "story.txt";
    /// The lines that the subject printed, kept unchanged.
    pub const SUBJECT_LOG: &str = "subject.log";
    /// Older lines of [`SUBJECT_LOG`], after its rotation.
    pub const SUBJECT_LOG_BEFORE: &str = "subject.log.1";
    /// The folder with the logs of a real control plane.
    pub const CONTROL_PLANE: &str = "control-plane";
    /// The files that runs write, each with a description for people. `reports::render::reports` lists the reports that
    /// are written after judging.
    pub const DESCRIBED: [(&str, &str); 19] = [
        (MANIFEST, "the plan of the run: scenario, seed, versions, machine"),
        (INTERVALS, "rates, outcomes and quantiles of each interval"),
        (SAMPLES, "memory, processor, descriptors; the machine"),
        (METRICS, "the subject's own metrics"),
        (LATENCY, "all latencies, as HdrHistogram's interval log"),
        (LATENCY_OPEN, "the latencies that are not yet in `latency.hlog`"),
        (FAULTS, "when each fault was planned, active and hit"),
        (ANOMALIES, "each version with another outcome than observed"),
        (REQUESTS, "the subject's requests"),
        (CRASHES, "processes that ended by themselves"),
        (COMMITS, "every version that was written"),
        (OBSERVATIONS, "every version that was reported"),
        (END_STATE, "the subject's state beside a fresh list"),
        (OBJECTS, "writes that continue, deletions that hang, surplus children"),
        (ANSWERS, "answers of webhooks to the same questions"),
        (END, "how the run ended"),
        (SUBJECT_LOG, "the output of the subject"),
        (SUBJECT_LOG_BEFORE, "earlier output of the subject"),
        (STORY, "what happened, told"),
    ];
    pub const CONTROL_PLANE_DOC: &str = "the log of the control plane";
    /// The verdict for programs, see `reports::render`.
    pub const VERDICT: &str = "verdict.json";
    /// The report for people.
    pub const HTML: &str = "report.html";
    /// The report for pull requests.
    pub const MARKDOWN: &str = "report.md";
    /// The report for CI systems.
    pub const JUNIT: &str = "junit.xml";
    /// The report for services that read CTRF.
    pub const CTRF: &str = "ctrf.json";
    /// Verdict and totals for monitoring.
    pub const OPENMETRICS: &str = "metrics.txt";
    /// The metrics for collectors of OpenTelemetry.
    pub const OTLP: &str = "otlp.json";
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{action} {}", path.display())]
    Io {
        /// The action that failed: `write`, `read` or `create`.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("write a row of {}", path.display())]
    Encode {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("write a histogram to {}: {reason}", path.display())]
    Histogram { path: PathBuf, reason: String },
    /// A path of the record is not a regular file: reading a pipe or device may never end.
    #[error("read {}: it is a link or not a regular file; a run writes only regular files", path.display())]
    NotAFile { path: PathBuf },
    /// A file is larger than any run writes, or all files together exceed the limit.
    #[error("read {}: it has {bytes} bytes, more than the {limit} that are left to read of a record", path.display())]
    TooLarge {
        path: PathBuf,
        bytes: u64,
        /// Maximum number of bytes that the reader accepts.
        limit: u64,
    },
    #[error("read {}: it has more than {limit} rows, the most that a run writes", path.display())]
    TooMany {
        path: PathBuf,
        /// Maximum number of rows that the reader accepts.
        limit: usize,
    },
    #[error("read line {line} of {}: {time_ms} ms after the start is later than any run ends", path.display())]
    Time {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The latest time in the row, in milliseconds.
        time_ms: u64,
    },
    /// A row has a number larger than any run reaches: sums with this number would be wrong.
    #[error("read line {line} of {}: a number of {digits} digits is larger than any count of a run", path.display())]
    Number {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The number of digits of the largest number.
        digits: usize,
    },
    #[error("find a run record in {}: it has no {}", path.display(), file::MANIFEST)]
    NotARecord { path: PathBuf },
    /// The record was written by an older or newer build.
    #[error("read {}: it has the schema `{found}`, this build reads `{SCHEMA}`; use the build that wrote it", path.display())]
    Schema {
        path: PathBuf,
        /// The version of the schema that the manifest names.
        found: String,
    },
    #[error("read line {line} of {}", path.display())]
    Row {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    #[error("read line {line} of {}: {reason}", path.display())]
    HistogramRow {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        reason: String,
    },
}

impl Error {
    pub fn is_full(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Converts the error into an I/O error, for code that writes through a stream.
    fn into_io(self) -> io::Error {
        match self {
            Self::Io { source, .. } => source,
            other => io::Error::other(other),
        }
    }
}

#[cfg(test)]
mod tests;
