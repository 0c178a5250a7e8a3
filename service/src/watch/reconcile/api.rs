//! The writes of the reconciler, each with its way of coping with conflicts.
//!
//! Owns paths and bodies. A conflict (409) means that somebody wrote in between: read again, decide again, write again.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::policies::{GENERATION_LABEL, Policy, UID_LABEL};
use crate::kube::{self, Client, Write};
use crate::watch::object::Object;

/// Times that a conflicting write is tried again before the visit counts as failed.
const CONFLICTS_MAX: u32 = 5;
/// Longest message in a status or an event, in characters; Kubernetes limits an event's note to 1024 bytes.
const MESSAGE_CHARS_MAX: usize = 400;

/// Why a step failed.
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
    /// Whether another attempt can end differently without a change of the package.
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::Spec(_))
    }
}

/// A policy that exists.
#[derive(Debug)]
pub(super) struct Existing {
    pub name: String,
    pub generation: String,
}

/// What a status says.
#[derive(Debug, Default)]
pub(super) struct Report<'a> {
    pub phase: &'static str,
    /// The generation, once it is done with.
    pub observed: Option<i64>,
    pub message: &'a str,
    /// Network policies in place, when that is known.
    pub policies: Option<usize>,
    /// Failed attempts at this generation.
    pub retries: usize,
}

/// The part of the API that the reconciler uses.
pub(super) struct Api {
    client: Arc<Client>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    labels: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

impl Api {
    pub fn new(client: Arc<Client>) -> Self {
        Self { client }
    }

    pub async fn add_finalizer(&self, object: &Object, finalizer: &str) -> Result<(), Error> {
        self.finalizers(object, |finalizers| finalizers.push(finalizer.to_owned())).await
    }

    pub async fn remove_finalizer(&self, object: &Object, finalizer: &str) -> Result<(), Error> {
        self.finalizers(object, |finalizers| finalizers.retain(|known| known != finalizer)).await
    }

    /// Rewrites the list of finalizers. It names the version it is based on, so that nobody else's finalizer is lost.
    async fn finalizers(&self, object: &Object, edit: impl Fn(&mut Vec<String>)) -> Result<(), Error> {
        let doing = "finalizer";
        let path = package(object);
        let mut version = object.version.to_string();
        let mut finalizers: Vec<String> = object.finalizers.iter().map(ToString::to_string).collect();
        for attempt in 0.. {
            let mut edited = finalizers.clone();
            edit(&mut edited);
            edited.dedup();
            let body = json!({"metadata": {"uid": &*object.uid, "resourceVersion": version, "finalizers": edited}});
            match self.client.write(Write::Merge, &path, &body).await {
                Ok(_) => return Ok(()),
                Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => return Err(Error::Gone),
                Err(error) if error.status() == Some(StatusCode::CONFLICT) && attempt < CONFLICTS_MAX => {
                    let now = self.client.read(&path).await.map_err(|source| gone_or(source, doing))?;
                    let now: Item = serde_json::from_slice(&now).map_err(|source| Error::Answer { doing, source })?;
                    if now.metadata.uid != *object.uid {
                        return Err(Error::Gone);
                    }
                    version = now.metadata.resource_version;
                    finalizers = now.metadata.finalizers.unwrap_or_default();
                }
                Err(source) => return Err(Error::Request { doing, source }),
            }
        }
        Ok(())
    }

