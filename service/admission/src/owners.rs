//! Owners of objects: an image that a controller copies from an owner to its child is not verified again.
//!
//! This module owns the list of accepted kinds of owners and a short-lived cache of their images. Accepted owners are
//! objects of Kubernetes' own controllers; the uid of an owner is checked. An unreadable owner approves nothing: its
//! child is examined like any other object.

mod cluster;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::review::Ask;
use super::site::Site;
use super::walk;
pub use cluster::FromCluster;
use service_registry::verdicts::{Cache, Flights, Joined};

/// Time for which the images of an owner are cached. With the cache, a rollout of a thousand Pods costs one read of the
/// owner. If an image is removed from a template, the template stops approving it after ten seconds.
const READ_TTL: Duration = Duration::from_secs(10);
/// Time limit for reading owners, because most of a review's time is for the registry.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of the cache of owners' images, in bytes: enough for some thousand owners.
const KNOWN_BYTES: usize = 1 << 20;
/// Maximum number of owners that are read for one object; usual objects have one owner.
const OWNERS_MAX: usize = 2;
/// Longest name of an object, in bytes (Kubernetes).
const NAME_BYTES_MAX: usize = 253;

/// Kinds of accepted owners, whose controllers make objects from a template: API version, kind and API path.
const KINDS: [(&str, &str, &str); 7] = [
    ("apps/v1", "ReplicaSet", "/apis/apps/v1/namespaces/{}/replicasets/"),
    ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/{}/deployments/"),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/{}/statefulsets/"),
    ("apps/v1", "DaemonSet", "/apis/apps/v1/namespaces/{}/daemonsets/"),
    ("batch/v1", "Job", "/apis/batch/v1/namespaces/{}/jobs/"),
    ("batch/v1", "CronJob", "/apis/batch/v1/namespaces/{}/cronjobs/"),
    ("v1", "ReplicationController", "/api/v1/namespaces/{}/replicationcontrollers/"),
];

/// Reads objects from the API server, or from a script in tests.
pub trait OwnerSource: Send + Sync + 'static {
    /// Reads the object at the API path `path`, by `deadline`; `None` if it cannot be read.
    fn read(self: Arc<Self>, path: String, deadline: Instant) -> BoxFuture<'static, Option<Bytes>>;
}

pub struct Owners {
    source: Arc<dyn OwnerSource>,
    known: Arc<Mutex<Cache<Images>>>,
    flights: Flights<Images>,
}

/// The images of an owner; empty if the uid of the read object differs from the reference.
type Images = Arc<[String]>;

/// An owner, as the child's `ownerReferences` name it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    path: String,
    uid: String,
}

#[derive(Deserialize)]
struct Object {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<Reference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

impl Owners {
    pub fn new(source: Arc<dyn OwnerSource>) -> Self {
        Self { source, known: Arc::new(Mutex::new(Cache::new(KNOWN_BYTES))), flights: Flights::new() }
    }

    /// The images of the owners of the object in `ask`; each owner is read once.
    pub async fn images(&self, ask: &Ask<'_>, deadline: Instant) -> Vec<Images> {
        let owners = of(ask.object.unwrap_or_default(), ask.namespace.as_deref().unwrap_or_default());
        let deadline = deadline.min(Instant::now() + READ_TIMEOUT);
        let images = owners.into_iter().map(|owner| self.of_owner(owner, deadline));
        join_all(images).await.into_iter().flatten().collect()
    }

