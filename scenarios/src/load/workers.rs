//! Load by several processes: each process sends its share of one plan, and the coordinator merges their histograms.
//!
//! Owns the start of workers ([`gather`]), the coordinator ([`coordinate`]), the worker ([`worker`]) and their messages
//! over stdin and stdout ([`protocol`], described in `docs/worker-protocol.md`). [`job`] starts workers as Pods;
//! [`beside`] lets workers send during a run. If a worker dies, lags or sends invalid messages, the whole measurement
//! is invalid.

mod beside;
pub(crate) mod clock;
pub(crate) mod coordinate;
pub(crate) mod gather;
pub(crate) mod job;
pub(crate) mod lines;
pub(crate) mod merge;
mod peer;
pub(crate) mod protocol;
pub(crate) mod worker;

pub(crate) use beside::{Assigned, Beside, Gone};
pub(crate) use coordinate::measure;
pub(crate) use gather::Workers;

/// Maximum number of workers, the same limit as in scenario files.
pub(crate) const WORKERS_MAX: u32 = loadgen::admission::HIGHEST_WORKERS;
