//! Tests of the service as one process and as several: the roles admission, validator and alerting, connected by mTLS.

mod breaches;
mod equal;
mod external;
mod foreign;
mod gatekeeper;
mod told;
mod ways;
pub mod world;