    /// Writes phase, condition and, when the generation is done with, `observedGeneration`. A merge of these keys cannot
    /// conflict with the keys of others; the uid keeps it from a namesake.
    pub async fn status(&self, object: &Object, report: Report<'_>) -> Result<(), Error> {
        let condition = json!({
            "type": "Ready",
            "status": if report.phase == "Ready" { "True" } else { "False" },
            "reason": report.phase,
            "message": cut(report.message),
            "observedGeneration": object.generation,
            "lastTransitionTime": now(),
        });
        let mut status = json!({"phase": report.phase, "retryAttempts": report.retries, "conditions": [condition]});
        if let Some(generation) = report.observed {
            status["observedGeneration"] = generation.into();
        }
        if let Some(policies) = report.policies {
            status["networkPolicyCount"] = policies.into();
        }
        let body = json!({"metadata": {"uid": &*object.uid}, "status": status});
        let path = format!("{}/status", package(object));
        for attempt in 0.. {
            match self.client.write(Write::Merge, &path, &body).await {
                Ok(_) => break,
                Err(error) if error.status() == Some(StatusCode::CONFLICT) && attempt < CONFLICTS_MAX => {
                    // Either somebody wrote at the same moment, or the name belongs to another object now.
                    let now = self.client.read(&package(object)).await.map_err(|source| gone_or(source, "status"))?;
                    let now: Item =
                        serde_json::from_slice(&now).map_err(|source| Error::Answer { doing: "status", source })?;
                    if now.metadata.uid != *object.uid {
                        return Err(Error::Gone);
                    }
                }
                Err(source) => return Err(gone_or(source, "status")),
            }
        }
        Ok(())
    }

    /// Tells people by a Warning event. An event that is not written is only logged: it must not fail the visit.
    pub async fn warn(&self, object: &Object, message: &str) {
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
            "reason": "ReconciliationFailed",
            "message": cut(message),
            "source": {"component": "longhaul-service"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        if let Err(error) = self.client.write(Write::Create, &path, &body).await {
            tracing::debug!(package = %object.key, %error, "event not written");
        }
    }

    pub async fn list_policies(&self, namespace: &str, uid: &str) -> Result<Vec<Existing>, Error> {
        let doing = "list of network policies";
        let path = format!("{}?labelSelector={}%3D{uid}", policies(namespace), UID_LABEL.replace('/', "%2F"));
        let body = self.client.read(&path).await.map_err(|source| Error::Request { doing, source })?;
        let list: List = serde_json::from_slice(&body).map_err(|source| Error::Answer { doing, source })?;
        let existing = list.items.unwrap_or_default().into_iter().map(|item| {
            let generation = item.metadata.labels.unwrap_or_default().remove(GENERATION_LABEL).unwrap_or_default();
            Existing { name: item.metadata.name, generation }
        });
        Ok(existing.collect())
    }

    pub async fn create_policy(&self, policy: &Policy) -> Result<(), Error> {
        match self.client.write(Write::Create, &policies(&policy.namespace), &policy.body).await {
            Ok(_) => Ok(()),
            // It has our name but lost its label, or an earlier attempt created it after all.
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => self.update_policy(policy).await,
            Err(source) => Err(Error::Request { doing: "network policy", source }),
        }
    }

    pub async fn update_policy(&self, policy: &Policy) -> Result<(), Error> {
        let path = format!("{}/{}", policies(&policy.namespace), policy.name);
        let written = self.client.write(Write::Merge, &path, &policy.body).await;
        written.map(drop).map_err(|source| Error::Request { doing: "network policy", source })
    }

    pub async fn delete_policy(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let path = format!("{}/{name}", policies(namespace));
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.client.write(Write::Delete, &path, &options).await {
            Ok(_) => Ok(()),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(()),
            Err(source) => Err(Error::Request { doing: "removal of a network policy", source }),
        }
    }

    /// Removes every policy of that incarnation.
    pub async fn remove_policies(&self, namespace: &str, uid: &str) -> Result<(), Error> {
        for policy in self.list_policies(namespace, uid).await? {
            self.delete_policy(namespace, &policy.name).await?;
        }
        Ok(())
    }
}

fn gone_or(source: kube::Error, doing: &'static str) -> Error {
    if source.status() == Some(StatusCode::NOT_FOUND) { Error::Gone } else { Error::Request { doing, source } }
}

fn package(object: &Object) -> String {
    format!("/apis/longhaul.dev/v1alpha1/namespaces/{}/packages/{}", object.key.namespace, object.key.name)
}

fn policies(namespace: &str) -> String {
    format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies")
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// Whole seconds, as Kubernetes writes times.
fn now() -> Value {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string().into()
}
