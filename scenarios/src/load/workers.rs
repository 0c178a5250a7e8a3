//! Load by several processes: each sends its share of one plan, and their histograms are added.
//!
//! Owns where workers come from ([`gather`]), the coordinator ([`coordinate`]), the worker ([`worker`]) and what they say to each
//! other ([`protocol`], version 2, described in `docs/worker-protocol.md`). A measurement in which a worker died, lagged or talked
//! nonsense is broken as a whole: nobody could say what its numbers mean.

pub(crate) mod clock;
pub(crate) mod coordinate;
pub(crate) mod gather;
pub(crate) mod greet;
pub(crate) mod lines;
pub(crate) mod merge;
mod peer;
pub(crate) mod protocol;
pub(crate) mod token;
pub(crate) mod worker;

use std::time::Duration;

pub(crate) use coordinate::measure;
pub(crate) use gather::Workers;

/// More processes on one machine only make each other late.
pub(crate) const WORKERS_MAX: u32 = 64;
/// The longest that workers may be waited for: a cluster that has not started them by then will not.
pub(crate) const WAIT_MAX: Duration = Duration::from_mins(30);
