//! The structural schemas of custom resources.
//!
//! Owns the compiled form of `openAPIV3Schema` and its uses for an object: pruning unknown fields, filling in defaults,
//! and checking (Kubernetes documentation, "Extend the Kubernetes API with `CustomResourceDefinitions`"; OpenAPI 3.0,
//! schema object). The module `read` compiles schemas, `check` checks objects, `rules` compiles CEL rules, and `judge`
//! evaluates CEL rules. This module must not know the store.

mod check;
mod formats;
mod judge;
mod read;
mod rules;
mod typed;

use mock_cel::re2::Pattern;
use serde_json::{Map, Number, Value};

use super::OBJECT_MAX_BYTES;
use super::status::Failure;

use formats::Format;
pub use judge::Verdict;
pub use read::read;

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the schema's own independent keywords")]
pub struct Schema {
    kind: Kind,
    nullable: bool,
    default: Option<Value>,
    /// Maximum number of bytes of JSON that the schema's defaults can add to an object.
    default_bytes: usize,
    properties: Vec<(String, Schema)>,
    required: Vec<String>,
    additional: Additional,
    items: Option<Box<Schema>>,
    allowed: Option<Vec<Value>>,
    pattern: Option<Pattern>,
    format: Option<Format>,
    bounds: Bounds,
    list: ListType,
    /// `x-kubernetes-map-type: atomic`: the object is replaced as a whole.
    one_value: bool,
    /// Whether unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    preserves: bool,
    /// Whether the value is an object with `apiVersion`, `kind` and `metadata`.
    embedded: bool,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    /// Whether this schema or a schema below it has CEL rules.
    has_rules: bool,
    /// The CEL rules of this schema, without those of schemas below it.
    rules: Option<Box<rules::Rules>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Any,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

#[derive(Debug, Default)]
enum Additional {
    /// The keyword is absent: unknown fields are pruned.
    #[default]
    Unsaid,
    Anything,
    Like(Box<Schema>),
}

/// The keyword `x-kubernetes-list-type`.
#[derive(Debug, Default)]
enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// How the items of an old and a new list are matched.
#[derive(Debug)]
pub enum Merge<'a> {
    /// Items match if these keys have equal values; each key has its default.
    ByKeys(Vec<(&'a str, Option<&'a Value>)>),
    /// Items match if they are equal, as in a set.
    Set,
    /// Items are not matched: the list is replaced as a whole.
    Atomic,
}

impl Kind {
    /// The name of the type in errors about rules.
    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Any | Self::IntOrString => "",
        }
    }
}

/// Error: the defaults alone are larger than an object may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overgrown;

impl From<Overgrown> for Failure {
    fn from(_: Overgrown) -> Self {
        Self::too_large(format!(
            "etcdserver: request is too large: the defaults of its schema alone are more than {OBJECT_MAX_BYTES} bytes"
        ))
    }
}

#[derive(Debug, Default)]
struct Bounds {
    min: Option<Number>,
    min_excluded: bool,
    max: Option<Number>,
    max_excluded: bool,
    multiple_of: Option<f64>,
    length: (Option<u64>, Option<u64>),
    items: (Option<u64>, Option<u64>),
    properties: (Option<u64>, Option<u64>),
}

impl Schema {
    /// The schema of the field at a path of field names; the path cannot lead through items of lists.
    pub fn below(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |mut at, name| {
            while let Some(items) = &at.items {
                at = items;
            }
            at.member(name)
        })
    }

    pub fn merge(&self) -> Merge<'_> {
        match (&self.list, &self.items) {
            (ListType::Set, _) => Merge::Set,
            (ListType::Map(keys), Some(items)) if !keys.is_empty() => {
                let default = |key: &str| items.property(key).and_then(|schema| schema.default.as_ref());
                Merge::ByKeys(keys.iter().map(|key| (key.as_str(), default(key))).collect())
            }
            _ => Merge::Atomic,
        }
    }

    /// Whether objects of this schema are replaced as a whole.
    pub fn is_one_value(&self) -> bool {
        self.one_value
    }

    /// Removes the fields that the schema does not declare; returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        self.prune_at(object, "", true, &mut unknown);
        unknown
    }

    /// Fills in the defaults of absent fields. A field that is `null` but not nullable counts as absent, and is removed
    /// if it has no default. The method stops if the defaults alone are larger than an object may be: every item of a
    /// list may have a default, so twenty kilobytes could become gigabytes.
    pub fn fill(&self, value: &mut Value) -> Result<(), Overgrown> {
        self.fill_within(value, &mut { OBJECT_MAX_BYTES })
    }

    fn fill_within(&self, value: &mut Value, room: &mut usize) -> Result<(), Overgrown> {
        match value {
            Value::Object(object) => self.fill_object(object, room),
            Value::Array(items) => match &self.items {
                Some(schema) => items.iter_mut().try_for_each(|item| schema.fill_within(item, room)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn fill_object(&self, object: &mut Map<String, Value>, room: &mut usize) -> Result<(), Overgrown> {
        // Typed clients send `null` for empty values (apiextensions-apiserver, `PruneNonNullableNullsWithoutDefaults`).
        object.retain(|name, value| !value.is_null() || self.member(name).is_none_or(|schema| schema.nullable));
        for (name, schema) in &self.properties {
            if let (None, Some(default)) = (object.get(name), &schema.default) {
                *room = room.checked_sub(schema.default_bytes).ok_or(Overgrown)?;
                object.insert(name.clone(), default.clone());
            }
            if let Some(value) = object.get_mut(name) {
                schema.fill_within(value, room)?;
            }
        }
        if let Additional::Like(schema) = &self.additional {
            let known = |name: &String| self.properties.iter().any(|(property, _)| property == name);
            for (_, value) in object.iter_mut().filter(|(name, _)| !known(name)) {
                schema.fill_within(value, room)?;
            }
        }
        Ok(())
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.iter().find(|(property, _)| property == name).map(|(_, schema)| schema)
    }

    /// The schema of a member, which may be a field or an entry of a map.
    fn member(&self, name: &str) -> Option<&Self> {
        self.property(name).or(match &self.additional {
            Additional::Like(schema) => Some(schema),
            _ => None,
        })
    }

    fn prune_at(&self, value: &mut Value, path: &str, is_object: bool, unknown: &mut Vec<String>) {
        match value {
            Value::Object(object) => object.retain(|name, value| {
                // The server itself checks the metadata.
                if is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let Some(schema) = self.member(name) else {
                    let stays = self.preserves || matches!(self.additional, Additional::Anything);
                    if !stays {
                        unknown.push(below);
                    }
                    return stays;
                };
                schema.prune_at(value, &below, schema.embedded, unknown);
                true
            }),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    schema.prune_at(item, &format!("{path}[{index}]"), schema.embedded, unknown);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
