//! The merge rules of lists: by a key, as a set, or as a whole.
//!
//! The merge rules come from the published types of built-in kinds ("patch strategy", "list type") and from the schemas
//! of custom resources (Kubernetes documentation, "Server-Side Apply", "Merge strategy"). Lists without a rule are
//! replaced as a whole.

use serde_json::Value;

use crate::builtin::{self, Field, Kind, ListType, OBJECT_META};
use crate::catalogue::Resource;
use crate::schema::{self, Schema};

/// The rules of server-side apply for one version of a resource.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rules<'a> {
    /// The name of the built-in type from which the rules come.
    Builtin(&'static str),
    Custom(Option<&'a Schema>),
}

/// How server-side apply matches the items of two lists.
#[derive(Debug)]
pub(super) enum Merge<'a> {
    /// Items match if these fields have equal values; an absent field has its default.
    ByKeys(Vec<(&'a str, Option<&'a Value>)>),
    Set,
    Atomic,
}

/// How patches match the items of two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRule {
    /// Items match if this field has equal values.
    ByKey(&'static str),
    /// The list is a set of plain values.
    Set,
    /// The list is replaced as a whole.
    Atomic,
}

impl<'a> Rules<'a> {
    pub(super) fn of(resource: &'a Resource, api_version: &str) -> Self {
        if !resource.custom {
            return Self::Builtin(resource.type_in(api_version));
        }
        let version = resource.versions.iter().find(|version| &*version.api_version == api_version);
        Self::Custom(version.unwrap_or_else(|| resource.storage_version()).structure.as_deref())
    }

    /// The merge rule of the list at `path`, which consists of field names only.
    pub(super) fn list(&self, path: &[&str]) -> Merge<'a> {
        match (self, path) {
            (Self::Builtin(of), path) => applied(of, path),
            // The metadata has the same type in all kinds.
            (_, ["metadata", of_metadata @ ..]) => applied(OBJECT_META, of_metadata),
            (Self::Custom(schema), path) => match schema.and_then(|schema| schema.below(path)).map(Schema::merge) {
                Some(schema::Merge::ByKeys(keys)) => Merge::ByKeys(keys),
                Some(schema::Merge::Set) => Merge::Set,
                _ => Merge::Atomic,
            },
        }
    }

    /// Whether the type has a field at `path` (field names only); always true for a custom resource.
    pub(super) fn declares(&self, path: &[&str]) -> bool {
        match self {
            Self::Builtin(of) => builtin::declares(of, path),
            Self::Custom(_) => true,
        }
    }

    /// Whether the object at `path`, which consists of field names only, is replaced as a whole.
    pub(super) fn is_one_value(&self, path: &[&str]) -> bool {
        match self {
            Self::Builtin(of) => builtin::field_at(of, path).is_some_and(Field::is_one_value),
            Self::Custom(schema) => schema
                .and_then(|schema| schema.below(path))
                .is_some_and(|below| !path.is_empty() && below.is_one_value()),
        }
    }
}

/// The value of an item's key field, or its default. `None` means that the item has no key, or that the key cannot
/// identify an item.
pub(super) fn key_of<'v>(item: &'v Value, (key, default): (&str, Option<&'v Value>)) -> Option<&'v Value> {
    item.as_object()?.get(key).or(default).filter(|value| is_key(value))
}

/// Whether a value can identify a list item: only plain values can, because fields inside an object would have owners.
fn is_key(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// The rule of strategic merge patch for the list of a resource at `path` (field names only, without indices).
pub(super) fn list_rule(resource: &Resource, path: &[&str]) -> ListRule {
    let field = builtin::field_at(resource.type_in(resource.stored_api_version()), path);
    match field.and_then(Field::merge) {
        Some((strategy, key)) if strategy.split(',').any(|one| one == "merge") => {
            key.map_or(ListRule::Set, ListRule::ByKey)
        }
        _ => ListRule::Atomic,
    }
}

/// The rule of server-side apply for the list of a built-in type at `path`.
fn applied(of: &str, path: &[&str]) -> Merge<'static> {
    let Some(field) = builtin::field_at(of, path).filter(|field| field.list) else { return Merge::Atomic };
    match (field.list_type(), &field.kind) {
        (ListType::Set, _) => Merge::Set,
        (ListType::Map(keys), Kind::Message(item)) => {
            let key = |key: &'static str| (key, builtin::find(item, key).and_then(Field::absent));
            Merge::ByKeys(keys.split(',').map(key).collect())
        }
        _ => Merge::Atomic,
    }
}
