//! What every benchmark needs: the processes that are measured and what they use, clients, the servers round them, figures and requirements.

pub(crate) mod apiserver;
pub(crate) mod client;
pub(crate) mod cores;
pub(crate) mod floor;
pub(crate) mod process;
pub(crate) mod report;
