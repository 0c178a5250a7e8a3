//! Request bodies in Kubernetes' protobuf encoding, which typed clients of recent client-go send for built-in types.
//!
//! Decodes protobuf bodies into the JSON that all other code uses; the module `encode` encodes answers. A body with a
//! field that the table does not contain is refused, so that no data is lost silently. This module never panics on
//! outside data.

mod encode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::builtin::{self, Field, Kind, message};

pub use encode::{encode, encode_event};

pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The first bytes of every protobuf body ("Kubernetes API concepts", protobuf encoding).
const MAGIC: &[u8] = b"k8s\0";
/// Deepest nesting of messages. Real objects nest about ten deep; schemas in definitions nest two messages for every
/// level of fields.
const DEPTH_MAX: usize = 64;

/// Fields that older clients send and that the server ignores: `clusterName`, which Kubernetes 1.24 removed.
const RETIRED: &[(&str, u64)] = &[(builtin::OBJECT_META, 15)];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the body does not start with k8s\\0")]
    NoMagic,
    #[error("the body ends in the middle of a field")]
    Short,
    #[error("field {number} of {message} has another wire type than expected")]
    WireType { message: String, number: u64 },
    /// The tables do not contain the message.
    #[error("{message} is not understood in protobuf: send JSON")]
    UnknownMessage { message: String },
    /// The tables do not contain a field of the body.
    #[error("field {number} of {message} is not understood in protobuf: send JSON")]
    UnknownField { message: String, number: u64 },
    /// The tables do not contain a field of the object to encode.
    #[error("{field} of {message} has no number in protobuf")]
    NoNumber { message: String, field: String },
    #[error("a text is not UTF-8")]
    Text,
    /// Messages are nested more deeply than allowed.
    #[error("the body is nested too deeply")]
    TooDeep,
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

/// Decodes a body. The body's envelope (`runtime.Unknown`) names the type of the content.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    let mut envelope = Reader(body.strip_prefix(MAGIC).ok_or(Error::NoMagic)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, wire)) = envelope.field()? {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some((number, wire)) = meta.field()? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = builtin::type_of(&api_version, &kind);
    let mut object = decode_message(name, raw, 0)?;
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Ok(Value::Object(object))
}

fn decode_message(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, Error> {
    if depth > DEPTH_MAX {
        return Err(Error::TooDeep);
    }
    let fields = message(name).ok_or_else(|| Error::UnknownMessage { message: name.to_owned() })?;
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if RETIRED.contains(&(name, number)) {
            continue;
        }
        let field = fields.iter().find(|field| field.number == number);
        let field = field.ok_or_else(|| Error::UnknownField { message: name.to_owned(), number })?;
        put(&mut object, name, field, &wire, depth)?;
    }
    Ok(object)
}

fn put(
    object: &mut Map<String, Value>,
    message: &str,
    field: &Field,
    wire: &Wire<'_>,
    depth: usize,
) -> Result<(), Error> {
    let wrong = || Error::WireType { message: message.to_owned(), number: field.number };
    if field.map {
        let Wire::Bytes(entry) = wire else { return Err(wrong()) };
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut entry = Reader(entry);
        while let Some((number, wire)) = entry.field()? {
            match (number, &wire) {
                (1, Wire::Bytes(bytes)) => key = text(bytes)?,
                (2, _) => value = decode_value(&field.kind, &wire, depth)?.ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        if value.is_null() {
            value = Value::from("");
        }
        let map = object.entry(field.name).or_insert_with(|| json!({}));
        if let Some(map) = map.as_object_mut() {
            map.insert(key, value);
        }
        return Ok(());
    }
    if field.name == "<inline>" {
        let (Kind::Message(inner), Wire::Bytes(bytes)) = (&field.kind, wire) else { return Err(wrong()) };
        object.append(&mut decode_message(inner, bytes, depth + 1)?);
        return Ok(());
    }
    let value = decode_value(&field.kind, wire, depth)?.ok_or_else(wrong)?;
    if field.list {
        let list = object.entry(field.name).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(value);
        }
    } else if field.optional || field.shown || !is_zero(&value) {
        object.insert(field.name.to_owned(), value);
    }
    Ok(())
}

/// Whether a value is zero. A protobuf body always contains the fields that are not optional, and JSON omits their zero
/// values.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    }
}

