//! Descriptions of keys in the schema of scenarios: which faults have a key, and its defaults.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::keys::{quoted, those};
use super::row::Family;
use super::shared::is_of_rows;
use super::{Name, On};

/// Adds to the description of each key the faults that have the key, with their defaults.
pub(super) fn describe(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    add_to(properties);
    for (key, property) in properties {
        let Some(Value::String(doc)) = property.get_mut("description") else { continue };
        if is_of_rows(key) {
            doc.clear();
        }
        let told: Vec<String> = Name::ALL.iter().filter_map(|name| key_text(*name, key)).collect();
        let told = if told.is_empty() { String::new() } else { format!("For {}.", told.join("; ")) };
        let default = match key.as_str() {
            "on" => format!(" Default: {}, else `watch`.", defaults_of_on()),
            "count" => format!(" Default: 1 for {} without `probability`, else no limit.", those(|row| row.once)),
            _ => String::new(),
        };
        *doc += &(told + &default);
    }
}

/// How a fault uses a key, for example `` `split` (1B): the size of a piece ``.
fn key_text(name: Name, key: &str) -> Option<String> {
    let (_, default, words) = name.row().key(key)?;
    let default = if default.is_empty() { String::new() } else { format!(" ({default})") };
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    Some(format!("{}{default}{words}", quoted(name)))
}

/// The faults whose default of `on` is not `watch`, as text, for example `` `list` for `delay-answer`, `any` for
/// `stale-view` ``.
pub(crate) fn defaults_of_on() -> String {
    let of =
        |on: On, word: &str| format!("`{word}` for {}", those(|row| row.family == Family::Requests && row.on == on));
    format!("{}, {}", of(On::List, "list"), of(On::Any, "any"))
}

/// Adds the keys of single faults to the schema of the shared keys.
fn add_to(properties: &mut Map<String, Value>) {
    let mut generator = SchemaSettings::default().with(|settings| settings.inline_subschemas = true).into_generator();
    for name in Name::ALL {
        let schema = (name.row().schema)(&mut generator);
        let own = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, property) in own {
            properties.entry(key).or_insert(property);
        }
    }
}
