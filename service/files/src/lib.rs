//! The webhook's function on files: every image of manifests pinned to its digest, and nothing else of them changed.
//!
//! Owns how YAML is read with the place of each image and written back byte for byte around it, KRM functions (`ResourceList` in,
//! `ResourceList` out). What becomes of an image is asked of [`service_core::role::Review`], by the same reviews that
//! an API server would send: rules, validators and messages are those of the webhook.

mod edit;
mod objects;
mod paths;
mod pin;
pub mod resource_list;
mod review;
mod yaml;

pub use objects::{Finding, Pin, Severity, Wanted};
pub use paths::{Path, PathError};
pub use pin::{Pinned, diff, pin};
pub use yaml::{Error as YamlError, TEXT_BYTES_MAX};
