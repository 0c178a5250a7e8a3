//! The words of refusals that several kinds share.

use serde_json::Value;

use crate::status::Cause;

pub(crate) fn at_least(value: &Value, pointer: &str, field: &str, least: i64, causes: &mut Vec<Cause>) {
    if let Some(number) = value.pointer(pointer).and_then(Value::as_i64).filter(|number| *number < least) {
        let why = if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
        causes.push(Cause::invalid(field, &number.to_string(), why));
    }
}

pub(crate) fn unsupported(field: &str, value: &str, allowed: &str) -> Cause {
    let message = format!("Unsupported value: \"{value}\": supported values: {allowed}");
    Cause { reason: "FieldValueNotSupported", field: field.to_owned(), message }
}

pub(crate) fn duplicate(field: &str, value: &str) -> Cause {
    let message = format!("Duplicate value: \"{value}\"");
    Cause { reason: "FieldValueDuplicate", field: field.to_owned(), message }
}

pub(crate) fn required(value: &Value, pointer: &str, causes: &mut Vec<Cause>) {
    if value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().is_empty() {
        causes.push(Cause::required(&pointer.trim_start_matches('/').replace('/', "."), ""));
    }
}
