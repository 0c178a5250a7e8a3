//! The merge rules of lists: by a key, as a set, or as a whole.
//!
//! Owns the table for built-in types, which follows the API reference ("patch strategy: merge", "patch merge key"). The
//! merge rules of custom resources come from their schemas (Kubernetes documentation, "Server-Side Apply", "Merge
//! strategy"). Lists without a rule are replaced as a whole.

use std::sync::LazyLock;

use serde_json::Value;

use crate::catalogue::Resource;
use crate::schema::{self, Schema};

/// The rules of server-side apply for one version of a resource.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rules<'a> {
    Builtin(&'a Resource),
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
            return Self::Builtin(resource);
        }
        let version = resource.versions.iter().find(|version| &*version.api_version == api_version);
        Self::Custom(version.unwrap_or_else(|| resource.storage_version()).structure.as_deref())
    }

    /// The merge rule of the list at `path`, which consists of field names only.
    pub(super) fn list(&self, path: &[&str]) -> Merge<'a> {
        let schema = match self {
            Self::Builtin(resource) => {
                return match list_rule(resource, path) {
                    ListRule::ByKey(key) => Merge::ByKeys(all_keys(key)),
                    ListRule::Set => Merge::Set,
                    ListRule::Atomic => Merge::Atomic,
                };
            }
            Self::Custom(schema) => schema,
        };
        match path {
            // The metadata has the same type in all kinds.
            ["metadata", "finalizers"] => Merge::Set,
            ["metadata", "ownerReferences"] => Merge::ByKeys(vec![("uid", None)]),
            _ => match schema.and_then(|schema| schema.below(path)).map(Schema::merge) {
                Some(schema::Merge::ByKeys(keys)) => Merge::ByKeys(keys),
                Some(schema::Merge::Set) => Merge::Set,
                _ => Merge::Atomic,
            },
        }
    }

    /// Whether the object at `path`, which consists of field names only, is replaced as a whole.
    pub(super) fn is_one_value(&self, path: &[&str]) -> bool {
        match self {
            Self::Builtin(_) => path.last().is_some_and(|field| SELECTORS.contains(field)),
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

/// The key fields of a built-in list in server-side apply, each with its default. The key fields are the key of
/// strategic merge patches and, for some lists, another field (`x-kubernetes-list-map-keys`). The defaults are those
/// that the API publishes: the protocol, or a zero value, so that validation reports the missing key.
fn all_keys(key: &'static str) -> Vec<(&'static str, Option<&'static Value>)> {
    static TCP: LazyLock<Value> = LazyLock::new(|| Value::from("TCP"));
    static NO_NUMBER: LazyLock<Value> = LazyLock::new(|| Value::from(0));
    static NO_TEXT: LazyLock<Value> = LazyLock::new(|| Value::from(""));
    match key {
        "containerPort" | "port" => vec![(key, Some(&NO_NUMBER)), ("protocol", Some(&TCP))],
        "topologyKey" => vec![(key, Some(&NO_TEXT)), ("whenUnsatisfiable", Some(&NO_TEXT))],
        _ => vec![(key, Some(&NO_TEXT))],
    }
}

/// `(field name, rule)` of lists in a pod specification, at any depth.
const POD_SPEC: &[(&str, ListRule)] = &[
    ("containers", ListRule::ByKey("name")),
    ("initContainers", ListRule::ByKey("name")),
    ("ephemeralContainers", ListRule::ByKey("name")),
    ("volumes", ListRule::ByKey("name")),
    ("imagePullSecrets", ListRule::ByKey("name")),
    ("hostAliases", ListRule::ByKey("ip")),
    ("topologySpreadConstraints", ListRule::ByKey("topologyKey")),
    ("env", ListRule::ByKey("name")),
    ("ports", ListRule::ByKey("containerPort")),
    ("volumeMounts", ListRule::ByKey("mountPath")),
    ("volumeDevices", ListRule::ByKey("devicePath")),
    ("schedulingGates", ListRule::ByKey("name")),
    ("resourceClaims", ListRule::ByKey("name")),
];

/// Fields of built-in types whose objects are replaced as a whole (`structType: atomic`). If only some fields of a
/// selector were replaced, the selector would have another meaning.
const SELECTORS: &[&str] = &[
    "selector",
    "podSelector",
    "namespaceSelector",
    "labelSelector",
    "fieldRef",
    "resourceFieldRef",
    "secretKeyRef",
    "configMapKeyRef",
];

/// Whether a value can identify an item. Only a plain value can, because owners of fields inside a key would be
/// ambiguous.
fn is_key(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// The merge rule of the list at `path`, which consists of field names without indices.
pub(super) fn list_rule(resource: &Resource, path: &[&str]) -> ListRule {
    let Some(field) = path.last() else { return ListRule::Atomic };
    match path {
        ["metadata", "finalizers"] => return ListRule::Set,
        ["metadata", "ownerReferences"] => return ListRule::ByKey("uid"),
        ["status", "conditions"] => return ListRule::ByKey("type"),
        _ => {}
    }
    if path.starts_with(resource.rules.pod_spec) {
        return POD_SPEC.iter().find(|(name, _)| name == field).map_or(ListRule::Atomic, |(_, rule)| *rule);
    }
    let known = resource.rules.merge_keys.iter().find(|(of, _)| *of == path);
    known.map_or(ListRule::Atomic, |(_, key)| ListRule::ByKey(key))
}
