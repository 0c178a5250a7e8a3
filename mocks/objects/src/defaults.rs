//! Defaults that the real server and its built-in admission plugins fill in, as far as clients and people rely on them.
//!
//! Owns the times at which defaults are filled in; the object's `Kind` contains the defaults. This module must not
//! validate.

use jiff::Timestamp;
use serde_json::Value;

use super::catalogue::Resource;
use super::fields::{each, set};
use super::object::fill_shown;

/// Fills in all defaults of a new object that already has its name and uid.
pub fn apply(value: &mut Value, resource: &Resource, now: Timestamp) {
    decoded(value, resource, now);
    prepared(value, resource);
}

/// Fills in the defaults of a new object that depend on its name and uid, after admission webhooks may have changed the
/// object.
pub fn prepared(value: &mut Value, resource: &Resource) {
    (resource.rules.named)(value);
}

/// Fills in the defaults of a new object as soon as its body is decoded.
pub fn decoded(value: &mut Value, resource: &Resource, now: Timestamp) {
    on_update(value, resource, now);
    (resource.rules.new)(value);
}

/// Fills in the defaults of an object after an update.
pub fn on_update(value: &mut Value, resource: &Resource, now: Timestamp) {
    (resource.rules.defaults)(value);
    (resource.rules.defaults_at)(value, now);
    if !resource.custom {
        let pod = resource.rules.pod_spec.iter().try_fold(value, |at, part| at.get_mut(*part));
        if let Some(pod) = pod {
            fill_shown(pod, "PodSpec");
        }
    }
}

/// Adds absent times of conditions as null, because the real server's types always have them.
pub fn on_status(value: &mut Value, resource: &Resource) {
    let times = resource.rules.condition_times;
    if let Some(status) = value.get_mut("status") {
        each(status, "conditions", |condition| times.iter().for_each(|time| set(condition, &[], time, Value::Null)));
    }
}
