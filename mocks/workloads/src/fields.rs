//! Functions that read fields of objects as JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A time in whole seconds, as the API writes it.
pub(crate) fn seconds(now: Timestamp) -> Value {
    // Truncated, not rounded.
    Value::from(format!("{now:.0}"))
}

/// A text at a JSON pointer; empty if absent.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number at a JSON pointer; 0 if absent.
pub(crate) fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn map(value: &Value, pointer: &str) -> Map<String, Value> {
    value.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

pub(crate) fn name(value: &Value) -> &str {
    text(value, "/metadata/name")
}

pub(crate) fn namespace(value: &Value) -> &str {
    text(value, "/metadata/namespace")
}

pub(crate) fn uid(value: &Value) -> &str {
    text(value, "/metadata/uid")
}

pub(crate) fn label<'v>(value: &'v Value, key: &str) -> &'v str {
    value["metadata"]["labels"][key].as_str().unwrap_or_default()
}

pub(crate) fn annotation<'v>(value: &'v Value, key: &str) -> &'v str {
    value["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

pub(crate) fn is_deleting(value: &Value) -> bool {
    !text(value, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer).parse().ok()
}

/// The owner reference of an object to its controller.
pub(crate) fn controller(value: &Value) -> Option<&Value> {
    list(value, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == json!(true))
}

/// Adds a number to a status unless the number is 0, like Go's `omitempty`.
pub(crate) fn put(status: &mut Map<String, Value>, key: &str, number: i64) {
    if number == 0 {
        status.remove(key);
    } else {
        status.insert(key.to_owned(), json!(number));
    }
}

/// Reads a number, or a percentage of `of` that is rounded up or down.
pub(crate) fn share(value: &Value, of: i64, up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    let hundredths = percent.unwrap_or(0).saturating_mul(of);
    if up { hundredths.saturating_add(99) / 100 } else { hundredths / 100 }
}

/// Whether a `LabelSelector` selects these labels. An absent selector selects no labels, an empty selector all.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let equal = map(selector, "/matchLabels").iter().all(|(key, text)| labels.get(key) == Some(text));
    equal
        && list(selector, "/matchExpressions").iter().all(|expression| {
            let label = labels.get(text(expression, "/key"));
            let among = || list(expression, "/values").iter().any(|value| Some(value) == label);
            match text(expression, "/operator") {
                "In" => among(),
                "NotIn" => !among(),
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}

/// The 32-bit FNV-1a hash of a value, written with the letters that `pod-template-hash` uses.
pub(crate) fn hash(value: &Value, collisions: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = value.to_string();
    if collisions > 0 {
        text.push_str(&collisions.to_string());
    }
    let bits = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    bits.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_deployments_round_them() {
        assert_eq!((share(&json!("25%"), 3, true), share(&json!("25%"), 3, false)), (1, 0));
        assert_eq!((share(&json!(2), 3, true), share(&json!("100%"), 3, false)), (2, 3));
        assert_eq!(share(&json!("0%"), 3, true), 0);
    }

    #[test]
    fn a_selector_that_is_absent_selects_nothing() {
        let labels = json!({"a": "1"});
        assert!(!selects(&Value::Null, &labels));
        assert!(selects(&json!({"matchLabels": {"a": "1"}}), &labels));
        let not = json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]});
        assert!(!selects(&not, &labels));
    }
}
