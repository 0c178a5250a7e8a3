//! Converts objects between the versions and APIs in which they are served.
//!
//! Owns the decision when an object is converted; its `Kind` contains the conversion functions. Custom resources
//! without a conversion webhook get only another `apiVersion` here. All other custom resources are converted by
//! webhooks before this code gets the objects.

use serde_json::Value;

use super::catalogue::Resource;

/// Converts an object that a client sent for `resource` into the version and API in which it is stored.
pub fn to_stored(value: &mut Value, resource: &Resource) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.to_stored)(value);
    }
    if let Some(older) = resource.rules.older.as_ref().filter(|older| value["apiVersion"] == older.api_version) {
        (older.to_stored)(value);
    }
    value["apiVersion"] = Value::from(resource.stored_api_version());
}

/// Converts a stored object into the version `api_version` of `resource`.
pub fn from_stored(value: &mut Value, resource: &Resource, api_version: &str) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.from_stored)(value);
    }
    if let Some(older) = resource.rules.older.as_ref().filter(|older| older.api_version == api_version) {
        (older.from_stored)(value);
    }
    value["apiVersion"] = Value::from(api_version);
    if resource.custom && (resource.late_defaults || api_version != resource.stored_api_version()) {
        refill(value, resource, api_version);
    }
}

/// Fills in the defaults of a version's schema, as a real server does on every read ("Defaulting"). If the defaults
/// make the object too large, the object stays unchanged.
pub fn refill(value: &mut Value, resource: &Resource, api_version: &str) {
    let version = resource.versions.iter().find(|version| *version.api_version == *api_version);
    if let Some(schema) = version.and_then(|version| version.structure.as_ref()) {
        let _ = schema.fill(value);
    }
}
