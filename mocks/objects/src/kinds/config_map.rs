//! `ConfigMap`: settings that are not secret. The rules for the keys of a `ConfigMap` also apply to a `Secret`.

use serde_json::Value;

use super::print::entries;
use super::{Causes, Generation, Kind, Meaning};
use crate::status::Cause;

pub(super) const CONFIG_MAP: Kind = Kind {
    about: "Settings that are no secret: texts and bytes under keys.",
    cells: |row| vec![row.name(), (entries(row, "/data") + entries(row, "/binaryData")).into(), row.age()],
    check,
    check_update,
    data: &[("data", false), ("binaryData", true)],
    generation: Generation::None,
    meaning: Meaning::ConfigMap,
    ..Kind::of("configmaps")
};

/// Longest key of a `ConfigMap` or `Secret` in characters: keys can be file names.
const KEY_MAX_CHARS: usize = 253;

fn check(value: &Value, causes: &mut Causes) {
    check_keys(value, "data", causes);
    check_keys(value, "binaryData", causes);
    for key in value["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if value["binaryData"].get(key).is_some() {
            let why = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(&format!("data[{key}]"), &format!("\"{key}\""), why));
        }
    }
}

pub(super) fn check_keys(value: &Value, map: &str, causes: &mut Causes) {
    for key in value[map].as_object().into_iter().flatten().map(|(key, _)| key) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = !key.is_empty() && key.len() <= KEY_MAX_CHARS && key.bytes().all(plain);
        if !fits || matches!(key.as_str(), "." | "..") {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
            causes.push(Cause::invalid(&format!("{map}[{key}]"), &format!("\"{key}\""), why));
        }
    }
}

/// Refuses changes if the object is immutable.
pub(super) fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    if old["immutable"] != Value::Bool(true) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    for key in ["data", "binaryData", "immutable"] {
        if old.get(key) != new.get(key) {
            causes.push(Cause::forbidden(key, why));
        }
    }
}
