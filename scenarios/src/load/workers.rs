//! Load by several processes: each sends its share of one plan, and their histograms are added.
//!
//! Owns where workers come from ([`gather`]), the coordinator ([`coordinate`]), the worker ([`worker`]) and what they say to each
//! other over stdin and stdout ([`protocol`], described in `docs/worker-protocol.md`); [`job`] starts them as Pods. A measurement in which a worker died, lagged or talked
//! nonsense is broken as a whole: nobody could say what its numbers mean.

pub(crate) mod clock;
pub(crate) mod coordinate;
pub(crate) mod gather;
pub(crate) mod job;
pub(crate) mod lines;
pub(crate) mod merge;
mod peer;
pub(crate) mod protocol;
pub(crate) mod worker;

pub(crate) use coordinate::measure;
pub(crate) use gather::Workers;

/// More processes on one machine only make each other late.
pub(crate) const WORKERS_MAX: u32 = 64;
