//! Incoming connections: listeners, server TLS, drain, and the health endpoints.
//!
//! This module owns sockets and their limits. The module knows neither reviews nor watches: callers pass a handler that
//! answers calls, and health probes.

mod call_memory;
mod connection;
mod connection_state;
mod drain;
mod expiry;
mod exposition;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod health;
mod heartbeat;
mod listener;
mod metrics;
mod owed;
mod peer;
mod process;
mod slots;
mod stream;
mod table;
mod tls;
mod unread;
mod watched;
mod way;

pub use call_memory::CallMemory;
pub use drain::{Drain, Phase};
pub use expiry::Certificates;
pub use health::{Health, Probe};
pub use heartbeat::Heartbeat;
pub use listener::{Listener, Protocols};
pub use metrics::{ListenerMetrics, Metrics};
pub use peer::{Accounts, Entered, Meter, Peer};
pub use process::register as register_process;
pub use slots::{Limits, Reason};
pub use tls::{CertificateError, ClientCertificate, Files, Handed, Labels, Refusal, Rules, ServerTls};
pub use way::{Answer, Broken, Calls, Handler, serve};
