//! The YAML reader for bodies, which notices duplicate fields.
//!
//! Owns reading: of several fields of one name the last counts, as in the real server's decoder, and the places of the
//! others are returned in its words. A body without such fields is read once.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options, Spanned};

use super::json::passes_by;

/// Most fields that are collected, as for JSON bodies.
const TWICE_MAX: usize = 100;

/// Reads a body; returns `line 5: key "a" already set in map` for every duplicate field.
pub fn read(text: &str) -> Result<(Value, Vec<String>), serde_saphyr::Error> {
    let strict = match serde_saphyr::from_str(text) {
        Ok(value) => return Ok((value, Vec::new())),
        Err(error) => error,
    };
    let mut options = Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    // Another error appears again, so the first one is returned.
    let Ok(value) = serde_saphyr::from_str_with_options(text, options.clone()) else { return Err(strict) };
    let twice = RefCell::new(Vec::new());
    let finding = |deserializer: serde_saphyr::Deserializer<'_, '_>| Finder { twice: &twice }.deserialize(deserializer);
    serde_saphyr::with_deserializer_from_str_with_options(text, options, finding)?;
    Ok((value, twice.into_inner()))
}

/// Collects the duplicate fields.
#[derive(Clone, Copy)]
struct Finder<'a> {
    twice: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Finder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    passes_by!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<Spanned<String>>()? {
            let line = name.defined.line();
            let twice = seen.contains(&name.value);
            if twice && self.twice.borrow().len() < TWICE_MAX {
                self.twice.borrow_mut().push(format!("line {line}: key {:?} already set in map", name.value));
            }
            seen.insert(name.value);
            fields.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_come_twice_are_found_by_line() {
        let text = "a: 1\nb:\n  - c: 1\n    c: 2\n    c: [1.5, true, null, ~]\n'a': {x: 1, x: 2}\n";
        let (value, twice) = read(text).unwrap();
        assert_eq!(value, json!({"a": {"x": 2}, "b": [{"c": [1.5, true, null, null]}]}));
        let said = [
            r#"line 4: key "c" already set in map"#,
            r#"line 5: key "c" already set in map"#,
            r#"line 6: key "a" already set in map"#,
            r#"line 6: key "x" already set in map"#,
        ];
        assert_eq!(twice, said);
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(
            read("{\"a\": {\"b\": 1}, \"c\": {\"b\": 1}}").unwrap(),
            (json!({"a": {"b": 1}, "c": {"b": 1}}), vec![])
        );
        assert!(read("a: [").is_err());
        assert!(read("a: 1\na: 2\nb: [").is_err());
    }
}
