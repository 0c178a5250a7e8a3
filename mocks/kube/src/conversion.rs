//! Custom resources whose versions a webhook converts (Kubernetes documentation, "Versions in
//! `CustomResourceDefinitions`").
//!
//! Owns the conversion between stored objects and the version of a request. Objects are converted from their stored
//! version directly after reading, and into the stored version before writing, after all checks. Between the two
//! conversions, a request's version is treated as the stored version (`Resource::in_version`). `review` calls the
//! webhook and checks its answers.

mod review;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use facts::Change;
use mock_objects::catalogue::Resource;
use mock_objects::status::Failure;
use mock_objects::{convert, object};
use mock_store::{Event, Expect, Refused, Version};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::call::Call;
use super::cluster::Cluster;

/// Maximum number of objects in one review. A real server sends one object; the protocol allows any number.
const REVIEWED_MAX: usize = 100;
/// Maximum number of bytes in one review, unless a single object has more. With this limit, the webhook's answer stays
/// below the limit for answers.
const REVIEWED_MAX_BYTES: usize = 1 << 20;
/// How long a watch waits before it calls a failed webhook again.
const AGAIN: Duration = Duration::from_millis(500);

/// A running conversion for a watch. The result is the converted events, or `None` if the time ran out.
pub(crate) type Converting = JoinSet<Option<VecDeque<Arc<Event>>>>;

impl Call {
    /// The object that the request names, in the requested version; `None` if the object does not exist.
    pub async fn find(&self, name: &str) -> Result<Option<Arc<Version>>, Failure> {
        match self.cluster().get(&self.resource, self.namespace(), name) {
            Some(version) => self.shown(version).await.map(Some),
            None => Ok(None),
        }
    }

    /// A stored object in the requested version.
    pub async fn shown(&self, version: Arc<Version>) -> Result<Arc<Version>, Failure> {
        if !self.resource.converts() {
            return Ok(version);
        }
        let mut shown = self.shown_all(vec![version]).await?;
        shown.pop().ok_or_else(|| Failure::internal("a conversion lost its object"))
    }

    /// Stored objects in the requested version.
    pub async fn shown_all(&self, versions: Vec<Arc<Version>>) -> Result<Vec<Arc<Version>>, Failure> {
        if !self.resource.converts() {
            return Ok(versions);
        }
        // Boxed, because every request reserves the room and few convert.
        Box::pin(shown(self.cluster(), &self.resource, versions.into_iter().map(|it| (Change::Added, it)).collect()))
            .await
    }

    /// The object in the answer to a dry run, converted to the stored version and back.
    pub async fn rehearsed(&self, value: Value) -> Result<Value, Failure> {
        if !self.resource.converts() {
            return Ok(value);
        }
        let stored = self.stored(value).await?;
        let api_version = &self.resource.storage_version().api_version;
        let back = Box::pin(review::convert(self.cluster(), &self.resource, vec![stored], api_version)).await?;
        back.into_iter().next().ok_or_else(|| Failure::internal("a conversion lost its object"))
    }

