//! The checks of volumes with files from `ConfigMap`s, `Secret`s, the pod itself, or tokens.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::super::super::at::At;
use super::super::super::super::causes::Refuse;
use super::super::super::super::texts::not_reserved;
use super::super::environment::check_file;
use super::super::{has, items, text};
use crate::status::Cause;

/// The shortest lifetime of a projected token in seconds.
const TOKEN_MIN_S: i64 = 10 * 60;
const TOKEN_MAX_S: i64 = 1 << 32;

/// Checks a volume with files from one `ConfigMap` or `Secret`.
pub(super) fn check_map(given: &Value, kind: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.text_in(given, if kind == "secret" { "secretName" } else { "name" }, at);
    mode(given, "defaultMode", at, causes);
    let list = at.field("items");
    for (index, entry) in items(given, "items").iter().enumerate() {
        key_to_path(entry, list.item(index), causes);
    }
}

/// Checks a downward API volume; errors name the volume instead of the field.
pub(super) fn check_fields(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    mode(given, "defaultMode", at, causes);
    for entry in items(given, "items") {
        field(entry, at, causes);
    }
}

/// Checks a projected volume, which combines several sources.
pub(super) fn check_projected(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    mode(given, "defaultMode", at, causes);
    let mut paths = BTreeSet::new();
    let list = at.field("sources");
    for (index, source) in items(given, "sources").iter().enumerate() {
        let source_at = list.item(index);
        for kind in ["secret", "configMap"].into_iter().filter(|kind| has(source, kind)) {
            let (map, map_at) = (&source[kind], source_at.field(kind));
            causes.text_in(map, "name", map_at);
            let list = map_at.field("items");
            for (index, entry) in items(map, "items").iter().enumerate() {
                key_to_path(entry, list.item(index), causes);
                once(text(entry, "path"), text(map, "name"), &mut paths, at, causes);
            }
        }
        for entry in items(&source["downwardAPI"], "items") {
            field(entry, source_at.field("downwardAPI"), causes);
            once(text(entry, "path"), text(entry, "path"), &mut paths, at, causes);
        }
        if has(source, "serviceAccountToken") {
            token(&source["serviceAccountToken"], source_at.field("serviceAccountToken"), at, causes);
        }
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        if kinds.into_iter().filter(|kind| has(source, kind)).count() > 1 {
            causes.forbidden(source_at, "may not specify more than 1 volume type per source");
        }
    }
}

/// Refuses a path that two sources of one projected volume write.
fn once<'a>(path: &'a str, shown: &str, paths: &mut BTreeSet<&'a str>, at: At<'_>, causes: &mut Vec<Cause>) {
    if !path.is_empty() && !paths.insert(path) {
        causes.invalid_text(at, shown, "conflicting duplicate paths");
    }
}

fn token(given: &Value, at: At<'_>, volume: At<'_>, causes: &mut Vec<Cause>) {
    let seconds = given["expirationSeconds"].as_i64().unwrap_or(0);
    let why = match seconds {
        ..TOKEN_MIN_S => "may not specify a duration less than 10 minutes",
        TOKEN_MIN_S..=TOKEN_MAX_S => "",
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    if !why.is_empty() {
        causes.invalid(at.field("expirationSeconds"), &seconds, why);
    }
    // Errors in the path name the volume.
    let path = causes.text_in(given, "path", volume);
    if !path.is_empty() {
        not_reserved(path, volume.field("path"), causes);
    }
}

fn key_to_path(entry: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.text_in(entry, "key", at);
    let path = causes.text_in(entry, "path", at);
    not_reserved(path, at.field("path"), causes);
    mode(entry, "mode", at, causes);
}

fn field(entry: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let path = causes.text_in(entry, "path", at);
    not_reserved(path, at.field("path"), causes);
    check_file(entry, at, causes);
    mode(entry, "mode", at, causes);
}

fn mode(given: &Value, key: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if let Some(mode) = given[key].as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        causes.invalid(at.field(key), &mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
