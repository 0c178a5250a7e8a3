//! The writes of the reconciler, and how each write handles conflicts.
//!
//! This module owns the paths and bodies of the reconciler's requests. A conflict (409) means that another client has
//! written the object since the reconciler read it. After a conflict, the reconciler reads, decides and writes again.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::policies::{self, Applied, Policy, UID_LABEL};
use super::status::{self, Report};
use service_core::kube::{self, Client, Write};
use service_watch::{Key, Object, Package, RawObject};

/// Maximum number of repetitions of a conflicting write before the reconciliation counts as failed.
const CONFLICTS_MAX: u32 = 5;
/// The pause after the first conflict; the pause doubles with each further conflict. The other writer often writes
/// again at once, so a pause is needed.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the package is gone")]
    Gone,
    #[error("{0}")]
    Spec(String),
    #[error("{doing}: {source}")]
    Request { doing: &'static str, source: kube::Error },
    #[error("{doing}: {source}")]
    Answer { doing: &'static str, source: serde_json::Error },
}

impl Error {
    /// Whether another attempt may succeed without a change of the package. A request that is invalid stays invalid.
    /// All other errors depend on the cluster's state, even refusals by a quota or a webhook.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Spec(_) => false,
            Self::Request { source, .. } => !matches!(
                source.status(),
                Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::PAYLOAD_TOO_LARGE)
            ),
            Self::Gone | Self::Answer { .. } => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct Existing {
    pub object: Object<Applied>,
    pub whole: Value,
}

pub(super) struct Api {
    client: Arc<Client>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

impl Api {
    pub fn new(client: Arc<Client>) -> Self {
        Self { client }
    }

    pub async fn add_finalizer(&self, object: &mut Object, finalizer: &str) -> Result<(), Error> {
        self.finalizers(object, |finalizers| finalizers.push(finalizer.into())).await
    }

    pub async fn remove_finalizer(&self, object: &mut Object, finalizer: &str) -> Result<(), Error> {
        self.finalizers(object, |finalizers| finalizers.retain(|known| **known != *finalizer)).await
    }

    /// Rewrites a package's list of finalizers. The write names the version that was read, so that no finalizer of
    /// another client is lost.
    async fn finalizers(&self, object: &mut Object, edit: impl Fn(&mut Vec<Box<str>>)) -> Result<(), Error> {
        let doing = "finalizer";
        let body = |object: &Object| {
            let mut edited = object.body.finalizers.to_vec();
            edit(&mut edited);
            edited.dedup();
            let meta = json!({"uid": &*object.uid, "resourceVersion": &*object.version, "finalizers": edited});
            Some(json!({"metadata": meta}))
        };
        self.write(object, package(&object.key), doing, body).await
    }

    /// Writes phase, condition and, for a finished generation, `observedGeneration`; writes nothing if the status
    /// already has these values. The write names the version that was read, so that no condition of another client is
    /// lost.
    pub async fn status(&self, object: &mut Object, report: Report<'_>) -> Result<(), Error> {
        let now = now();
        let path = format!("{}/status", package(&object.key));
        let body = |object: &Object| {
            let status = status::merge(&object.body.status, object.body.generation, &report, &now)?;
            let meta = json!({"uid": &*object.uid, "resourceVersion": &*object.version});
            Some(json!({"metadata": meta, "status": status}))
        };
        self.write(object, path, "status", body).await
    }

    /// Merges the patch that `body` returns into the package. After a conflict, the package is read and `body` is
    /// called again. At the end, `object` has the newest known version, finalizers and status, but its former spec and
    /// generation.
    async fn write(
        &self,
        object: &mut Object,
        path: String,
        doing: &'static str,
        body: impl Fn(&Object) -> Option<Value>,
    ) -> Result<(), Error> {
        for attempt in 0.. {
            let Some(body) = body(object) else { return Ok(()) };
            match self.client.write(Write::Merge, &path, &body).await {
                Ok(answer) => {
                    // A server with another answer has written all the same; the next write finds out by a conflict.
                    drop(renew(object, &answer, doing));
                    return Ok(());
                }
                Err(error) if error.status() == Some(StatusCode::CONFLICT) && attempt < CONFLICTS_MAX => {
                    tokio::time::sleep(CONFLICT_PAUSE * (1 << attempt)).await;
                    // Either another writer wrote at the same moment, or the name belongs to another object now.
                    let now = self.client.read(&package(&object.key)).await.map_err(|source| gone_or(source, doing))?;
                    renew(object, &now, doing)?;
                }
                Err(source) => return Err(gone_or(source, doing)),
            }
        }
        Ok(())
    }

    /// Writes a Warning event about the package, for users. A failed write of the event is only logged, because it must
    /// not fail the reconciliation.
    pub async fn warn(&self, object: &Object, reason: &'static str, message: &str) {
        let namespace = &*object.key.namespace;
        let now = now();
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "generateName": format!("{}.", object.key.name)},
            "involvedObject": {
                "apiVersion": "longhaul.dev/v1alpha1",
                "kind": "Package",
                "namespace": namespace,
                "name": &*object.key.name,
                "uid": &*object.uid,
                "resourceVersion": &*object.version,
            },
            "type": "Warning",
            "reason": reason,
            "message": status::cut(message),
            "source": {"component": "longhaul-service"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        if let Err(error) = self.client.write(Write::Create, &path, &body).await {
            tracing::debug!(name: crate::events::EVENT_LOST, package = %object.key, %error, "event not written");
        }
    }

    /// Lists the policies whose label has the package's uid.
    pub async fn list_policies(&self, namespace: &str, uid: &str) -> Result<Vec<Existing>, Error> {
        let doing = "list of network policies";
        let path = format!("{}?labelSelector={}%3D{uid}", collection(namespace), UID_LABEL.replace('/', "%2F"));
        let body = self.client.read(&path).await.map_err(|source| Error::Request { doing, source })?;
        let list: List<'_> = serde_json::from_slice(&body).map_err(|source| Error::Answer { doing, source })?;
        let existing = list.items.unwrap_or_default().into_iter().map(|item| {
            let object = serde_json::from_str::<RawObject<'_>>(item.get())?.into_object();
            Ok(Existing { object, whole: serde_json::from_str(item.get())? })
        });
        existing.collect::<Result<_, _>>().map_err(|source| Error::Answer { doing, source })
    }

    pub async fn create_policy(&self, policy: &Policy) -> Result<(), Error> {
        match self.client.write(Write::Create, &collection(&policy.namespace), &policy.body).await {
            Ok(_) => Ok(()),
            // It has our name but lost its label, or an earlier attempt created it after all.
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => {
                let known = self.read_policy(policy).await?;
                self.update_policy(known, policy).await
            }
            Err(source) => Err(Error::Request { doing: "network policy", source }),
        }
    }

    /// Changes the existing policy `known`, which differs from the wanted `policy`.
    pub async fn update_policy(&self, mut known: Value, policy: &Policy) -> Result<(), Error> {
        let path = format!("{}/{}", collection(&policy.namespace), policy.name);
        for attempt in 0.. {
            match self.client.write(Write::Merge, &path, &policies::correction(&known, policy)).await {
                Ok(_) => break,
                Err(error) if error.status() == Some(StatusCode::CONFLICT) && attempt < CONFLICTS_MAX => {
                    known = self.read_policy(policy).await?;
                }
                Err(source) => return Err(Error::Request { doing: "network policy", source }),
            }
        }
        Ok(())
    }

    async fn read_policy(&self, policy: &Policy) -> Result<Value, Error> {
        let doing = "network policy";
        let path = format!("{}/{}", collection(&policy.namespace), policy.name);
        let body = self.client.read(&path).await.map_err(|source| Error::Request { doing, source })?;
        serde_json::from_slice(&body).map_err(|source| Error::Answer { doing, source })
    }

    /// Deletes the policy if it still has the version of `seen`.
    pub async fn delete_policy(&self, seen: &Object<Applied>) -> Result<(), Error> {
        let path = format!("{}/{}", collection(&seen.key.namespace), seen.key.name);
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &*seen.uid}});
        match self.client.write(Write::Delete, &path, &options).await {
            Ok(_) => Ok(()),
            // It is gone, or another object by now.
            Err(error) if matches!(error.status(), Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT)) => Ok(()),
            Err(source) => Err(Error::Request { doing: "removal of a network policy", source }),
        }
    }

    /// Deletes every policy whose label has the package's uid.
    pub async fn remove_policies(&self, namespace: &str, uid: &str) -> Result<(), Error> {
        for policy in self.list_policies(namespace, uid).await? {
            self.delete_policy(&policy.object).await?;
        }
        Ok(())
    }

    /// Whether the package with this name exists and has this uid, read from the API server.
    pub async fn package_exists(&self, key: &Key, uid: &str) -> Result<bool, Error> {
        let doing = "package";
        match self.client.read(&package(key)).await {
            Ok(body) => {
                let raw: RawObject<'_> =
                    serde_json::from_slice(&body).map_err(|source| Error::Answer { doing, source })?;
                Ok(*raw.into_object::<Package>().uid == *uid)
            }
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(false),
            Err(source) => Err(Error::Request { doing, source }),
        }
    }
}

/// Copies to `object` the fields of `answer` that other clients may have changed since `object` was read.
fn renew(object: &mut Object, answer: &[u8], doing: &'static str) -> Result<(), Error> {
    let raw: RawObject<'_> = serde_json::from_slice(answer).map_err(|source| Error::Answer { doing, source })?;
    let fresh: Object = raw.into_object();
    if fresh.uid != object.uid {
        return Err(Error::Gone);
    }
    object.version = fresh.version;
    (object.body.finalizers, object.body.status) = (fresh.body.finalizers, fresh.body.status);
    Ok(())
}

fn gone_or(source: kube::Error, doing: &'static str) -> Error {
    if source.status() == Some(StatusCode::NOT_FOUND) { Error::Gone } else { Error::Request { doing, source } }
}

fn package(key: &Key) -> String {
    format!("/apis/longhaul.dev/v1alpha1/namespaces/{}/packages/{}", key.namespace, key.name)
}

fn collection(namespace: &str) -> String {
    format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies")
}

/// The present time in whole seconds, as Kubernetes writes times.
fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
