//! The kept part of an object: the metadata that filters and finalizers need, and no more. Pure.
//!
//! A user with write access to a watched resource may put a megabyte into its metadata. So names that no filter has are
//! not kept, and values are kept as digests, because filters only compare them. The metadata that a hook gets of a
//! deleted object has a limit.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use service_watch::{Kind, Object, RawObject};
use sha2::{Digest as _, Sha256};

/// `kubectl apply` leaves this copy of the object in it; no action needs it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Most bytes of labels, and of annotations, that are kept for a hook about deleted objects: more than nearly all
/// objects have.
const LAST_BYTES_MAX: usize = 2 << 10;
/// Most bytes of finalizers that are kept: some dozens. Of objects with more they are read again when they are changed.
const FINALIZERS_BYTES_MAX: usize = 2 << 10;

/// The parts of a resource's objects that its actions need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub labels: BTreeSet<Arc<str>>,
    pub annotations: BTreeSet<Arc<str>>,
    pub finalizers: BTreeSet<Box<str>>,
    /// Whether a hook gets the last metadata of deleted objects.
    pub last: bool,
}

/// The metadata of an object besides its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub labels: Named,
    pub annotations: Named,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.finalizers`, if an action works with them. If there are too many, only ours.
    pub finalizers: Box<[Box<str>]>,
    /// There are too many finalizers to keep them.
    pub crowded: bool,
    /// Labels and annotations as JSON, if a hook gets them, and only short ones.
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

    /// Whether it has each of these with its value; an empty value matches any.
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
    /// The part of an object that is kept.
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

    /// Bytes that it holds besides its own size.
    pub fn bytes(&self) -> usize {
        let finalizers = self.finalizers.iter().map(|one| size_of::<Box<str>>() + one.len()).sum::<usize>();
        let named = (self.labels.0.len() + self.annotations.0.len()) * size_of::<(Arc<str>, ValueDigest)>();
        finalizers + named + self.last.as_ref().map_or(0, |text| text.len())
    }

    /// Like [`Self::kept`], with every finalizer, however many there are.
    pub fn with_finalizers(raw: &RawObject<'_>) -> Self {
        Self { finalizers: raw.finalizers(), ..Self::read(raw) }
    }
}

/// Labels and annotations as JSON, only short ones; `None` if there are none.
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

/// Calls `show` with every pair of a map of texts whose key is wanted. Values of others are skipped; a map of another
/// shape has none.
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

/// An object with only its metadata, in the API server's form.
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

/// An object from its JSON, for tests, kept for actions of every kind.
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

    /// However much an author writes into the metadata of an object, little of it is kept.
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
