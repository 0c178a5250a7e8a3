//! Tests of one process and many: the roles admission, validator and alerting, each by itself, over mTLS.

mod breaches;
mod equal;
mod external;
mod foreign;
mod gatekeeper;
mod told;
mod ways;
pub mod world;
