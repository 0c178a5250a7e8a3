//! The part of an object that says whose it is, as the API server answers it.
//!
//! Owns nothing but the keys: whether an object belongs to an injection is decided by its names.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The metadata of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    pub name: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    #[serde(rename = "ownerReferences")]
    pub owners: Vec<OwnerReference>,
}

/// An owner of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OwnerReference {
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
}

/// An object of which only the metadata matters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Partial {
    pub metadata: Metadata,
}