/// Decodes the value of a field; `None` if the wire type does not match `kind`.
fn decode_value(kind: &Kind, wire: &Wire<'_>, depth: usize) -> Result<Option<Value>, Error> {
    Ok(Some(match (kind, wire) {
        (Kind::Text, Wire::Bytes(bytes)) => Value::from(text(bytes)?),
        (Kind::Bytes, Wire::Bytes(bytes)) => Value::from(BASE64.encode(bytes)),
        (Kind::Integer, Wire::Number(number)) => Value::from(number.cast_signed()),
        (Kind::Flag, Wire::Number(number)) => Value::from(*number != 0),
        (Kind::Message(name), Wire::Bytes(bytes)) => Value::Object(decode_message(name, bytes, depth + 1)?),
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => time(bytes, *kind == Kind::MicroTime)?,
        (Kind::Quantity, Wire::Bytes(bytes)) => first_text(bytes)?,
        (Kind::IntOrText, Wire::Bytes(bytes)) => int_or_text(bytes)?,
        (Kind::Texts, Wire::Bytes(bytes)) => texts(bytes)?,
        (Kind::Double, Wire::Bytes(bytes)) => match <[u8; 8]>::try_from(*bytes) {
            Ok(bytes) => double(f64::from_le_bytes(bytes)),
            Err(_) => return Ok(None),
        },
        (Kind::Either(name), Wire::Bytes(bytes)) => either(decode_message(name, bytes, depth + 1)?),
        (Kind::Json, Wire::Bytes(bytes)) => {
            let mut inner = Reader(bytes);
            match inner.field()? {
                Some((1, Wire::Bytes(raw))) => serde_json::from_slice(raw).map_err(|_| Error::Text)?,
                _ => Value::Null,
            }
        }
        _ => return Ok(None),
    }))
}

/// Converts a number to JSON: without a fraction if the number is whole.
fn double(number: f64) -> Value {
    /// The largest number up to which an `f64` represents every integer exactly.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < WHOLE_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and below the bound")]
        return Value::from(number as i64);
    }
    Value::from(number)
}

/// The JSON value of a message that contains one of several alternatives: the schema, if the message has one.
fn either(mut message: Map<String, Value>) -> Value {
    let schema = message.remove("schema");
    schema.or_else(|| message.into_iter().next().map(|(_, other)| other)).unwrap_or(Value::Bool(false))
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, Error> {
    let (mut seconds, mut nanos) = (None, 0);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Number(value)) => seconds = Some(value.cast_signed()),
            (2, Wire::Number(value)) => nanos = i32::try_from(value).unwrap_or(0),
            _ => {}
        }
    }
    let Some(time) = seconds.and_then(|seconds| Timestamp::new(seconds, nanos).ok()) else { return Ok(Value::Null) };
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Value::from(time.strftime(format).to_string()))
}

fn first_text(bytes: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader(bytes);
    match reader.field()? {
        Some((1, Wire::Bytes(bytes))) => Ok(Value::from(text(bytes)?)),
        _ => Ok(Value::Null),
    }
}

fn texts(bytes: &[u8]) -> Result<Value, Error> {
    let (mut list, mut reader) = (Vec::new(), Reader(bytes));
    while let Some((number, wire)) = reader.field()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            list.push(Value::from(text(bytes)?));
        }
    }
    Ok(Value::from(list))
}

/// Decodes `{type, intVal, strVal}`: type 0 means the number.
fn int_or_text(bytes: &[u8]) -> Result<Value, Error> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    let mut reader = Reader(bytes);
    while let Some((field, wire)) = reader.field()? {
        match (field, wire) {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => string = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { Value::from(string) } else { Value::from(number) })
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Error::Text)
}

impl<'a> Reader<'a> {
    /// Reads the next field of a message; `None` at the end of the message.
    fn field(&mut self) -> Result<Option<(u64, Wire<'a>)>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bytes(self.take(8)?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Error::Short)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Bytes(self.take(4)?),
            _ => return Err(Error::Short),
        };
        Ok(Some((tag >> 3, wire)))
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Error::Short)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::Short)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Error::Short)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        out.extend_from_slice(content);
        out
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn a_config_map() {
        let meta = [field(1, b"a"), field(2, b""), field(3, b"default"), field(8, b"")].concat();
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &meta), field(2, &entry)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"},
            "data": {"k": "v"},
        });
        assert_eq!(decode(&body("v1", "ConfigMap", &raw)), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let unknown = decode(&body("v1", "ConfigMap", &field(15, b"x")));
        assert_eq!(unknown, Err(Error::UnknownField { message: "core.v1.ConfigMap".to_owned(), number: 15 }));
        assert!(matches!(decode(&body("v1", "NoSuchKind", b"")), Err(Error::UnknownMessage { .. })));
        assert_eq!(decode(b"{}"), Err(Error::NoMagic));
    }

    /// Decodes the bytes of a definition that kube-apiserver 1.20.2 sent, and compares them with its JSON.
    #[test]
    fn a_definition() {
        let expected: Value = serde_json::from_str(include_str!("protobuf/definition.json")).unwrap();
        assert_eq!(decode(include_bytes!("protobuf/definition.bin")), Ok(expected));
    }

    proptest! {
        /// Decoding random bytes ends with a value or an error.
        #[test]
        fn never_panics(raw in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(&raw);
            let raw = &raw[..raw.len().min(100)];
            let _ = decode(&body("apps/v1", "Deployment", raw));
            let _ = decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw));
        }
    }
}
