//! The webhook's function on files: pins every image in manifests to its digest, and changes nothing else.
//!
//! This crate owns the reading of YAML with the place of each image, its writing byte for byte around the images, and
//! KRM functions (`ResourceList` in, `ResourceList` out). A [`service_core::role::Review`] judges the images, by the
//! same reviews that an API server would send: rules, validators and messages are those of the webhook.

pub mod command;
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
