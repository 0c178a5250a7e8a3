//! Which fields a write may have.
//!
//! Owns `fieldValidation` (Kubernetes API concepts, "Field validation"): whether a field that is unknown or written twice is
//! refused, told or passed over in silence. Custom resources are asked by their schemas, built-in ones by the table of types.

use serde_json::Value;

use crate::kube::catalogue::Resource;
use crate::kube::handler::{Answer, Call};
use crate::kube::object;
use crate::kube::status::{Cause, Failure};

/// A little less than what the JSON parser takes (128).
const DEPTH_MAX: usize = 120;

/// Said about a definition whose rules are written in CEL.
const RULES: &str = "x-kubernetes-validations are not evaluated by this server: objects that break them are accepted";

/// Removes unknown fields; answers the warnings about them and about the fields that came `twice`.
pub(super) fn prune(call: &Call, value: &mut Value, twice: &[String]) -> Result<Vec<String>, Failure> {
    let mode = call.query.field_validation.as_deref().unwrap_or("Warn");
    if !matches!(mode, "Strict" | "Warn" | "Ignore") {
        let message = format!("Unsupported value: \"{mode}\": supported values: \"Ignore\", \"Strict\", \"Warn\"");
        let about = crate::kube::status::About { group: "meta.k8s.io", kind: "CreateOptions", name: "" };
        let cause = Cause { reason: "FieldValueNotSupported", field: "fieldValidation".to_owned(), message };
        return Err(Failure::invalid(about, &[cause]));
    }
    let mut unknown = object::drop_unknown(value, &call.resource);
    if let Some(schema) = &call.served().structure {
        unknown.extend(schema.prune(value));
    }
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    let unknown: Vec<String> = unknown.chain(twice.iter().map(|path| format!("duplicate field \"{path}\""))).collect();
    match mode {
        "Strict" if !unknown.is_empty() => {
            let (kind, version) = (&call.resource.kind, &call.served().name);
            let why = unknown.join(", ");
            Err(Failure::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {why}"
            )))
        }
        "Ignore" => Ok(Vec::new()),
        _ => Ok(unknown),
    }
}

/// Refuses an object that is nested so deep that it could not be read again.
pub(super) fn check_depth(value: &Value) -> Result<(), Failure> {
    if is_deeper(value, DEPTH_MAX) {
        return Err(Failure::bad_request(format!("the object is nested deeper than {DEPTH_MAX}")));
    }
    Ok(())
}

fn is_deeper(value: &Value, than: usize) -> bool {
    let below = |value: &Value| is_deeper(value, than - 1);
    match value {
        Value::Object(map) => than == 0 || map.values().any(below),
        Value::Array(items) => than == 0 || items.iter().any(below),
        _ => false,
    }
}

/// Fills in the schema's defaults.
pub(super) fn fill(call: &Call, value: &mut Value) {
    if let Some(schema) = &call.served().structure {
        schema.fill(value);
    }
}

/// What the schema has against an object.
pub(super) fn check(call: &Call, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    call.served().structure.as_ref().map(|schema| schema.check(value, old)).unwrap_or_default()
}

/// The warning about a definition with rules that nobody evaluates.
pub(super) fn unevaluated(defined: &Resource) -> Option<String> {
    let has_rules = defined.versions.iter().filter_map(|version| version.structure.as_ref()).any(|s| s.has_rules());
    has_rules.then(|| RULES.to_owned())
}

/// Adds warnings to an answer.
pub(super) fn tell(mut answer: Answer, warnings: Vec<String>) -> Answer {
    answer.warnings.extend(warnings);
    answer
}
