//! Decides which fields an object in a write may have.
//!
//! Owns `fieldValidation` (Kubernetes API concepts, "Field validation"): whether an unknown or duplicate field is
//! refused, reported as a warning, or ignored. Schemas define the fields of custom resources; the table of protobuf
//! types defines the fields of built-in kinds.

use mock_objects::object;
use mock_objects::schema::Verdict;
use mock_objects::status::{Cause, Failure};
use serde_json::Value;

use crate::answer::Answer;
use crate::call::Call;

/// Deepest nesting of an object: a little less than the JSON parser's limit (128).
const DEPTH_MAX: usize = 120;

/// Types of schema errors after which CEL rules are not evaluated.
const BLOCKING: &[&str] = &[
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const NOT_ASKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                         complete validation";

/// The duplicate fields of a body, as the body's decoder reports them. Only the last value of each field is kept.
#[derive(Debug)]
pub(super) enum Twice {
    /// The paths of fields in JSON.
    Fields(Vec<String>),
    /// Messages about lines with duplicate fields in YAML.
    Lines(Vec<String>),
    /// Messages about duplicate fields in operations of a patch.
    Patch(Vec<String>),
}

impl Default for Twice {
    fn default() -> Self {
        Self::Fields(Vec::new())
    }
}

/// Removes unknown fields; returns warnings about unknown fields and about the duplicate fields in `twice`.
pub(super) fn prune(call: &Call, value: &mut Value, twice: &Twice) -> Result<Vec<String>, Failure> {
    let unknown = unknown(call, value);
    match call.query.field_validation.as_deref() {
        Some("Ignore") => Ok(Vec::new()),
        Some("Strict") => {
            let found = strict_errors(call, twice, &unknown);
            if found.is_empty() {
                return Ok(Vec::new());
            }
            let (kind, version, why) = (&call.resource.kind, &call.served().name, found.join(", "));
            Err(Failure::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {why}"
            )))
        }
        _ => Ok(warnings(call, twice, &unknown)),
    }
}

/// Removes unknown fields; returns their paths.
pub(super) fn unknown(call: &Call, value: &mut Value) -> Vec<String> {
    let mut unknown = object::drop_unknown(value, &call.resource);
    if let Some(schema) = &call.served().structure {
        unknown.extend(schema.prune(value));
    }
    unknown
}

/// The warnings for the client, in the order of a real server.
fn warnings(call: &Call, twice: &Twice, unknown: &[String]) -> Vec<String> {
    let fields = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    match twice {
        // The decoder of a type does not look inside a field that it does not know.
        Twice::Fields(paths) if !call.resource.custom => {
            let known = paths.iter().filter(|path| !unknown.iter().any(|unknown| is_at_or_below(path, unknown)));
            fields.chain(known.map(|path| format!("duplicate field \"{path}\""))).collect()
        }
        Twice::Fields(paths) => paths.iter().map(|path| format!("duplicate field \"{path}\"")).chain(fields).collect(),
        Twice::Lines(texts) | Twice::Patch(texts) => texts.iter().cloned().chain(fields).collect(),
    }
}

/// The messages about duplicate and unknown fields for the error of `fieldValidation=Strict`; all messages about lines
/// of YAML are one entry.
fn strict_errors(call: &Call, twice: &Twice, unknown: &[String]) -> Vec<String> {
    match twice {
        Twice::Lines(lines) if !lines.is_empty() => {
            let of_yaml = format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "));
            std::iter::once(of_yaml).chain(warnings(call, &Twice::default(), unknown)).collect()
        }
        twice => warnings(call, twice, unknown),
    }
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The errors of an applied object against its type, which are the same for every `fieldValidation`.
pub(super) fn untyped(call: &Call, intent: &mut Value) -> Vec<String> {
    let undeclared = unknown(call, intent).into_iter().map(|path| format!(".{path}: field not declared in schema"));
    let mut wrong: Vec<String> = undeclared.collect();
    if let Some(schema) = &call.served().structure {
        wrong.extend(schema.mistyped(intent));
    }
    wrong
}

/// Refuses duplicate fields in an applied object, or returns warnings about them.
pub(super) fn applied_twice(call: &Call, lines: Vec<String>) -> Result<Vec<String>, Failure> {
    match call.query.field_validation.as_deref() {
        Some("Strict") if !lines.is_empty() => Err(Failure::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            lines.join("\n  ")
        ))),
        Some("Ignore") => Ok(Vec::new()),
        _ => Ok(lines),
    }
}

/// Refuses an object that is nested so deeply that it could not be parsed again.
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

pub(super) fn fill(call: &Call, value: &mut Value) -> Result<(), Failure> {
    match &call.served().structure {
        Some(schema) => Ok(schema.fill(value)?),
        None => Ok(()),
    }
}

/// The errors of an object against its schema.
pub(super) fn check(call: &Call, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    call.served().structure.as_ref().map(|schema| schema.check(value, old)).unwrap_or_default()
}

/// The errors of an object against the schema's CEL rules; `found` are its errors against the schema.
pub(super) fn judge(call: &Call, value: &Value, old: Option<&Value>, found: &[Cause]) -> Verdict {
    let Some(schema) = call.served().structure.as_ref().filter(|schema| schema.has_rules()) else {
        return Verdict::default();
    };
    if found.iter().any(|cause| BLOCKING.contains(&cause.reason)) {
        let cause = Cause::invalid("<nil>", "\"null\"", NOT_ASKED);
        return Verdict { causes: vec![cause], ..Verdict::default() };
    }
    schema.judge(value, old)
}

pub(super) fn tell(mut answer: Answer, warnings: Vec<String>) -> Answer {
    answer.warnings.extend(warnings);
    answer
}
