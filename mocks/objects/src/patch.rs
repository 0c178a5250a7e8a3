//! The patch formats of the API.
//!
//! Owns decoding a patch and applying it to a JSON value: JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic
//! merge patch, and server-side apply. This module must not know the store, and never panics on outside data.

mod json_patch;
mod manager;
mod merge;
mod owners;
mod removal;
mod schema;
mod server_side;
mod strategic;
mod tracking;

use std::fmt::Display;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::catalogue::Resource;
use super::status::Failure;

pub use json_patch::{Error as OperationError, Steps};
pub use manager::Manager;
pub use merge::apply as merge_patch;
pub use server_side::{apply as server_side, check_intent, merge, untyped};
pub use tracking::track;

const ACCEPTED: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
const ACCEPTED_BUILTIN: &str = "application/json-patch+json, application/merge-patch+json, \
                                application/strategic-merge-patch+json, application/apply-patch+yaml";
/// Maximum number of operations of one JSON patch, as in kube-apiserver.
const OPERATIONS_MAX: usize = 10_000;

/// Fields that an operation of a JSON patch may have (RFC 6902, 4).
const OPERATION: &[&str] = &["op", "path", "from", "value"];
/// Maximum number of unknown fields of operations that are collected, as in the real decoder.
const NOTED_MAX: usize = 100;

/// The media type of server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";

#[derive(Debug, Clone)]
pub enum Patch {
    /// A JSON patch (RFC 6902).
    Json(json_patch::Operations),
    /// A JSON merge patch (RFC 7396).
    Merge(Value),
    /// A strategic merge patch.
    Strategic(Value),
    /// Server-side apply: an object with the fields that a manager wants to set and own.
    Apply(Value),
}

impl Patch {
    /// Decodes a body by its content type; strategic merge patches exist only for built-in types. Returns the patch,
    /// and messages about unknown and duplicate fields of the patch itself.
    pub fn decode(content_type: &str, bytes: &Bytes, strategic: bool) -> Result<(Self, Vec<String>), Failure> {
        let wrong = |error: serde_json::Error| Failure::bad_request(format!("error decoding patch: {error}"));
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            "application/json-patch+json" => {
                let (list, twice) = super::json::read(bytes).map_err(wrong)?;
                if !list.is_array() {
                    return Err(Failure::bad_request("error decoding patch: a JSON patch is a list of operations"));
                }
                let noted = noted_operations(&list, &twice);
                // An unknown operation is found when it is applied.
                let operations: json_patch::Operations =
                    serde_json::from_value(list).map_err(|error| rejected(&error))?;
                if operations.len() > OPERATIONS_MAX {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                        operations.len()
                    );
                    return Err(Failure::too_large(message));
                }
                Ok((Self::Json(operations), noted))
            }
            "application/merge-patch+json" => {
                let (patch, twice) = super::json::read(bytes).map_err(|_| Failure::plain("Invalid JSON Patch"))?;
                Ok((Self::Merge(patch), duplicates(&twice)))
            }
            "application/strategic-merge-patch+json" if strategic => {
                let (patch, twice) = super::json::read(bytes).map_err(wrong)?;
                Ok((Self::Strategic(object(patch)?), duplicates(&twice)))
            }
            APPLY => {
                let text = std::str::from_utf8(bytes).map_err(|error| Failure::bad_request(error.to_string()))?;
                let (value, twice) = super::yaml::read(text)
                    .map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")))?;
                Ok((Self::Apply(object(value)?), twice))
            }
            _ if strategic => Err(Failure::unsupported_media_type(ACCEPTED_BUILTIN)),
            // Patches of custom resources are refused without details.
            _ => Err(Failure { details: None, ..Failure::unsupported_media_type(ACCEPTED) }),
        }
    }

    /// The error for a patch whose result is not a valid object.
    pub fn made_nonsense(&self, failure: Failure) -> Failure {
        if matches!(self, Self::Apply(_)) {
            return failure;
        }
        let cause = json!({"reason": "FieldValueInvalid", "message": failure.message, "field": "patch"});
        let message = format!(" \"\" is invalid: patch: Invalid value: {}", failure.message);
        Failure::new(http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(json!({"causes": [cause]}))
    }

    pub fn apply(&self, value: &mut Value, resource: &Resource) -> Result<(), Failure> {
        match self {
            Self::Json(operations) => json_patch::apply(value, operations).map_err(|why| rejected(&why)),
            Self::Merge(patch) if !patch.is_object() => {
                Err(self.made_nonsense(Failure::bad_request("a patch must be an object")))
            }
            Self::Merge(patch) => {
                merge::apply(value, patch);
                Ok(())
            }
            Self::Strategic(patch) => strategic::apply(value, patch, resource).map_err(|why| match why {
                // The real server's library returns a plain error.
                strategic::Error::Directive(_) => Failure::plain(why.to_string()),
                _ => Failure::bad_request(why.to_string()),
            }),
            Self::Apply(_) => Err(Failure::bad_request("an apply patch needs a field manager")),
        }
    }
}

/// The error for a patch that cannot be applied. As in the real server, the error names no object.
fn rejected(why: &impl Display) -> Failure {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    Failure::new(http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(json!({}))
}

/// The unknown and the duplicate fields in the operations of a JSON patch.
fn noted_operations(list: &Value, twice: &[String]) -> Vec<String> {
    let operations = list.as_array().into_iter().flatten().enumerate();
    let members = operations
        .flat_map(|(index, one)| one.as_object().into_iter().flat_map(Map::keys).map(move |member| (index, member)));
    let unknown = members.filter(|(_, member)| !OPERATION.contains(&member.as_str())).take(NOTED_MAX);
    let unknown = unknown.map(|(index, member)| format!("json patch unknown field \"[{index}].{member}\""));
    unknown.chain(duplicates(twice).into_iter().map(|text| format!("json patch {text}"))).collect()
}

fn duplicates(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("duplicate field \"{path}\"")).collect()
}

fn object(value: Value) -> Result<Value, Failure> {
    if value.is_object() { Ok(value) } else { Err(Failure::bad_request("a patch must be an object")) }
}

#[cfg(test)]
pub mod tests;
