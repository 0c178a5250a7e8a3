//! The run record: the directory that a run writes, and the only input of judges and renderers.
//!
//! Owns the names of its files, the types of their rows and their versioned schema. Rows are plain facts; nothing here
//! judges. Readers tolerate fields that they do not know, so that an older build can still show a newer record of the
//! same schema version.
//!
//! All times `*_ms` are milliseconds since the run's epoch, all `*_us` are lengths in microseconds.

mod manifest;
mod rows;

pub use manifest::{Machine, Manifest, Phases, PlannedFault, SCHEMA, Subject, Versions};
pub use rows::{
    AdmissionRow, AnomalyRow, ApiRow, ChurnRow, CommitEvent, End, EndReason, EventCounts, FaultEvent, FaultRow, Fds,
    Interval, MachineRow, Phase, Process, Quantiles, Sample, WitnessRow,
};
