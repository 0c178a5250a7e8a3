//! JSON patch (RFC 6902), through the `json-patch` crate.

use serde_json::Value;

/// The operations of one patch.
pub(crate) type Operations = ::json_patch::Patch;

/// All operations or none.
pub(super) fn apply(value: &mut Value, operations: &Operations) -> Result<(), String> {
    ::json_patch::patch(value, operations).map_err(|error| error.to_string())
}