    async fn of_owner(&self, owner: Owner, deadline: Instant) -> Option<Images> {
        // The path is part of the key: any object can claim a uid.
        let key = format!("{} {}", owner.uid, owner.path);
        if let Some(known) = self.known.lock().value(&key, std::time::Instant::now()) {
            return Some(known);
        }
        let (source, known) = (Arc::clone(&self.source), Arc::clone(&self.known));
        let Joined { flight, .. } = self.flights.join(&key.clone(), || {
            async move {
                let object = source.read(owner.path, Instant::now() + READ_TIMEOUT).await;
                let read = object.is_some();
                let images = object.map(|object| images_of(&object, &owner.uid)).unwrap_or_default();
                let images: Images = images.into();
                if read {
                    let bytes = images.iter().map(|image| size_of_val(image) + image.len()).sum();
                    known.lock().insert(&key, Arc::clone(&images), bytes, READ_TTL, std::time::Instant::now());
                }
                images
            }
            .boxed()
        });
        timeout_at(deadline, flight).await.ok()
    }
}

/// The accepted owners in the JSON of an object in `namespace`.
fn of(object: &str, namespace: &str) -> Vec<Owner> {
    let metadata = serde_json::from_str::<Object>(object).ok().and_then(|object| object.metadata);
    let references = metadata.map(|metadata| metadata.owner_references).unwrap_or_default();
    if !is_name(namespace) {
        return Vec::new();
    }
    let owner = |reference: Reference| {
        let known =
            KINDS.iter().find(|(version, kind, _)| (*version, *kind) == (&*reference.api_version, &*reference.kind));
        let (_, _, path) = known.filter(|_| is_name(&reference.name) && !reference.uid.is_empty())?;
        Some(Owner { path: path.replace("{}", namespace) + &reference.name, uid: reference.uid })
    };
    references.into_iter().filter_map(owner).take(OWNERS_MAX).collect()
}

/// The images of an object; empty if its uid is not `uid`.
fn images_of(object: &[u8], uid: &str) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(object) else { return Vec::new() };
    let metadata = serde_json::from_str::<Object>(text).ok().and_then(|object| object.metadata);
    if metadata.is_none_or(|metadata| metadata.uid != uid) {
        return Vec::new();
    }
    let mut images: Vec<String> = Vec::new();
    let walked = walk::walk(text, &mut |seen| {
        if images.len() == Site::MAX {
            return Err(walk::TooMany { most: Site::MAX });
        }
        if !images.iter().any(|known| known == seen.image) {
            images.push(seen.image.to_owned());
        }
        Ok(())
    });
    // An object under deletion approves nothing: a finalizer could keep its approval for ever.
    if walked.is_err() || walked.is_ok_and(|outline| outline.deleting) {
        images.clear();
    }
    images
}

/// Whether `text` is a name that needs no escape in an API path (RFC 1123).
fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(inside) && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_controllers_that_are_known_are_read_and_names_stay_in_their_path() {
        let reference = |version: &str, kind: &str, name: &str, uid: &str| json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid});
        let object =
            |references: &[serde_json::Value]| json!({"metadata": {"ownerReferences": references}}).to_string();
        let owners = of(&object(&[reference("apps/v1", "ReplicaSet", "web-1", "u1")]), "team");
        assert_eq!(
            owners,
            [Owner { path: "/apis/apps/v1/namespaces/team/replicasets/web-1".into(), uid: "u1".into() }]
        );
        for wrong in [
            reference("apps/v1", "Secret", "s", "u"),
            reference("v1", "ReplicaSet", "s", "u"),
            reference("apps/v1", "ReplicaSet", "../../secrets/s", "u"),
            reference("apps/v1", "ReplicaSet", "s", ""),
        ] {
            assert_eq!(of(&object(std::slice::from_ref(&wrong)), "team"), [], "{wrong}");
        }
        assert_eq!(of(&object(&[reference("apps/v1", "ReplicaSet", "s", "u")]), "a/b"), []);
        assert_eq!(of("[]", "team"), []);
    }

    #[test]
    fn an_owner_with_another_uid_has_no_images() {
        let object = json!({"metadata": {"uid": "u"}, "spec": {"template": {"spec": {"containers": [{"image": "a:1"}, {"image": "a:1"}]}}}});
        assert_eq!(images_of(object.to_string().as_bytes(), "u"), ["a:1"]);
        assert_eq!(images_of(object.to_string().as_bytes(), "v"), <[String; 0]>::default());
        let mut going = object;
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(images_of(going.to_string().as_bytes(), "u"), <[String; 0]>::default(), "it is being deleted");
    }
}
