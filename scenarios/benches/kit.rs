//! The common parts of all benchmarks: the measured processes and their usage, clients, servers, figures and
//! requirements.

pub(crate) mod apiserver;
pub(crate) mod client;
pub(crate) mod cores;
pub(crate) mod floor;
pub(crate) mod process;
pub(crate) mod report;
