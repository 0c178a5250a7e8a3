//! Answers in Kubernetes' protobuf encoding, for clients that accept no other type.
//!
//! Encodes the types that the parent module decodes. An object with a field that the tables do not contain is refused,
//! so that no data is lost silently.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{DEPTH_MAX, Error, MAGIC};
use crate::builtin::{Field, Kind, is_kind, message, type_of};

/// The protobuf wire types that this module writes.
#[derive(Debug, Clone, Copy)]
enum Type {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

/// Encodes an object, a list or a `Status` in an envelope (`runtime.Unknown`).
pub fn encode(value: &Value) -> Result<Vec<u8>, Error> {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = match value["items"].as_array() {
        Some(items) => list(value, items, api_version, kind)?,
        None => fields_of(type_of(api_version, kind), value, 0)?,
    };
    let mut meta = Vec::new();
    bytes(&mut meta, 1, api_version.as_bytes());
    bytes(&mut meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    bytes(&mut out, 1, &meta);
    bytes(&mut out, 2, &raw);
    bytes(&mut out, 3, b"");
    bytes(&mut out, 4, b"");
    Ok(out)
}

/// Encodes an event of a watch (meta/v1 `WatchEvent`) with its length before it, as on a stream.
pub fn encode_event(event: &Value) -> Result<Vec<u8>, Error> {
    let mut object = Vec::new();
    bytes(&mut object, 1, &encode(&event["object"])?);
    let mut raw = Vec::new();
    bytes(&mut raw, 1, event["type"].as_str().unwrap_or_default().as_bytes());
    bytes(&mut raw, 2, &object);
    let length = u32::try_from(raw.len()).map_err(|_| Error::Short)?;
    Ok([&length.to_be_bytes()[..], &raw].concat())
}

fn list(value: &Value, items: &[Value], api_version: &str, kind: &str) -> Result<Vec<u8>, Error> {
    let of = kind.strip_suffix("List").unwrap_or(kind);
    let name = type_of(api_version, of);
    let mut out = Vec::new();
    bytes(&mut out, 1, &fields_of("meta.v1.ListMeta", &value["metadata"], 0)?);
    for item in items {
        bytes(&mut out, 2, &fields_of(name, item, 0)?);
    }
    Ok(out)
}

/// Encodes the fields of a message; `apiVersion` and `kind` of an object are in the envelope instead.
fn fields_of(name: &str, value: &Value, depth: usize) -> Result<Vec<u8>, Error> {
    let unknown = || Error::UnknownMessage { message: name.to_owned() };
    let Value::Object(object) = value else { return Err(unknown()) };
    let mut out = Vec::new();
    let known = put_fields(&mut out, name, object, depth)?;
    let others = object.iter().filter(|(key, value)| {
        let is_type = matches!(key.as_str(), "apiVersion" | "kind") && (depth == 0 || is_kind(name));
        !is_type && !value.is_null() && !known.contains(&key.as_str())
    });
    match others.map(|(key, _)| key).next() {
        Some(key) => Err(Error::NoNumber { message: name.to_owned(), field: key.clone() }),
        None => Ok(out),
    }
}

/// Writes the fields of the object into a message; returns all fields that the message can have.
fn put_fields(
    out: &mut Vec<u8>,
    name: &str,
    object: &Map<String, Value>,
    depth: usize,
) -> Result<Vec<&'static str>, Error> {
    if depth > DEPTH_MAX {
        return Err(Error::TooDeep);
    }
    let fields = message(name).ok_or_else(|| Error::UnknownMessage { message: name.to_owned() })?;
    let mut known = Vec::new();
    for field in fields {
        if field.name == "<inline>" {
            let Kind::Message(inner) = field.kind else { continue };
            let mut raw = Vec::new();
            known.extend(put_fields(&mut raw, inner, object, depth + 1)?);
            bytes(out, field.number, &raw);
            continue;
        }
        known.push(field.name);
        match object.get(field.name) {
            None | Some(Value::Null) => {}
            Some(value) => put(out, name, field, value, depth)?,
        }
    }
    Ok(known)
}

fn put(out: &mut Vec<u8>, message: &str, field: &Field, value: &Value, depth: usize) -> Result<(), Error> {
    let wrong = || Error::WireType { message: message.to_owned(), number: field.number };
    match value {
        Value::Object(map) if field.map => {
            for (key, value) in map {
                let mut entry = Vec::new();
                bytes(&mut entry, 1, key.as_bytes());
                one(&mut entry, 2, &field.kind, value, depth)?.ok_or_else(wrong)?;
                bytes(out, field.number, &entry);
            }
        }
        Value::Array(list) if field.list => {
            for value in list {
                one(out, field.number, &field.kind, value, depth)?.ok_or_else(wrong)?;
            }
        }
        value => one(out, field.number, &field.kind, value, depth)?.ok_or_else(wrong)?,
    }
    Ok(())
}

/// Writes one value with its field number; returns `None` if the value does not match the field's type.
fn one(out: &mut Vec<u8>, number: u64, kind: &Kind, value: &Value, depth: usize) -> Result<Option<()>, Error> {
    match (kind, value) {
        (Kind::Text, Value::String(text)) => bytes(out, number, text.as_bytes()),
        (Kind::Bytes, Value::String(text)) => {
            let Ok(decoded) = BASE64.decode(text) else { return Ok(None) };
            bytes(out, number, &decoded);
        }
        (Kind::Integer, Value::Number(is)) => {
            let Some(is) = is.as_i64() else { return Ok(None) };
            tag(out, number, Type::Varint);
            varint(out, is.cast_unsigned());
        }
        (Kind::Flag, Value::Bool(flag)) => {
            tag(out, number, Type::Varint);
            varint(out, u64::from(*flag));
        }
        (Kind::Double, Value::Number(is)) => {
            let Some(is) = is.as_f64() else { return Ok(None) };
            tag(out, number, Type::Fixed64);
            out.extend_from_slice(&is.to_le_bytes());
        }
        (Kind::Time | Kind::MicroTime, Value::String(text)) => {
            let Ok(time) = text.parse::<Timestamp>() else { return Ok(None) };
            let mut inner = Vec::new();
            tag(&mut inner, 1, Type::Varint);
            varint(&mut inner, time.as_second().cast_unsigned());
            tag(&mut inner, 2, Type::Varint);
            varint(&mut inner, u64::try_from(time.subsec_nanosecond()).unwrap_or(0));
            bytes(out, number, &inner);
        }
        (Kind::Quantity, Value::String(_) | Value::Number(_)) => {
            let mut inner = Vec::new();
            bytes(&mut inner, 1, value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_bytes());
            bytes(out, number, &inner);
        }
        (Kind::IntOrText, Value::String(_) | Value::Number(_)) => bytes(out, number, &int_or_text(value)),
        (Kind::Texts, Value::Array(list)) => {
            let mut inner = Vec::new();
            for text in list {
                bytes(&mut inner, 1, text.as_str().unwrap_or_default().as_bytes());
            }
            bytes(out, number, &inner);
        }
        (Kind::Json, value) => {
            let mut inner = Vec::new();
            bytes(&mut inner, 1, value.to_string().as_bytes());
            bytes(out, number, &inner);
        }
        (Kind::Either(name), value) => {
            let Some(inner) = either(name, value, depth)? else { return Ok(None) };
            bytes(out, number, &inner);
        }
        (Kind::Message(name), Value::Object(_)) => bytes(out, number, &fields_of(name, value, depth + 1)?),
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// Encodes a message that contains one of several alternatives. If the alternative is a schema, the field `allows` is
/// also set, as in Go.
fn either(name: &str, value: &Value, depth: usize) -> Result<Option<Vec<u8>>, Error> {
    let fields = message(name).ok_or_else(|| Error::UnknownMessage { message: name.to_owned() })?;
    let fits = |field: &&Field| match value {
        Value::Object(_) => field.name == "schema",
        Value::Array(_) => field.list,
        Value::Bool(_) => field.kind == Kind::Flag,
        _ => false,
    };
    let Some(field) = fields.iter().find(fits) else { return Ok(None) };
    let mut out = Vec::new();
    if let Some(allows) = fields.iter().find(|field| field.kind == Kind::Flag && value.is_object()) {
        one(&mut out, allows.number, &Kind::Flag, &Value::Bool(true), depth)?;
    }
    put(&mut out, name, field, value, depth + 1)?;
    Ok(Some(out))
}

/// Encodes `{type, intVal, strVal}`: type 0 means the number.
fn int_or_text(value: &Value) -> Vec<u8> {
    let mut inner = Vec::new();
    tag(&mut inner, 1, Type::Varint);
    varint(&mut inner, u64::from(value.is_string()));
    tag(&mut inner, 2, Type::Varint);
    varint(&mut inner, value.as_i64().unwrap_or(0).cast_unsigned());
    bytes(&mut inner, 3, value.as_str().unwrap_or_default().as_bytes());
    inner
}

fn tag(out: &mut Vec<u8>, number: u64, wire: Type) {
    varint(out, number << 3 | wire as u64);
}

fn bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    tag(out, number, Type::Bytes);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

fn low(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::decode;
    use super::*;

    /// Decoding an encoded object returns the same object, for every type of field.
    #[test]
    fn there_and_back() {
        let definition: Value = serde_json::from_str(include_str!("definition.json")).unwrap();
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "d"},
            "involvedObject": {"kind": "Pod"}, "eventTime": "2026-01-01T00:00:00.000001Z", "reason": "R",
            "source": {}, "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "c", "reportingInstance": "i",
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"a": "b"}},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8080}]}, "status": {"loadBalancer": {}},
        });
        for value in [definition, service] {
            let read = decode(&encode(&value).unwrap()).unwrap();
            assert_eq!(read, value);
        }
        let read = decode(&encode(&event).unwrap()).unwrap();
        assert_eq!(read["eventTime"], event["eventTime"]);
    }

    #[test]
    fn what_has_no_number_is_refused() {
        let foo = json!({"apiVersion": "a.b/v1", "kind": "Foo", "metadata": {}});
        assert!(matches!(encode(&foo), Err(Error::UnknownMessage { .. })));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "more": 1});
        assert!(matches!(encode(&map), Err(Error::NoNumber { .. })));
    }

    /// The start of an encoded watch event equals the bytes of a real server: the length, the type, the object in its
    /// envelope.
    #[test]
    fn an_event_stands_behind_its_length() {
        let event =
            json!({"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}});
        let frame = encode_event(&event).unwrap();
        let length = usize::try_from(u32::from_be_bytes(frame[..4].try_into().unwrap())).unwrap();
        assert_eq!(length, frame.len() - 4);
        assert_eq!(&frame[4..11], b"\x0a\x05ADDED");
        let magic = frame.windows(4).position(|window| window == MAGIC).unwrap();
        assert_eq!(decode(&frame[magic..]).unwrap()["metadata"]["name"], json!("a"));
    }
}
