//! The metadata of an object in the API server's answers.
//!
//! This module only parses the fields of the metadata; `Names::owns` decides whether an object belongs to an injection.

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

/// An object of which only the metadata is parsed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Partial {
    pub metadata: Metadata,
}
