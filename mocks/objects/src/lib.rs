//! The objects of the Kubernetes API, independent of their storage and serving.
//!
//! Owns the catalogue of resources, their schemas, defaults, conversions and rules, patches, selectors, protobuf,
//! tables, the OpenAPI documents, and the texts of refusals. It does no I/O and reads no clock: time and randomness are
//! arguments. It must not know users, requests or faults.

pub mod builtin;
pub mod catalogue;
pub mod convert;
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

/// The Kubernetes release of these objects.
pub const VERSION: &str = "v1.34.1";

/// etcd's default limit of one request, which is the largest object in a real cluster.
pub const OBJECT_MAX_BYTES: usize = 1_572_864;
