//! Defaults that the real server and its built-in admission plugins fill in, as far as clients and people rely on them.
//!
//! Owns the times at which defaults are filled in; the object's `Kind` contains the defaults. This module must not
//! validate.

use jiff::Timestamp;
use serde_json::Value;

use super::catalogue::Resource;
use super::object::fill_shown;

/// Fills in all defaults of a new object that already has its name and uid.
pub fn apply(value: &mut Value, resource: &Resource, now: Timestamp) {
    decoded(value, resource, now);
    prepared(value, resource);
}

/// Fills in the defaults of a new object that depend on its name and uid; called after the admission webhooks.
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
    in_stored_form(value, resource, |value| {
        for (pointer, field) in resource.rules.disabled {
            if let Some(object) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
                object.remove(*field);
            }
        }
        (resource.rules.defaults)(value);
        (resource.rules.defaults_at)(value, now);
        show(value, resource);
    });
}

/// Fills in the defaults of an object after an update of its status.
pub fn on_status(value: &mut Value, resource: &Resource) {
    in_stored_form(value, resource, |value| show(value, resource));
}

/// Adds the fields that a built-in type shows even if no client set them. Kinds with `bare` add such fields themselves.
fn show(value: &mut Value, resource: &Resource) {
    if !resource.custom && resource.rules.bare.is_none() {
        fill_shown(value, resource.type_in(resource.stored_api_version()));
    }
}

/// Applies `change` to an object in its stored version. An object of another version is converted before the change and
/// converted back afterwards.
fn in_stored_form(value: &mut Value, resource: &Resource, change: impl FnOnce(&mut Value)) {
    let Some(older) = resource.rules.older.as_ref().filter(|older| value["apiVersion"] == older.api_version) else {
        return change(value);
    };
    (older.to_stored)(value);
    change(value);
    (older.from_stored)(value);
}
