//! The webhook's own certificates: their settings, and with the feature `rotation` the code that makes the
//! certificates.
//!
//! A build without the feature `rotation` has the settings too, because manifests and messages name them.

mod config;
#[cfg(feature = "rotation")]
pub mod events;
#[cfg(feature = "rotation")]
mod rotation;

pub use config::{OwnCertificates, RawOwn};
#[cfg(feature = "rotation")]
pub use rotation::Rotation;
