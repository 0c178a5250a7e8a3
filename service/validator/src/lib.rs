//! Role validator: verdicts about images for other processes, and for Gatekeeper.
//!
//! Owns what its paths mean. Who signed an image is known to whoever is behind the seam [`service_core::judge::Judge`]; listening, limits
//! and the forms on the wire belong to `service-contract`.

mod config;
mod desk;
mod provider;
mod role;

pub use config::Validator;
pub use role::Validating;
