//! An object as the store keeps it: identity, version, and the part of its kind that is needed. `managedFields` and the
//! rest are never allocated.
//!
//! Pure: from JSON text to a value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::source::{Form, Source};

/// Entries of `spec.network.allow`, as `kind/manifests/package-crd.yaml` has it.
const ALLOW_MAX: usize = 64;
/// Bytes of `spec.network`: a kilobyte for each entry.
const NETWORK_BYTES_MAX: usize = 64 << 10;
/// Labels of one selector. Each label costs ten times its shortest text.
const LABELS_MAX: usize = 32;
/// Characters of a message about a spec that cannot be read.
const ERROR_CHARS_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// The part that is kept of each object.
pub trait Kind: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// Reads the kept part. It must not fail: an event whose object is not understood is still an event.
    fn read(raw: &RawObject<'_>) -> Self;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object<K = Package> {
    pub key: Key,
    /// Identity among all objects that ever had this key.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`.
    pub version: Box<str>,
    /// The kept part of its kind.
    pub body: K,
}

/// The kept part of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
    /// `spec.network.allow`, or why it cannot be read.
    pub allow: Result<Box<[Allow]>, Box<str>>,
    /// `status`, as far as it decides anything.
    pub status: Status,
}

/// One entry of `spec.network.allow`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allow {
    /// A text for people.
    #[serde(default)]
    pub description: String,
    pub direction: Direction,
    /// Pods of the package; none means all.
    #[serde(default)]
    pub pod_labels: BTreeMap<String, String>,
    /// Namespace of the other side; none means any.
    #[serde(default)]
    pub remote_namespace: Option<String>,
    /// Pods of the other side; none means all.
    #[serde(default)]
    pub remote_labels: BTreeMap<String, String>,
    /// Port; none means all.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Direction of traffic, seen from the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Direction {
    Ingress,
    Egress,
}

/// The part of `status` that decides whether there is work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Pending`, `Ready`, `Retrying`, `Failed`, `Removing`, `RemovalFailed`, or empty.
    pub phase: Box<str>,
    /// Generation that the phase describes.
    pub observed_generation: Option<i64>,
    pub retry_attempts: Option<i64>,
    /// Network policies in place.
    pub network_policy_count: Option<i64>,
    /// All conditions as written, our own and those of other writers.
    #[serde(deserialize_with = "text")]
    pub conditions: Option<Box<str>>,
}

/// An object as written; borrows from the text.
#[derive(Deserialize)]
pub struct RawObject<'a> {
    #[serde(borrow)]
    metadata: RawMeta<'a>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    generation: i64,
    #[serde(borrow, default)]
    deletion_timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finalizers: Option<&'a RawValue>,
    #[serde(borrow, default)]
    labels: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    owner_references: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawSpec<'a> {
    #[serde(borrow)]
    network: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNetwork {
    allow: Option<Vec<Allow>>,
}

impl Package {
    pub const SOURCE: Source =
        Source::new("packages.longhaul.dev", "watch", "/apis/longhaul.dev/v1alpha1/packages", Form::Whole);
}

impl Kind for Package {
    /// A spec of the wrong shape is kept as its error.
    fn read(raw: &RawObject<'_>) -> Self {
        let allow = allowed(raw.spec).map_err(|error| format!("spec.network.allow: {error}").into());
        let meta = &raw.metadata;
        Self {
            generation: meta.generation,
            deleting: raw.is_deleting(),
            finalizers: raw.finalizers(),
            allow,
            status: parsed(raw.status).unwrap_or_default(),
        }
    }
}

/// `spec.network.allow` as far as it may be kept. An API server without our definition, or with another one, bounds nothing.
fn allowed(spec: Option<&RawValue>) -> Result<Box<[Allow]>, String> {
    // The message repeats what was written.
    let wrong = |error: serde_json::Error| error.to_string().chars().take(ERROR_CHARS_MAX).collect::<String>();
    let Some(spec) = spec else { return Ok(Box::default()) };
    let Some(network) = serde_json::from_str::<RawSpec<'_>>(spec.get()).map_err(wrong)?.network else {
        return Ok(Box::default());
    };
    if network.get().len() > NETWORK_BYTES_MAX {
        return Err(format!("has {} bytes: at most {NETWORK_BYTES_MAX} are read", network.get().len()));
    }
    let network: Option<RawNetwork> = serde_json::from_str(network.get()).map_err(wrong)?;
    let allow = network.and_then(|network| network.allow).unwrap_or_default();
    if allow.len() > ALLOW_MAX {
        return Err(format!("has {} entries: at most {ALLOW_MAX} are applied", allow.len()));
    }
    let has_too_many = |entry: &Allow| entry.pod_labels.len().max(entry.remote_labels.len()) > LABELS_MAX;
    match allow.iter().position(has_too_many) {
        Some(at) => Err(format!("entry {at} has more than {LABELS_MAX} labels")),
        None => Ok(allow.into()),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    Ok(Option::<Box<RawValue>>::deserialize(deserializer)?.map(Into::into))
}

impl RawObject<'_> {
    pub fn into_object<K: Kind>(self) -> Object<K> {
        self.into_object_by(K::read)
    }

    /// Like [`Self::into_object`], with the part that `read` keeps.
    pub fn into_object_by<K>(self, read: impl Fn(&RawObject<'_>) -> K) -> Object<K> {
        let body = read(&self);
        let meta = self.metadata;
        Object {
            key: Key { namespace: (*meta.namespace).into(), name: (*meta.name).into() },
            uid: (*meta.uid).into(),
            version: (*meta.resource_version).into(),
            body,
        }
    }

    /// `spec`; null if it is absent or cannot be read.
    pub fn spec(&self) -> Value {
        self.spec_as().unwrap_or_default()
    }

    /// `spec` read as `T`; `None` if it is absent or cannot be read.
    pub fn spec_as<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        parsed(self.spec)
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> BTreeMap<String, String> {
        parsed(self.metadata.labels).unwrap_or_default()
    }

    /// `metadata.annotations`.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        parsed(self.metadata.annotations).unwrap_or_default()
    }

    /// `metadata.labels` as written; `None` if absent.
    pub fn labels_text(&self) -> Option<&str> {
        self.metadata.labels.map(RawValue::get).filter(|text| *text != "null")
    }

    /// `metadata.annotations` as written; `None` if absent.
    pub fn annotations_text(&self) -> Option<&str> {
        self.metadata.annotations.map(RawValue::get).filter(|text| *text != "null")
    }

    /// `metadata.finalizers` as written; `None` if absent.
    pub fn finalizers_text(&self) -> Option<&str> {
        self.metadata.finalizers.map(RawValue::get).filter(|text| *text != "null")
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Box<[Box<str>]> {
        parsed(self.metadata.finalizers).unwrap_or_default()
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some_and(|stamp| stamp.get() != "null")
    }

    /// `metadata.ownerReferences`.
    pub fn owners(&self) -> Vec<Value> {
        parsed(self.metadata.owner_references).unwrap_or_default()
    }

    /// Whether the identifying fields have content; a real object always has them.
    pub fn is_identified(&self) -> bool {
        !self.metadata.uid.is_empty() && !self.metadata.name.is_empty() && !self.metadata.resource_version.is_empty()
    }
}
