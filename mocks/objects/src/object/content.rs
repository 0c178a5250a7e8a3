//! Which content the kinds allow, beyond the metadata, which is checked in `names`.
//!
//! Owns when which rules are asked; what they are says the row of the kind.

use serde_json::Value;

use crate::catalogue::Resource;
use crate::status::Cause;

/// Answers what is wrong with the content of an object; `old` is what an update changes.
pub fn check(value: &Value, old: Option<&Value>, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    (resource.rules.check)(value, &mut causes);
    if old.is_none() {
        (resource.rules.check_new)(value, &mut causes);
    }
    causes
}

/// Answers what `new` changes against `old` that may not be changed.
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
