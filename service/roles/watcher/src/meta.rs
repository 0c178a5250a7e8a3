//! The metadata of objects that filters and finalizers need.
//!
//! A user with write access to a watched resource may put a megabyte into an object's metadata. So labels and
//! annotations that no filter uses are dropped, and values are kept as hashes, because filters only compare values. The
//! metadata of a deleted object that a hook gets is limited too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use service_watch::{Kind, Object, RawObject};
use sha2::{Digest as _, Sha256};

/// The annotation in which `kubectl apply` stores a copy of the object; no action needs it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum number of bytes of labels, and of annotations, that are kept for a hook about deleted objects; nearly all
/// objects have fewer bytes.
const LAST_BYTES_MAX: usize = 2 << 10;
/// Maximum number of bytes of an object's finalizers that are kept: enough for some dozens. An object with more
/// finalizers is read again before a change.
const FINALIZERS_BYTES_MAX: usize = 2 << 10;

/// The metadata fields that a resource's actions need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub labels: BTreeSet<Arc<str>>,
    pub annotations: BTreeSet<Arc<str>>,
    pub finalizers: BTreeSet<Box<str>>,
    /// Whether a hook gets the last metadata of deleted objects.
    pub last: bool,
}

/// The needed metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub labels: Named,
    pub annotations: Named,
    pub deleting: bool,
    /// `metadata.finalizers`, if an action needs them. If there are too many finalizers, only the action's own
    /// finalizer is kept.
    pub finalizers: Box<[Box<str>]>,
    /// Whether the object has too many finalizers to keep them all.
    pub crowded: bool,
    /// Short labels and annotations as JSON, if a hook gets them.
    last: Option<Box<str>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(Box<[(Arc<str>, ValueDigest)]>);

type ValueDigest = [u8; 16];

impl Named {
    fn of(text: Option<&str>, wanted: &BTreeSet<Arc<str>>) -> Self {
        let Some(text) = text.filter(|_| !wanted.is_empty()) else { return Self::default() };
        let mut found = Vec::new();
        each(text, &mut |key| wanted.contains(key), &mut |key, value| {
            if let Some(key) = wanted.get(key) {
                found.push((Arc::clone(key), digest(value)));
            }
        });
        found.sort_unstable();
        Self(found.into())
    }

    /// Whether each name in `wanted` exists with its value; an empty value in `wanted` matches any value.
    pub fn has(&self, wanted: &BTreeMap<String, String>) -> bool {
        wanted.iter().all(|(key, value)| {
            let known = self.0.iter().find(|(known, _)| **known == **key);
            known.is_some_and(|(_, known)| value.is_empty() || *known == digest(value))
        })
    }
}

fn digest(value: &str) -> ValueDigest {
    let whole: [u8; 32] = Sha256::digest(value).into();
    let mut front = ValueDigest::default();
    front.copy_from_slice(&whole[..16]);
    front
}

impl Kind for Meta {
    fn read(raw: &RawObject<'_>) -> Self {
        Self::kept(raw, &Wanted::default())
    }
}

impl Meta {
    /// The needed metadata of an object.
    pub fn kept(raw: &RawObject<'_>, wanted: &Wanted) -> Self {
        let crowded = raw.finalizers_text().is_some_and(|text| text.len() > FINALIZERS_BYTES_MAX);
        let mut finalizers = Box::default();
        if !wanted.finalizers.is_empty() || (wanted.last && !crowded) {
            finalizers = raw.finalizers();
            if crowded {
                finalizers = finalizers.into_iter().filter(|one| wanted.finalizers.contains(one)).collect();
            }
        }
        Self {
            labels: Named::of(raw.labels_text(), &wanted.labels),
            annotations: Named::of(raw.annotations_text(), &wanted.annotations),
            deleting: raw.is_deleting(),
            finalizers,
            crowded,
            last: wanted.last.then(|| last(raw)).flatten(),
        }
    }

    /// Number of bytes of memory of the metadata, without the struct itself.
    pub fn bytes(&self) -> usize {
        let finalizers = self.finalizers.iter().map(|one| size_of::<Box<str>>() + one.len()).sum::<usize>();
        let named = (self.labels.0.len() + self.annotations.0.len()) * size_of::<(Arc<str>, ValueDigest)>();
        finalizers + named + self.last.as_ref().map_or(0, |text| text.len())
    }

    /// Like [`Self::kept`], but with all finalizers.
    pub fn with_finalizers(raw: &RawObject<'_>) -> Self {
        Self { finalizers: raw.finalizers(), ..Self::read(raw) }
    }
}

