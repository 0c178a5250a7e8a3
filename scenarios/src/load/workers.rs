//! Load by several processes: each sends its share of one plan, and their histograms are added.
//!
//! Owns where workers come from ([`gather`]), the coordinator ([`coordinate`]), the worker ([`worker`]) and what they say to each
//! other over stdin and stdout ([`protocol`], described in `docs/worker-protocol.md`); [`job`] starts them as Pods, [`beside`] lets them send while a run goes on. A measurement in which a worker died, lagged or talked
//! nonsense is broken as a whole: nobody could say what its numbers mean.

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

/// As scenarios have it.
pub(crate) const WORKERS_MAX: u32 = loadgen::admission::HIGHEST_WORKERS;
