//! The objects of the Kubernetes API, independent of how they are stored and served.
//!
//! Owns the catalogue of resources, their schemas, defaults, conversions and rules, patches, selectors, protobuf,
//! tables, the OpenAPI documents, and the texts of errors. The crate does no I/O and reads no clock: callers pass the
//! time and random values. The crate must not know users, requests or faults.

pub mod builtin;
pub mod catalogue;
pub mod convert;
pub mod declared;
pub mod defaults;
pub(crate) mod fields;
pub mod json;
pub mod kinds;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod schema;
pub mod selector;
pub mod status;
pub mod table;
pub mod yaml;

/// The Kubernetes release whose rules this crate implements, and whose kinds it has by default.
pub const VERSION: &str = "v1.34.1";

/// Largest object in bytes: etcd's default limit of one request.
pub const OBJECT_MAX_BYTES: usize = 1_572_864;
