//! The checks of an object's content; the module `names` checks the metadata.
//!
//! Owns the decision when rules are checked; the object's `Kind` contains the rules.

use serde_json::Value;

use crate::catalogue::Resource;
use crate::status::Cause;

/// The errors in the content of an object; `old` is its state before an update.
pub fn check(value: &Value, old: Option<&Value>, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    (resource.rules.check)(value, &mut causes);
    if old.is_none() {
        (resource.rules.check_new)(value, &mut causes);
    }
    causes
}

pub fn check_update(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    for pointer in resource.rules.fixed {
        let (before, after) = (old.pointer(pointer), new.pointer(pointer));
        if before.is_some() && before != after {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let shown = after.map_or_else(|| "null".to_owned(), Value::to_string);
            causes.push(Cause::invalid(&field, &shown, "field is immutable"));
        }
    }
    for (pointer, why) in resource.rules.forbidden {
        if old.pointer(pointer) != new.pointer(pointer) {
            causes.push(Cause::forbidden(&pointer.trim_start_matches('/').replace('/', "."), why));
        }
    }
    (resource.rules.check_update)(new, old, &mut causes);
    causes
}
