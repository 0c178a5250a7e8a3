//! The code that all benchmarks share: measured processes and their CPU and memory, clients, servers, figures and
//! requirements.

pub(crate) mod apiserver;
pub(crate) mod client;
pub(crate) mod cores;
pub(crate) mod floor;
pub(crate) mod process;
pub(crate) mod report;