/// Short labels and annotations as JSON; `None` if there are none.
fn last(raw: &RawObject<'_>) -> Option<Box<str>> {
    let mut kept = Map::new();
    for (name, text) in [("labels", raw.labels_text()), ("annotations", raw.annotations_text())] {
        let (mut map, mut bytes) = (Map::new(), 0);
        each(text.unwrap_or_default(), &mut |key| key != LAST_APPLIED, &mut |key, value| {
            bytes += key.len() + value.len();
            if bytes <= LAST_BYTES_MAX {
                map.insert(key.to_owned(), value.into());
            }
        });
        if bytes <= LAST_BYTES_MAX && !map.is_empty() {
            kept.insert(name.to_owned(), map.into());
        }
    }
    (!kept.is_empty()).then(|| Value::from(kept).to_string().into())
}

/// Calls `show` with every pair whose key is wanted, if `text` is a map of strings. Values that are no strings are
/// skipped, and a text that is no map has no pairs.
fn each(text: &str, is_wanted: &mut dyn FnMut(&str) -> bool, show: &mut dyn FnMut(&str, &str)) {
    // The result is ignored: a broken map was shown up to its fault.
    let _ = Pairs { is_wanted, show }.deserialize(&mut serde_json::Deserializer::from_str(text));
}

struct Pairs<'f> {
    is_wanted: &'f mut dyn FnMut(&str) -> bool,
    show: &'f mut dyn FnMut(&str, &str),
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            if (self.is_wanted)(&key) {
                let Text(value) = map.next_value()?;
                (self.show)(&key, &value);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// An object with only its metadata, as the API server would send it.
pub fn partial(object: &Object<Meta>) -> Value {
    let last = object.body.last.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    let map = |name: &str| last.get(name).cloned().unwrap_or_else(|| json!({}));
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": {
            "namespace": &*object.key.namespace,
            "name": &*object.key.name,
            "uid": &*object.uid,
            "resourceVersion": &*object.version,
            "labels": map("labels"),
            "annotations": map("annotations"),
            "finalizers": object.body.finalizers,
        },
    })
}

/// For tests: an object from JSON, with the metadata for all kinds of actions.
#[cfg(test)]
pub fn object(text: &str) -> Object<Meta> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    let wanted = Wanted {
        labels: names(&["app", "x"]),
        annotations: names(&["note"]),
        finalizers: BTreeSet::from(["a.b/c".into()]),
        last: true,
    };
    let raw = serde_json::from_str::<RawObject<'_>>(text).expect("a test writes objects");
    raw.into_object_by(|raw| Meta::kept(raw, &wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_kubectl_is_not_kept() {
        let text = r#"{"metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"5","labels":{"x":"y"},
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{…}","k":"v"},
            "deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}"#;
        let known = object(text);
        assert_eq!(partial(&known)["metadata"]["annotations"], json!({"k": "v"}));
        assert!(known.body.deleting && known.body.labels.has(&BTreeMap::from([("x".into(), "y".into())])));
        assert_eq!(partial(&known)["metadata"]["labels"]["x"], "y");
        let bare = object(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"5","deletionTimestamp":null}}"#);
        assert_eq!((&bare.body.labels, bare.body.deleting), (&Named::default(), false));
    }

    /// If an object has much metadata, only the limited metadata that actions need is kept.
    #[test]
    fn what_nobody_asked_for_is_not_kept() {
        let big = "x".repeat(250 << 10);
        let many: Vec<String> = (0..9000).map(|number| format!("a.b/{number}")).chain(["a.b/c".to_owned()]).collect();
        let text = json!({"metadata": {
            "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "5", "labels": {"app": "web", "big": big},
            "annotations": {"note": big, "other": big}, "finalizers": many, "managedFields": [{"manager": big}],
        }})
        .to_string();
        let known = object(&text);
        assert!(format!("{:?}", known.body).len() < 1000, "{:?}", known.body);
        let has = |named: &Named, key: &str, value: &str| named.has(&BTreeMap::from([(key.into(), value.into())]));
        assert!(has(&known.body.labels, "app", "web") && !has(&known.body.labels, "app", "we"));
        assert!(has(&known.body.annotations, "note", &big) && has(&known.body.annotations, "note", ""));
        assert!(!has(&known.body.annotations, "note", &big[1..]) && !has(&known.body.annotations, "other", ""));
        assert_eq!((&*known.body.finalizers, known.body.crowded), (&["a.b/c".into()][..], true));
        assert_eq!(partial(&known)["metadata"]["labels"], json!({}));
    }
}
