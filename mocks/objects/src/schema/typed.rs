//! Checks only the types of an object's values against the object's schema.
//!
//! The type check is the first check of an object in server-side apply (`structured-merge-diff`, conversion to typed
//! values). Bounds and formats are not checked, and `null` is accepted as every type.

use serde_json::Value;

use super::{Kind, Schema};

/// Maximum number of paths of mistyped values that are returned.
const PLACES_MAX: usize = 64;

impl Schema {
    /// The paths of values with a wrong type.
    pub fn mistyped(&self, object: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        self.mistyped_at(object, "", true, &mut wrong);
        wrong
    }

    fn mistyped_at(&self, value: &Value, path: &str, is_object: bool, wrong: &mut Vec<String>) {
        let expected = match (self.kind, value) {
            (_, Value::Null)
            | (Kind::Any, _)
            | (Kind::Object, Value::Object(_))
            | (Kind::Array, Value::Array(_))
            | (Kind::Text | Kind::IntOrString, Value::String(_))
            | (Kind::Integer | Kind::Number | Kind::IntOrString, Value::Number(_))
            | (Kind::Boolean, Value::Bool(_)) => None,
            (Kind::Object, _) => Some("map"),
            (Kind::Array, _) => Some("list"),
            (Kind::Text, _) => Some("string"),
            (Kind::Integer | Kind::Number, _) => Some("numeric (int or float)"),
            (Kind::Boolean, _) => Some("boolean"),
            (Kind::IntOrString, _) => Some("scalar"),
        };
        if let Some(expected) = expected {
            if wrong.len() < PLACES_MAX {
                wrong.push(format!("{path}: expected {expected}, got {value}"));
            }
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    // The server itself checks the metadata.
                    if is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                        continue;
                    }
                    let Some(schema) = self.member(name) else { continue };
                    schema.mistyped_at(value, &format!("{path}.{name}"), schema.embedded, wrong);
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter().enumerate() {
                    schema.mistyped_at(item, &format!("{path}[{index}]"), schema.embedded, wrong);
                }
            }
            _ => {}
        }
    }
}
