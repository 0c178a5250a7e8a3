//! Does the webhook's work on files: pins every image in manifests to its digest and changes nothing else.
//!
//! This crate owns the parsing of YAML with the position of each image, the edits of the images' bytes, and KRM
//! functions (`ResourceList` in, `ResourceList` out). A [`service_core::role::Review`] judges the images by reviews
//! like those that an API server sends. So the rules, validators and messages for files are those of the webhook.

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
