//! Everything that roles share: listeners, the wire, the client of the API server, logs, the configuration kit, health and metrics.
//!
//! It knows no role: what a role is to the program is said in [`role`].

pub mod alert;
pub mod allocator;
pub mod authority;
pub mod config;
pub mod edge;
pub mod judge;
pub mod known;
pub mod kube;
pub mod logs;
pub mod role;
pub mod share;
pub mod wire;
