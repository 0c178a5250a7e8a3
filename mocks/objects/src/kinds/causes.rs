//! The texts of causes in `Invalid` errors that several kinds share.

use std::fmt::Display;

use serde_json::Value;

use super::at::At;
use crate::status::Cause;

/// Maximum number of causes for one object. A body of 3 MiB could have a million errors, each with its text.
const CAUSES_MAX: usize = 1000;
/// Maximum number of causes that quote the same invalid text. Without a limit, the answer could grow with the square of
/// the text's length.
pub(crate) const REPEATED_MAX: usize = 10;

/// Functions that add causes to a list.
pub(crate) trait Refuse {
    fn refuse(&mut self, reason: &'static str, at: At<'_>, message: String);

    fn invalid(&mut self, at: At<'_>, value: &(impl Display + ?Sized), why: &(impl Display + ?Sized)) {
        self.refuse("FieldValueInvalid", at, format!("Invalid value: {value}: {why}"));
    }

    fn invalid_text(&mut self, at: At<'_>, text: &str, why: &(impl Display + ?Sized)) {
        self.refuse("FieldValueInvalid", at, format!("Invalid value: {text:?}: {why}"));
    }

    /// Adds one cause for each error in an invalid text.
    fn faults(&mut self, at: At<'_>, text: &str, faults: Vec<String>) {
        for fault in faults {
            self.invalid_text(at, text, &fault);
        }
    }

    fn required(&mut self, at: At<'_>, why: &str) {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        self.refuse("FieldValueRequired", at, message);
    }

    fn forbidden(&mut self, at: At<'_>, why: &str) {
        self.refuse("FieldValueForbidden", at, format!("Forbidden: {why}"));
    }

    /// Adds a cause for a text that is not in `known`.
    fn unsupported(&mut self, at: At<'_>, text: &str, known: &[&str]) {
        let known = known.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
        self.refuse("FieldValueNotSupported", at, format!("Unsupported value: {text:?}: supported values: {known}"));
    }

    fn duplicate(&mut self, at: At<'_>, text: &str) {
        self.refuse("FieldValueDuplicate", at, format!("Duplicate value: {text:?}"));
    }

    /// Adds a cause for the name of an object that does not exist.
    fn not_found(&mut self, at: At<'_>, text: &str) {
        self.refuse("FieldValueNotFound", at, format!("Not found: {text:?}"));
    }

    fn too_long(&mut self, at: At<'_>, most: usize) {
        self.refuse("FieldValueTooLong", at, format!("Too long: may not be more than {most} bytes"));
    }

    fn too_many(&mut self, at: At<'_>, count: usize, most: usize) {
        self.refuse("FieldValueTooMany", at, format!("Too many: {count}: must have at most {most} items"));
    }

    fn not_negative(&mut self, at: At<'_>, number: Option<i64>) {
        if let Some(number) = number.filter(|number| *number < 0) {
            self.invalid(at, &number, "must be greater than or equal to 0");
        }
    }

    /// Refuses a number below `least` or above `most`.
    fn within(&mut self, at: At<'_>, number: Option<i64>, (least, most): (i64, i64)) {
        if let Some(number) = number.filter(|number| !(least..=most).contains(number)) {
            self.invalid(at, &number, &format!("must be between {least} and {most}, inclusive"));
        }
    }

    /// Refuses a text that is not in `known`; the field may be absent.
    fn one_of(&mut self, value: &Value, at: At<'_>, known: &[&str]) {
        if let Some(text) = value.as_str().filter(|text| !known.contains(text)) {
            self.unsupported(at, text, known);
        }
    }

    /// Requires a non-empty text in the field `key`, and returns it.
    fn text_in<'v>(&mut self, object: &'v Value, key: &str, at: At<'_>) -> &'v str {
        let text = object[key].as_str().unwrap_or_default();
        if text.is_empty() {
            self.required(at.field(key), "");
        }
        text
    }
}

impl Refuse for Vec<Cause> {
    fn refuse(&mut self, reason: &'static str, at: At<'_>, message: String) {
        if self.len() < CAUSES_MAX {
            self.push(Cause { reason, field: at.to_string(), message });
        }
    }
}

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
