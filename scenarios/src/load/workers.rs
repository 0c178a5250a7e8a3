//! Load by several processes: each sends its share of one plan, and their histograms are added.
//!
//! Owns the coordinator ([`coordinate`]), the worker ([`worker`]) and what they say to each other ([`protocol`], version 1,
//! described in `docs/worker-protocol.md`). A measurement in which a worker died, lagged or talked nonsense is broken as a
//! whole: nobody could say what its numbers mean.

pub(crate) mod clock;
pub(crate) mod coordinate;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod protocol;
pub(crate) mod worker;

pub(crate) use coordinate::{Workers, measure};

/// More processes on one machine only make each other late.
pub(crate) const WORKERS_MAX: u32 = 64;
