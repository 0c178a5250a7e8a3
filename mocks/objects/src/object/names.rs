//! The checks of names and labels of objects (Kubernetes documentation, "Object Names and IDs").
//!
//! Owns the checks of names and their error messages.

use mock_cel::formats::{LABEL, NAME_PART, SUBDOMAIN, VALUE, is_label, is_name};
use serde_json::Value;

use crate::catalogue::Resource;
use crate::kinds::Names;
use crate::object::meta;
use crate::status::Cause;

/// The errors in the name, labels and annotations of an object.
pub fn check_name(value: &Value, resource: &Resource) -> Vec<Cause> {
    let name = meta(value, "name");
    let quoted = || format!("\"{name}\"");
    let mut causes = Vec::new();
    let allowed = resource.rules.names;
    let too_long = match allowed {
        Names::Label => 63,
        Names::Subdomain | Names::Path => 253,
        Names::LongPath => usize::MAX,
    };
    let is_path = matches!(allowed, Names::Path | Names::LongPath);
    if name.len() > too_long {
        let why = format!("must be no more than {too_long} characters");
        causes.push(Cause::invalid("metadata.name", &quoted(), &why));
    } else if is_path {
        if matches!(name, "." | "..") || name.contains(['/', '%']) {
            causes.push(Cause::invalid("metadata.name", &quoted(), "may not be '.' or '..' or contain '/' or '%'"));
        }
    } else if allowed == Names::Label {
        if !is_label(name) {
            causes.push(Cause::invalid("metadata.name", &quoted(), LABEL));
        }
    } else if !name.split('.').all(is_label) {
        causes.push(Cause::invalid("metadata.name", &quoted(), SUBDOMAIN));
    }
    let prefix = meta(value, "generateName");
    // A generated name may continue after a dash at the end.
    let masked = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |start| format!("{start}a"));
    let strict = allowed == Names::Label;
    let fits = if strict { is_label(&masked) } else { masked.split('.').all(is_label) };
    if !is_path && !prefix.is_empty() && !fits {
        let why = if strict { LABEL } else { SUBDOMAIN };
        causes.push(Cause::invalid("metadata.generateName", &format!("\"{prefix}\""), why));
    }
    finalizers(value, resource, &mut causes);
    owners(value, &mut causes);
    for map in ["labels", "annotations"] {
        causes.extend(check_texts(value, map));
    }
    causes
}

/// Checks the keys and values of `labels` or of `annotations`.
pub fn check_texts(value: &Value, map: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let field = format!("metadata.{map}");
    for (key, text) in value["metadata"][map].as_object().into_iter().flatten() {
        if !check_label_key(key) {
            causes.push(Cause::invalid(&field, &format!("\"{key}\""), NAME_PART));
        }
        match text.as_str() {
            None => causes.push(Cause::invalid(&field, &text.to_string(), "must be a string")),
            Some(text) if map == "labels" && !is_label_value(text) => {
                causes.push(Cause::invalid(&field, &format!("\"{text}\""), VALUE));
            }
            Some(_) => {}
        }
    }
    causes
}

fn finalizers(value: &Value, resource: &Resource, causes: &mut Vec<Cause>) {
    for (index, finalizer) in crate::object::finalizers(value).into_iter().enumerate() {
        let quoted = format!("\"{finalizer}\"");
        if !check_label_key(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &quoted, NAME_PART));
        }
        let standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&finalizer);
        if !resource.rules.plain_finalizers && !standard && !finalizer.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&format!("metadata.finalizers[{index}]"), &quoted, why));
        }
    }
}

fn owners(value: &Value, causes: &mut Vec<Cause>) {
    for owner in value["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        for (field, what) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let why = format!("{what} must not be empty");
                causes.push(Cause::invalid(&format!("metadata.ownerReferences.{field}"), "\"\"", &why));
            }
        }
    }
}

/// Refuses new finalizers in an object that is being deleted.
pub fn check_finalizers_of_deleted(value: &Value, old: &Value) -> Vec<Cause> {
    let (before, after) = (crate::object::finalizers(old), crate::object::finalizers(value));
    let new: Vec<&&str> = after.iter().filter(|finalizer| !before.contains(finalizer)).collect();
    if new.is_empty() || !crate::object::is_deleting(old) {
        return Vec::new();
    }
    let why = format!("no new finalizers can be added if the object is being deleted, found new finalizers {new:?}");
    vec![Cause::forbidden("metadata.finalizers", &why)]
}

pub fn check_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_fits = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.to_lowercase().split('.').all(is_label));
    prefix_fits && !name.is_empty() && is_label_value(name)
}

fn is_label_value(text: &str) -> bool {
    text.len() <= 63 && (text.is_empty() || is_name(text))
}
