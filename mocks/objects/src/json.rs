//! The JSON reader for request bodies; it also finds duplicate fields.
//!
//! Owns the rule for duplicates: of fields with the same name, the last one counts, as in a real server's JSON
//! libraries. The reader returns the paths of duplicate fields. A body without duplicates is parsed only once.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum number of paths of duplicate fields that are collected, as in the real decoder.
const PATHS_MAX: usize = 100;

/// Parses a body; returns the value and the paths of duplicate fields.
pub fn read(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let twice = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Reader { twice: &twice }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    let mut paths = Vec::new();
    if twice.get() {
        let mut again = serde_json::Deserializer::from_slice(bytes);
        Finder { at: String::new(), paths: &mut paths }.deserialize(&mut again)?;
    }
    Ok((value, paths))
}

/// Builds the JSON value of a body, and detects whether any field is duplicate.
#[derive(Clone, Copy)]
struct Reader<'a> {
    twice: &'a Cell<bool>,
}

/// Collects the paths of duplicate fields.
struct Finder<'a> {
    at: String,
    paths: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(self)?;
            if map.insert(name, value).is_some() {
                self.twice.set(true);
            }
        }
        Ok(Value::Object(map))
    }
}

/// Methods of a serde visitor that ignore all values without fields.
macro_rules! passes_by {
    () => {
        passes_by!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);

        fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
            Ok(())
        }
    };
    ($($visit:ident $what:ty),*) => {
        $(fn $visit<E: serde::de::Error>(self, _: $what) -> Result<(), E> {
            Ok(())
        })*
    };
}
pub(crate) use passes_by;

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Finder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    passes_by!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let below = Finder { at: format!("{}[{index}]", self.at), paths: &mut *self.paths };
            if items.next_element_seed(below)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            let at = if self.at.is_empty() { name.clone() } else { format!("{}.{name}", self.at) };
            if seen.insert(name) {
                fields.next_value_seed(Finder { at, paths: &mut *self.paths })?;
                continue;
            }
            if self.paths.len() < PATHS_MAX && !self.paths.contains(&at) {
                self.paths.push(at);
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_come_twice_are_named() {
        let text = br#"{"a": 1, "b": {"c": [{"d": 1, "d": 2, "d": 3}]}, "a": {"x": 1, "x": 2}, "e": "\u00e9"}"#;
        let (value, paths) = read(text).unwrap();
        assert_eq!(value, json!({"a": {"x": 2}, "b": {"c": [{"d": 3}]}, "e": "\u{e9}"}));
        assert_eq!(paths, ["b.c[0].d", "a"]);
    }

    #[test]
    fn paths_name_each_place_once_and_end_somewhere() {
        let text = br#"{"l": [0, {"d": 1, "d": 2}, {"d": 1, "d": 2}], "l": 1, "l": 2}"#;
        assert_eq!(read(text).unwrap().1, ["l[1].d", "l[2].d", "l"]);
        let many: Vec<String> = (0..PATHS_MAX + 50).map(|n| format!(r#""f{n}": 1, "f{n}": 2"#)).collect();
        assert_eq!(read(format!("{{{}}}", many.join(",")).as_bytes()).unwrap().1.len(), PATHS_MAX);
    }

    proptest! {
        /// The reader accepts the same bodies as `serde_json` and returns the same values.
        #[test]
        fn reads_as_the_library_does(value in crate::patch::tests::json(), raw in "[\\[\\]{}:,\" a0-9.e-]{0,24}") {
            let (read, paths) = read(value.to_string().as_bytes()).unwrap();
            prop_assert_eq!(read, value);
            prop_assert!(paths.is_empty());
            let library: Option<Value> = serde_json::from_str(&raw).ok();
            prop_assert_eq!(super::read(raw.as_bytes()).ok().map(|(value, _)| value), library);
        }
    }
}
