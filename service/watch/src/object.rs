//! An object in the store: identity, version, and the needed fields of its kind. Other fields, such as `managedFields`,
//! are parsed without a copy in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::source::{Form, Source};

/// Maximum number of entries of `spec.network.allow`, as in `kind/manifests/package-crd.yaml`.
const ALLOW_MAX: usize = 64;
/// Maximum size of `spec.network` in bytes: one kilobyte for each entry.
const NETWORK_BYTES_MAX: usize = 64 << 10;
/// Maximum number of labels of one selector. In memory, a label with shortest texts needs ten times its bytes.
const LABELS_MAX: usize = 32;
/// Maximum number of characters of a message about a spec that cannot be parsed.
const ERROR_CHARS_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// The needed fields of a kind of object.
pub trait Kind: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// Reads the needed fields. `read` must not fail: an event about an object that cannot be parsed is still an event.
    fn read(raw: &RawObject<'_>) -> Self;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object<K = Package> {
    pub key: Key,
    /// The uid, which differs between all objects that ever had the same name.
    pub uid: Box<str>,
    pub version: Box<str>,
    /// The needed fields of the object's kind.
    pub body: K,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub generation: i64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    pub finalizers: Box<[Box<str>]>,
    /// `spec.network.allow`, or the reason why it cannot be read.
    pub allow: Result<Box<[Allow]>, Box<str>>,
    pub status: Status,
}

/// One entry of `spec.network.allow`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allow {
    #[serde(default)]
    pub description: String,
    pub direction: Direction,
    /// Labels of the package's Pods to which the entry applies; empty means all its Pods.
    #[serde(default)]
    pub pod_labels: BTreeMap<String, String>,
    /// Namespace of the Pods to communicate with; `None` means any namespace.
    #[serde(default)]
    pub remote_namespace: Option<String>,
    /// Labels of the Pods to communicate with; empty means all Pods.
    #[serde(default)]
    pub remote_labels: BTreeMap<String, String>,
    /// The port of the traffic; `None` means all ports.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Direction of traffic, from the package's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Direction {
    Ingress,
    Egress,
}

/// The fields of `status` that decide whether there is work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Pending`, `Ready`, `Retrying`, `Failed`, `Removing`, `RemovalFailed`, or empty.
    pub phase: Box<str>,
    /// The object's generation to which the phase belongs.
    pub observed_generation: Option<i64>,
    pub retry_attempts: Option<i64>,
    pub network_policy_count: Option<i64>,
    /// All conditions as JSON text: those of this service and those of other writers.
    #[serde(deserialize_with = "text")]
    pub conditions: Option<Box<str>>,
}

/// An object as received; its fields borrow from the text.
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
    /// Reads the fields of a package. If the package's spec is invalid, the error is stored instead.
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

/// Reads `spec.network.allow` and checks its limits. An API server without this project's CRD, or with another version
/// of it, does not check these limits.
fn allowed(spec: Option<&RawValue>) -> Result<Box<[Allow]>, String> {
    // The message repeats what was written.
    let wrong = |error: serde_json::Error| error.to_string().chars().take(ERROR_CHARS_MAX).collect::<String>();
    let Some(spec) = spec else { return Ok(Box::default()) };
    let Some(network) = serde_json::from_str::<RawSpec<'_>>(spec.get()).map_err(wrong)?.network else {
        return Ok(Box::default());
    };
    if network.get().len() > NETWORK_BYTES_MAX {
        let bytes = network.get().len();
        return Err(format!(
            "`spec.network` has {bytes} bytes and at most {NETWORK_BYTES_MAX} are read: shorten it, or use two Packages"
        ));
    }
    let network: Option<RawNetwork> = serde_json::from_str(network.get()).map_err(wrong)?;
    let allow = network.and_then(|network| network.allow).unwrap_or_default();
    if allow.len() > ALLOW_MAX {
        let entries = allow.len();
        return Err(format!("has {entries} entries and at most {ALLOW_MAX} are applied: use two Packages"));
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

    /// Like [`Self::into_object`], but the function `read` makes the needed fields.
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

    /// `spec`; null if it is absent or cannot be parsed.
    pub fn spec(&self) -> Value {
        self.spec_as().unwrap_or_default()
    }

    /// `spec` parsed as `T`; `None` if it is absent or cannot be parsed.
    pub fn spec_as<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        parsed(self.spec)
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        parsed(self.metadata.labels).unwrap_or_default()
    }

    pub fn annotations(&self) -> BTreeMap<String, String> {
        parsed(self.metadata.annotations).unwrap_or_default()
    }

    /// `metadata.labels` as JSON text; `None` if absent.
    pub fn labels_text(&self) -> Option<&str> {
        self.metadata.labels.map(RawValue::get).filter(|text| *text != "null")
    }

    /// `metadata.annotations` as JSON text; `None` if absent.
    pub fn annotations_text(&self) -> Option<&str> {
        self.metadata.annotations.map(RawValue::get).filter(|text| *text != "null")
    }

    /// `metadata.finalizers` as JSON text; `None` if absent.
    pub fn finalizers_text(&self) -> Option<&str> {
        self.metadata.finalizers.map(RawValue::get).filter(|text| *text != "null")
    }

    pub fn finalizers(&self) -> Box<[Box<str>]> {
        parsed(self.metadata.finalizers).unwrap_or_default()
    }

    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some_and(|stamp| stamp.get() != "null")
    }

    pub fn owners(&self) -> Vec<Value> {
        parsed(self.metadata.owner_references).unwrap_or_default()
    }

    /// Whether name, uid and version are not empty; real objects always have them.
    pub fn is_identified(&self) -> bool {
        !self.metadata.uid.is_empty() && !self.metadata.name.is_empty() && !self.metadata.resource_version.is_empty()
    }
}
