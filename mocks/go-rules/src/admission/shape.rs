//! Reads JSON values into Go types, as Go's decoder does. The result is a JSON value that contains only known fields.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::{Value, json};

use super::patch::BASE64;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Text,
    Flag,
    Integer {
        bits: u32,
    },
    /// Bytes: base64 or a list of numbers up to 255; stored as base64.
    Bytes,
    List(&'static Shape),
    Map(&'static Shape),
    /// A structure, whose keys are compared exactly.
    Fields(&'static [(&'static str, Shape)]),
    /// A pointer: null removes the present value.
    Pointer(&'static Shape),
    /// A value that is skipped, whatever it contains.
    Any,
}

/// Reads a value as Go type `shape` into `into`, which may already contain a value that is merged.
pub(crate) fn read<'de, D: Deserializer<'de>>(shape: &Shape, into: &mut Value, from: D) -> Result<(), D::Error> {
    Reading { shape, into }.deserialize(from)
}

struct Reading<'a> {
    shape: &'a Shape,
    into: &'a mut Value,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => from.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => from.deserialize_any(self),
        }
    }
}

impl Reading<'_> {
    /// The type of the value to which a pointer points; other types are returned unchanged.
    fn kind(&self) -> &Shape {
        match self.shape {
            Shape::Pointer(inner) => inner,
            shape => shape,
        }
    }

    fn integer<E: Error>(self, number: i128) -> Result<(), E> {
        let Shape::Integer { bits } = *self.kind() else {
            return Err(E::invalid_type(Unexpected::Other("number"), &self));
        };
        let limit = 1_i128 << (bits - 1);
        if !(-limit..limit).contains(&number) {
            return Err(E::custom(format_args!("{number} does not fit into {bits} bits")));
        }
        *self.into = i64::try_from(number).map_or(Value::Null, Value::from);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind() {
            Shape::Text => "a string",
            Shape::Flag => "a boolean",
            Shape::Integer { .. } => "an integer",
            Shape::Bytes => "base64",
            Shape::List(_) => "a list",
            Shape::Map(_) | Shape::Fields(_) => "an object",
            Shape::Pointer(_) | Shape::Any => "a value",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        // For a type that is no pointer, null changes nothing.
        if matches!(self.shape, Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Bytes) {
            *self.into = Value::Null;
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        let Shape::Flag = self.kind() else { return Err(E::invalid_type(Unexpected::Bool(flag), &self)) };
        *self.into = Value::from(flag);
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.integer(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.integer(number.into())
    }

    /// Refuses `1.0` and `1e2`, which are no integers for Go.
    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        Err(E::invalid_type(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.kind() {
            Shape::Text => {}
            Shape::Bytes => {
                let plain = super::patch::without_breaks(text);
                if let Err(error) = BASE64.decode(plain.as_bytes()) {
                    return Err(E::custom(format_args!("response.patch is not base64: {error}")));
                }
            }
            _ => return Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
        *self.into = Value::from(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match *self.kind() {
            Shape::List(item) => {
                let mut items = Vec::new();
                loop {
                    let mut value = Value::Null;
                    if list.next_element_seed(Reading { shape: item, into: &mut value })?.is_none() {
                        break;
                    }
                    items.push(value);
                }
                *self.into = Value::from(items);
            }
            Shape::Bytes => {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element::<u8>()? {
                    bytes.push(byte);
                }
                *self.into = Value::from(STANDARD.encode(bytes));
            }
            _ => return Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (fields, values) = match *self.kind() {
            Shape::Fields(fields) => (fields, None),
            Shape::Map(values) => (&[][..], Some(values)),
            _ => return Err(A::Error::invalid_type(Unexpected::Map, &self)),
        };
        if !self.into.is_object() {
            *self.into = json!({});
        }
        while let Some(key) = map.next_key::<String>()? {
            let of_field = fields.iter().find(|(name, _)| *name == key).map(|(_, shape)| shape);
            match values.or(of_field) {
                Some(shape) => map.next_value_seed(Reading { shape, into: &mut self.into[key] })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
