//! One object in the versions and APIs that it is served in.
//!
//! Owns between which versions more than `apiVersion` differs: the two APIs of events, and `HorizontalPodAutoscaler`. Those of
//! custom resources are converted by the strategy `None`. It must not fill in defaults.

pub mod autoscaler;

use serde_json::Value;

use super::catalogue::Resource;
use super::events;

/// Turns what somebody sent through `resource` into the stored form.
pub fn to_stored(value: &mut Value, resource: &Resource) {
    if resource.mirrors {
        events::to_stored(value);
    }
    let stored = resource.stored_api_version();
    if value["apiVersion"] == stored {
        return;
    }
    if changes_content(resource) {
        autoscaler::to_newer(value);
    }
    value["apiVersion"] = Value::from(stored);
}

/// Turns what is stored into what `resource` shows in a version.
pub fn from_stored(value: &mut Value, resource: &Resource, api_version: &str) {
    if resource.mirrors {
        events::from_stored(value);
    }
    if api_version != resource.stored_api_version() && changes_content(resource) {
        autoscaler::to_older(value);
    }
    value["apiVersion"] = Value::from(api_version);
}

/// Whether the versions of a resource have other fields. Its owners are written down by the fields of the stored one.
pub fn changes_content(resource: &Resource) -> bool {
    &*resource.full_name == autoscaler::RESOURCE
}
