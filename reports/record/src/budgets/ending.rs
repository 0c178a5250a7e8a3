//! Budgets for the end of a run: objects, fields and numbers that must be as expected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Limits on the state at the end of the drain. Only the mock control plane counts creations and deletions.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndingLimits {
    /// The expected state, one entry for each object, field or number. `longhaul hunt` writes such entries.
    pub expected: Option<Vec<Expected>>,
}

/// One expectation. All given keys must be met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expected {
    /// The resource: `deployments.apps`.
    pub resource: String,
    /// Namespace and name of the object: `default/a`. For a generated name: its beginning and `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Whether an object of this name exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// A field of the object: `status.conditions[Ready].status`. Items of a list are named by their `type` or `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value of the field; `null` if the field is absent, and `<time>` for any time. If only some objects with a
    /// generated name have the value, the expectation is met.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The highest number of objects of the resource that are created from the start of the subject on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The highest number of objects of the resource that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
    /// The highest number of additional objects of the resource at any moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
}

/// Keeps `null` as a value.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
