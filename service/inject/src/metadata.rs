//! The metadata of an object, as the API server answers it.
//!
//! This module owns only the keys; the names decide whether an object belongs to an injection.

use std::collections::BTreeMap;

use serde::Deserialize;

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

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OwnerReference {
    pub kind: String,
    pub name: String,
}

/// An object with only its metadata.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Partial {
    pub metadata: Metadata,
}
