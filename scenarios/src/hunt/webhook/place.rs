//! Places in an object: their names, their values, and their parts of a schema.
//!
//! Does no I/O.

use serde_json::Value;

/// Top-level keys that are no contents of an object.
const NO_CONTENTS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// Greatest depth of a place.
const DEPTH_MAX: usize = 12;
/// Maximum number of places of one object.
const PLACES_MAX: usize = 400;

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(Vec<String>);

impl Place {
    pub(super) fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|part| (*part).to_owned()).collect())
    }

    pub(super) fn below(&self, part: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.to_owned());
        Self(parts)
    }

    /// The place around this one; `None` for the whole object.
    pub(super) fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, before)| Self(before.to_vec()))
    }

    /// The last part: the name of a field, or the number of an item.
    pub(super) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The place for a reader: `spec.containers[0].image`.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            if part.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
                text = format!("{text}[{part}]");
            } else {
                let dot = if text.is_empty() { "" } else { "." };
                text = format!("{text}{dot}{part}");
            }
        }
        text
    }

    pub(super) fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            _ => value.get(part),
        })
    }

    /// The object with another value at the place. Missing objects on the way are made; `None` if the place cannot be.
    pub(super) fn set(&self, object: &Value, new: Value) -> Option<Value> {
        let mut changed = object.clone();
        *step(&mut changed, &self.0)? = new;
        Some(changed)
    }

    /// The object without the place; `None` if the object has no such place.
    pub(super) fn remove(&self, object: &Value) -> Option<Value> {
        let (last, before) = self.0.split_last()?;
        self.get(object)?;
        let mut changed = object.clone();
        match step(&mut changed, before)? {
            Value::Object(keys) => keys.remove(last).map(|_| ())?,
            Value::Array(items) => {
                items.remove(last.parse().ok()?);
            }
            _ => return None,
        }
        Some(changed)
    }

    /// The part of a schema for this place.
    pub(super) fn schema<'s>(&self, schema: &'s Value) -> Option<&'s Value> {
        self.0.iter().try_fold(schema, |schema, part| {
            let named = schema["properties"].get(part);
            named
                .or_else(|| [&schema["items"], &schema["additionalProperties"]].into_iter().find(|one| one.is_object()))
        })
    }
}

fn step<'v>(object: &'v mut Value, parts: &[String]) -> Option<&'v mut Value> {
    let mut value = object;
    for part in parts {
        value = match value {
            Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?)?,
            Value::Object(keys) => keys.entry(part.clone()).or_insert(Value::Null),
            Value::Null => {
                *value = serde_json::json!({});
                value.as_object_mut()?.entry(part.clone()).or_insert(Value::Null)
            }
            _ => return None,
        };
    }
    Some(value)
}

/// All places of an object's contents, outer places first.
pub(super) fn contents(object: &Value) -> Vec<Place> {
    let mut places: Vec<Place> = object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !NO_CONTENTS.contains(&key.as_str()))
        .map(|(key, _)| Place::of(&[key]))
        .collect();
    let mut at = 0;
    while at < places.len() && places.len() < PLACES_MAX {
        let place = places[at].clone();
        at += 1;
        if place.0.len() >= DEPTH_MAX {
            continue;
        }
        match place.get(object) {
            Some(Value::Object(keys)) => places.extend(keys.keys().map(|key| place.below(key))),
            Some(Value::Array(items)) => places.extend((0..items.len()).map(|number| place.below(&number.to_string()))),
            _ => {}
        }
    }
    places.truncate(PLACES_MAX);
    places
}

/// The places of a schema's contents without items of lists, outer places first, each with its part of the schema.
pub(super) fn of_schema(schema: &Value) -> Vec<(Place, &Value)> {
    let mut places = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !NO_CONTENTS.contains(&name.as_str()) {
            places.push((Place::of(&[name]), property));
        }
    }
    let mut at = 0;
    while at < places.len() && places.len() < PLACES_MAX {
        let (place, schema): (Place, &Value) = (places[at].0.clone(), places[at].1);
        at += 1;
        if place.0.len() < DEPTH_MAX {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                places.push((place.below(name), property));
            }
        }
    }
    places.truncate(PLACES_MAX);
    places
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_read_changed_and_removed() {
        let object = json!({"kind": "A", "spec": {"list": [{"image": "x"}], "size": 1}});
        let places: Vec<String> = contents(&object).iter().map(Place::describe).collect();
        assert_eq!(places, ["spec", "spec.list", "spec.size", "spec.list[0]", "spec.list[0].image"]);
        let image = Place::of(&["spec", "list", "0", "image"]);
        assert_eq!(image.set(&object, json!("y")).unwrap()["spec"]["list"][0]["image"], "y");
        assert_eq!(image.remove(&object).unwrap()["spec"]["list"], json!([{}]));
        assert_eq!(
            Place::of(&["spec", "map", "key"]).set(&object, json!(1)).unwrap()["spec"]["map"],
            json!({"key": 1})
        );
        assert_eq!(Place::of(&["spec", "size", "key"]).set(&object, json!(1)), None);
        assert_eq!(Place::of(&["spec", "none"]).remove(&object), None);
    }

    #[test]
    fn a_schema_has_places_too() {
        let schema = json!({"properties": {"kind": {}, "spec": {"properties": {
            "map": {"additionalProperties": {"type": "string"}}, "list": {"items": {"properties": {"a": {"type": "integer"}}}}}}}});
        let places: Vec<String> = of_schema(&schema).iter().map(|(place, _)| place.describe()).collect();
        assert_eq!(places, ["spec", "spec.list", "spec.map"]);
        let of = |parts: &[&str]| Place::of(parts).schema(&schema).cloned();
        assert_eq!(of(&["spec", "map", "x"]), Some(json!({"type": "string"})));
        assert_eq!(of(&["spec", "list", "0", "a"]), Some(json!({"type": "integer"})));
        assert_eq!(of(&["spec", "none"]), None);
    }
}
