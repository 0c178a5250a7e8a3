//! The setting of a count: the scale subresource is read, and written with the version that was read.
//!
//! So no writer overwrites another one unseen: after a conflict the present object is read and written again, a few
//! times. If the caller names a revision there is no retry: it asked for a change of exactly that revision.

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

/// Attempts at one write. Each one loses only to a write that won, so with five writers at once all succeed.
pub const ATTEMPTS_MAX: u32 = 6;
/// Longest pause after the first conflict; it doubles, and the actual pause is drawn below it.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Writer {
    client: Arc<Client>,
    metrics: Metrics,
}

/// A completed write, or the result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The count, or the image, before it.
    pub before: String,
    /// `metadata.resourceVersion` after it.
    pub revision: String,
    pub attempts: u32,
}

/// The conditions of a change, the same in every attempt.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The revision that the caller has seen; any if absent.
    pub seen: Option<&'a str>,
    pub dry_run: bool,
    /// Deadline of the answer.
    pub deadline: Instant,
}

impl Writer {
    pub fn new(client: Arc<Client>, metrics: Metrics) -> Self {
        Self { client, metrics }
    }

    /// Sets the count of `target`.
    pub async fn scale(&self, target: Target<'_>, count: i32, terms: Terms<'_>) -> Result<Written, Refusal> {
        let path = format!("{}/scale", path(target));
        self.change(&path, Write::Replace, terms, |mut scale| {
            let before = scale["spec"]["replicas"].as_i64().unwrap_or(0).to_string();
            scale["spec"]["replicas"] = count.into();
            Ok((before, scale))
        })
        .await
    }

    /// Reads the object at `path`, and writes the result of `edit`, until no other write comes in between.
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

    /// The object at `path`, which must be at the caller's revision if it named one.
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

/// The path of the Deployment; both names are checked, so nothing has to be escaped.
pub fn path(target: Target<'_>) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/{}", target.namespace, target.name)
}
