//! The conversion of one object between the versions and APIs in which it is served.
//!
//! Owns when an object is converted; the row of its kind says how. Custom resources whose versions have one schema only
//! get another `apiVersion` here. All other custom resources are converted before this code sees them.

use serde_json::Value;

use super::catalogue::Resource;

/// Turns an object sent through `resource` into the stored form.
pub fn to_stored(value: &mut Value, resource: &Resource) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.to_stored)(value);
    }
    if let Some(older) = resource.rules.older.as_ref().filter(|older| value["apiVersion"] == older.api_version) {
        (older.to_stored)(value);
    }
    value["apiVersion"] = Value::from(resource.stored_api_version());
}

/// Turns a stored object into the form of `resource` in a version.
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

/// Fills in the defaults of a definition in a version, as a real server does on every read ("Defaulting"). If the
/// defaults would make the object too large, it stays unchanged.
pub fn refill(value: &mut Value, resource: &Resource, api_version: &str) {
    let version = resource.versions.iter().find(|version| *version.api_version == *api_version);
    if let Some(schema) = version.and_then(|version| version.structure.as_ref()) {
        let _ = schema.fill(value);
    }
}
