//! One object in the versions and APIs that it is served in.
//!
//! Owns when an object is converted; how, says the row of its kind. Those of custom resources are converted by the strategy
//! `None`. It must not fill in defaults.

use serde_json::Value;

use super::catalogue::Resource;

/// Turns what somebody sent through `resource` into the stored form.
pub fn to_stored(value: &mut Value, resource: &Resource) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.to_stored)(value);
    }
    let stored = resource.stored_api_version();
    if value["apiVersion"] == stored {
        return;
    }
    if let Some(older) = &resource.rules.older {
        (older.to_newer)(value);
    }
    value["apiVersion"] = Value::from(stored);
}

/// Turns what is stored into what `resource` shows in a version.
pub fn from_stored(value: &mut Value, resource: &Resource, api_version: &str) {
    if let Some(mirror) = &resource.rules.mirror {
        (mirror.from_stored)(value);
    }
    if let Some(older) = resource.rules.older.as_ref().filter(|_| api_version != resource.stored_api_version()) {
        (older.to_older)(value);
    }
    value["apiVersion"] = Value::from(api_version);
}

/// Whether the versions of a resource have other fields. Its owners are written down by the fields of the stored one.
pub fn changes_content(resource: &Resource) -> bool {
    resource.rules.older.is_some()
}
