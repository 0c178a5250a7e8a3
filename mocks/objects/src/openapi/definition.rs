//! The schema of `CustomResourceDefinition`, as far as people write one by hand: its own schemas are left open, which are checked
//! where they are compiled.

use serde_json::{Value, json};

/// The fields that people write.
pub(super) fn schema() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let flag = |about: &str| json!({"type": "boolean", "description": about});
    let names = json!({
        "type": "object", "description": "What the kind and its collection are called.", "required": ["kind", "plural"],
        "properties": {
            "kind": text("The name of the kind, with capitals."),
            "listKind": text("The name of a list of them; the kind and List when absent."),
            "plural": text("The name of the collection in paths."),
            "singular": text("The name of one of them in commands."),
            "shortNames": {"type": "array", "items": {"type": "string"}, "description": "Shorter names in commands."},
            "categories": {"type": "array", "items": {"type": "string"}, "description": "Groups such as all."},
        },
    });
    let version = json!({
        "type": "object", "required": ["name", "served", "storage"],
        "properties": {
            "name": text("The name of the version: v1, v1beta1."),
            "served": flag("Whether the version can be asked for."),
            "storage": flag("Whether objects are stored in this version; true for exactly one."),
            "deprecated": flag("Whether a warning goes with every answer."),
            "schema": {
                "type": "object", "description": "What objects look like.",
                "properties": {"openAPIV3Schema": {"type": "object", "description": "The structural schema."}},
            },
            "subresources": {"type": "object", "description": "Whether status and scale are written apart."},
            "additionalPrinterColumns": {
                "type": "array", "items": {"type": "object"}, "description": "The columns of tables.",
            },
            "selectableFields": {
                "type": "array", "items": {"type": "object"}, "description": "What field selectors may name.",
            },
        },
    });
    let spec = json!({
        "type": "object", "description": "What is wanted.", "required": ["group", "names", "scope", "versions"],
        "properties": {
            "group": text("The group of the API, a domain."),
            "names": names,
            "scope": text("Namespaced or Cluster."),
            "versions": {"type": "array", "items": version, "description": "The versions of the kind."},
            "conversion": {"type": "object", "description": "How versions turn into each other."},
            "preserveUnknownFields": flag("Must be false."),
        },
    });
    json!({
        "type": "object", "description": "Makes a kind of objects that the API did not have.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": spec, "status": {"type": "object", "description": "What is. The system writes it."}},
    })
}
