//! The order of keys in an object's JSON.
//!
//! Owns the keys that are written first, because people and many scripts need the type of an object at once. All other
//! keys follow in alphabetical order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// The keys that are written first, as a real API server writes them.
const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];

/// A JSON value that is serialised with `kind`, `apiVersion` and `metadata` first.
#[derive(Debug, Clone, Copy)]
pub struct Ordered<'a>(pub &'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for key in FIRST {
            if let Some(value) = fields.get(key) {
                map.serialize_entry(key, value)?;
            }
        }
        for (key, value) in fields.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Ordered<'_> {
    pub fn to_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("a JSON value with text keys always serialises")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_it_is_comes_first() {
        let value = json!({"data": {"kind": 1, "a": 2}, "metadata": {}, "apiVersion": "v1", "kind": "A", "spec": null});
        let text = String::from_utf8(Ordered(&value).to_bytes()).unwrap();
        assert_eq!(text, r#"{"kind":"A","apiVersion":"v1","metadata":{},"data":{"a":2,"kind":1},"spec":null}"#);
        for other in [json!({}), json!([1]), json!("a"), json!({"z": 1, "a": 2})] {
            assert_eq!(Ordered(&other).to_bytes(), other.to_string().into_bytes());
        }
    }
}
