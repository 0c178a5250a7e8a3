//! The webhook's own certificates: their settings, and with the feature `rotation` the replicas' own authority.
//!
//! Manifests and messages name the settings, so a build without the rotation has them too.

mod config;
#[cfg(feature = "rotation")]
pub mod events;
#[cfg(feature = "rotation")]
mod rotation;

pub use config::{OwnCertificates, RawOwn};
#[cfg(feature = "rotation")]
pub use rotation::Rotation;
