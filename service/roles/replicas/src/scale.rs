//! Sets a replica count: reads the scale subresource of a Deployment and writes it with the version that was read.
//!
//! So no writer overwrites another writer's change without notice: after a conflict, the subresource is read and
//! written again, a few times. If the caller names a revision, the write is not repeated, because the caller asked for
//! a change of exactly that revision.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use rand::RngExt as _;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::answer::Refusal;
use super::metrics::Metrics;
use super::route::Target;
use super::upstream;
use service_core::kube::{Client, Write};

/// Maximum number of attempts to make one change. An attempt fails only because another writer succeeded, so even five
/// simultaneous writers all succeed.
pub const ATTEMPTS_MAX: u32 = 6;
/// Upper limit of the pause after the first conflict. The limit doubles with each conflict, and the pause is random
/// between zero and the limit.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Writer {
    client: Arc<Client>,
    metrics: Metrics,
}

/// A completed write, or the result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The count or image before the write.
    pub before: String,
    /// `metadata.resourceVersion` after the write.
    pub revision: String,
    pub attempts: u32,
}

/// The conditions of a change, which are the same in every attempt.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The revision that the object must have; `None` accepts any revision.
    pub seen: Option<&'a str>,
    pub dry_run: bool,
    /// The time by which the caller gets an answer.
    pub deadline: Instant,
}

impl Writer {
    pub fn new(client: Arc<Client>, metrics: Metrics) -> Self {
        Self { client, metrics }
    }

    pub async fn scale(&self, target: Target<'_>, count: i32, terms: Terms<'_>) -> Result<Written, Refusal> {
        let path = format!("{}/scale", path(target));
        self.change(&path, Write::Replace, terms, |mut scale| {
            let before = scale["spec"]["replicas"].as_i64().unwrap_or(0).to_string();
            scale["spec"]["replicas"] = count.into();
            Ok((before, scale))
        })
        .await
    }

    /// Reads the object at `path` and writes the result of `edit`; after a conflict, repeats the read and the write.
    pub async fn change(
        &self,
        path: &str,
        write: Write,
        terms: Terms<'_>,
        edit: impl Fn(Value) -> Result<(String, Value), Refusal>,
    ) -> Result<Written, Refusal> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let known = self.read(path, terms).await?;
            let (before, body) = edit(known)?;
            match self.write(write, path, &body, terms).await {
                Ok(now) => {
                    let revision = now["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
                    return Ok(Written { before, revision, attempts });
                }
                Err(refusal) if refusal.status == StatusCode::CONFLICT => {
                    self.metrics.conflicts.inc();
                    if terms.seen.is_some() || attempts == ATTEMPTS_MAX {
                        return Err(refusal);
                    }
                }
                Err(refusal) => return Err(refusal),
            }
            let pause = PAUSE.saturating_mul(1 << (attempts - 1)).mul_f64(rand::rng().random());
            sleep(pause.min(terms.deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Reads the object at the API path `path`. If the caller named a revision, the object must have this revision.
    pub async fn read(&self, path: &str, terms: Terms<'_>) -> Result<Value, Refusal> {
        let doing = "reading the deployment";
        let found = self.client.read_before(path, terms.deadline).await;
        let found = parsed(&found.map_err(|error| upstream::refusal(&error, doing))?, doing)?;
        let version = &found["metadata"]["resourceVersion"];
        match terms.seen {
            Some(seen) if *version != seen => {
                let now = version.as_str().unwrap_or_default();
                let text = format!("the deployment has changed: it is at revision {now}");
                Err(Refusal::new(StatusCode::CONFLICT, text))
            }
            _ => Ok(found),
        }
    }

    async fn write(&self, write: Write, path: &str, body: &Value, terms: Terms<'_>) -> Result<Value, Refusal> {
        let doing = "writing the deployment";
        let path = if terms.dry_run { format!("{path}?dryRun=All") } else { path.to_owned() };
        let written = self.client.write_before(write, &path, body, terms.deadline).await;
        let written = written.map_err(|error| {
            let refusal = upstream::refusal(&error, doing);
            if refusal.status == StatusCode::GATEWAY_TIMEOUT {
                return Refusal { text: refusal.text + "; it may have been done all the same", ..refusal };
            }
            refusal
        })?;
        parsed(&written, doing)
    }
}

fn parsed(bytes: &Bytes, doing: &str) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes).map_err(|_| {
        Refusal::new(StatusCode::BAD_GATEWAY, format!("the API server's answer cannot be read, while {doing}"))
    })
}

/// The API path of the Deployment. Namespace and name are already checked, so no escapes are needed.
pub fn path(target: Target<'_>) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/{}", target.namespace, target.name)
}