    /// Commits a new object or a new version of an object; the result is in the requested version.
    pub async fn put(&self, expect: Expect, value: Value) -> Result<Result<Arc<Version>, Refused>, Failure> {
        let stored = self.stored(value).await?;
        match self.cluster().put(&self.resource, expect, stored) {
            Ok(event) => self.shown(event.version.clone()).await.map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// The last state of a deleted object in its stored version; `seen` is the state in the requested version.
    pub fn last(&self, current: &Version, seen: Value) -> Value {
        if !self.resource.converts() {
            return seen;
        }
        let stored = self.cluster().get(&self.resource, &current.identity.namespace, &current.identity.name);
        // If the object was deleted or replaced meanwhile, the store refuses the deletion anyway.
        stored.map_or(seen, |stored| stored.value())
    }

    /// Whether writing an unchanged object again changes its stored version, which a real server counts as a change.
    pub fn migrates(&self, current: &Version) -> bool {
        let Some(conversion) = self.resource.conversion.as_ref().filter(|_| self.resource.moved) else { return false };
        let identity = &current.identity;
        let stored = self.cluster().get(&self.resource, &identity.namespace, &identity.name);
        stored.is_some_and(|stored| stored.value()["apiVersion"] != *conversion.stored)
    }

    async fn stored(&self, value: Value) -> Result<Value, Failure> {
        let Some(conversion) = self.resource.conversion.as_ref().filter(|_| self.resource.converts()) else {
            return Ok(value);
        };
        let stored = conversion.stored.clone();
        let converted = Box::pin(review::convert(self.cluster(), &self.resource, vec![value], &stored)).await?;
        let converted =
            converted.into_iter().next().ok_or_else(|| Failure::internal("a conversion lost its object"))?;
        object::check_size(&converted, &self.resource)?;
        Ok(converted)
    }
}

/// Converts one object of a request into another version.
pub(crate) async fn one(
    cluster: &Cluster,
    resource: &Resource,
    value: Value,
    api_version: &str,
) -> Result<Value, Failure> {
    let converted = Box::pin(review::convert(cluster, resource, vec![value], api_version)).await?;
    converted.into_iter().next().ok_or_else(|| Failure::internal("a conversion lost its object"))
}

/// Begins to convert events for a watch. A conversion that is not finished at `ends` returns `None`. As in a real
/// server, a failed webhook is called again, and the watch is silent until a call succeeds.
pub(crate) fn begin(
    cluster: &Arc<Cluster>,
    resource: &Arc<Resource>,
    events: Vec<Arc<Event>>,
    ends: Instant,
) -> Converting {
    let (cluster, resource) = (cluster.clone(), resource.clone());
    let mut converting = JoinSet::new();
    converting.spawn(async move {
        let all = async {
            let mut is_told = false;
            loop {
                match converted(&cluster, &resource, &events).await {
                    Ok(events) => return events,
                    Err(failure) if !std::mem::replace(&mut is_told, true) => {
                        let (why, resource) = (failure.message, &*resource.full_name);
                        tracing::warn!(
                            why,
                            resource,
                            "a watch says nothing until its conversion webhook answers rightly"
                        );
                    }
                    Err(_) => {}
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::time::timeout_at(ends, all).await.ok()
    });
    converting
}

/// Converts the new and the old state of the object in each event.
async fn converted(
    cluster: &Cluster,
    resource: &Resource,
    events: &[Arc<Event>],
) -> Result<VecDeque<Arc<Event>>, Failure> {
    let mut wanted = Vec::new();
    for event in events {
        wanted.push((event.change, event.version.clone()));
        wanted.extend(event.previous.clone().map(|previous| (Change::Added, previous)));
    }
    let mut shown = shown(cluster, resource, wanted).await?.into_iter();
    let lost = || Failure::internal("a conversion lost an object");
    events
        .iter()
        .map(|event| {
            let version = shown.next().ok_or_else(lost)?;
            let previous = event.previous.as_ref().map(|_| shown.next().ok_or_else(lost)).transpose()?;
            Ok(Arc::new(Event { change: event.change, version, previous }))
        })
        .collect()
}

async fn shown(
    cluster: &Cluster,
    resource: &Resource,
    versions: Vec<(Change, Arc<Version>)>,
) -> Result<Vec<Arc<Version>>, Failure> {
    let api_version = &resource.storage_version().api_version;
    let mut all = Vec::with_capacity(versions.len());
    let mut rest = &versions[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |(_, version): &&(Change, Arc<Version>)| {
            bytes += version.object().len();
            bytes <= REVIEWED_MAX_BYTES
        };
        let (some, after) = rest.split_at(rest.iter().take(REVIEWED_MAX).take_while(fits).count().max(1));
        rest = after;
        let values = some.iter().map(|(_, version)| decoded(resource, version)).collect();
        let values = review::convert(cluster, resource, values, api_version).await?;
        for ((change, version), mut value) in some.iter().zip(values) {
            // Selectors match the stored form.
            let (identity, facts) = (version.identity.clone(), version.facts().clone());
            all.push(Arc::new(Version::stamp(identity, version.revision, *change, &mut value, facts)));
        }
    }
    Ok(all)
}

/// The stored object, decoded, with the defaults of its stored version.
fn decoded(resource: &Resource, version: &Version) -> Value {
    let mut value = version.value();
    let own = value["apiVersion"].as_str().unwrap_or_default().to_owned();
    convert::refill(&mut value, resource, &own);
    value
}
