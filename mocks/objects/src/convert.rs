//! One object in the versions and APIs that it is served in.
//!
//! Owns when an object is converted; how, says the row of its kind. Those of custom resources whose versions have one schema get another
//! `apiVersion` here; all others are converted before anybody sees them.

use serde_json::Value;

use super::catalogue::Resource;

/// Turns what somebody sent through `resource` into the stored form.
pub fn to_stored(value: &mut Value, resource: &Resource) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.to_stored)(value);
    }
    if let Some(older) = resource.rules.older.as_ref().filter(|older| value["apiVersion"] == older.api_version) {
        (older.to_stored)(value);
    }
    value["apiVersion"] = Value::from(resource.stored_api_version());
}

/// Turns what is stored into what `resource` shows in a version.
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

/// Fills in the defaults that a definition has in a version, as a real server does whenever it reads ("Defaulting"); what would
/// grow beyond all bounds stays as it is.
pub fn refill(value: &mut Value, resource: &Resource, api_version: &str) {
    let version = resource.versions.iter().find(|version| *version.api_version == *api_version);
    if let Some(schema) = version.and_then(|version| version.structure.as_ref()) {
        let _ = schema.fill(value);
    }
}
