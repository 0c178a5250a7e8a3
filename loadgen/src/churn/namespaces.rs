//! The namespaces of churned objects: each is created once before its first object, and deleted after its last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::api::Client;
use super::companions;
use super::version::LABEL;
use crate::failure::{Class, Failure};

/// How long to wait until a namespace of the same name from an earlier run is deleted.
const TERMINATING_LIMIT: Duration = Duration::from_mins(1);
const TERMINATING_POLL: Duration = Duration::from_millis(250);

/// The state of a namespace, which is set after the namespace was created. The first operation in a namespace creates
/// it, and other operations there wait. If that fails, the next operation tries again.
pub(crate) type Ready = Arc<OnceCell<()>>;

/// The namespaces of churn that may exist. A namespace without objects is forgotten, so their number is bounded by the
/// existing objects.
#[derive(Debug, Default)]
pub(super) struct Namespaces(BTreeMap<u64, Ready>);

impl Namespaces {
    pub(super) fn need(&mut self, number: u64) -> Ready {
        Arc::clone(self.0.entry(number).or_default())
    }

    /// Forgets a namespace; `true` if the namespace may exist and must be deleted.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        self.0.remove(&number).is_some()
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

/// Creates the namespace and its additional objects (`churn.with`) if they do not exist. `tag` is the value of churn's
/// label.
pub(crate) async fn ensure(
    client: &Client,
    ready: &Ready,
    name: &str,
    tag: &str,
    with: &[Value],
) -> Result<(), Failure> {
    let all = || async {
        make(client, name, tag).await?;
        companions::make(client, with, Some(name), tag).await
    };
    ready.get_or_try_init(all).await.copied()
}

/// Requests the deletion of the namespace, and does not wait for the namespace controller.
pub(super) async fn delete(client: &Client, name: &str) -> Result<(), Failure> {
    let path = format!("/api/v1/namespaces/{name}");
    let reply = client.delete(&path).await?;
    // 409: it is being deleted already.
    if reply.is(StatusCode::NOT_FOUND) || reply.status == StatusCode::CONFLICT {
        return Ok(());
    }
    Err(reply.failure(&format!("DELETE {path}")))
}

async fn make(client: &Client, name: &str, tag: &str) -> Result<(), Failure> {
    let path = format!("/api/v1/namespaces/{name}");
    let mut object =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LABEL: tag}}});
    if let Some((key, value)) = client.mark() {
        object["metadata"]["labels"][key] = json!(value);
    }
    let limit = Instant::now() + TERMINATING_LIMIT;
    loop {
        let reply = client.create("/api/v1/namespaces", &object).await?;
        if reply.status.is_success() {
            return Ok(());
        }
        if reply.status != StatusCode::CONFLICT {
            return Err(reply.failure("POST /api/v1/namespaces"));
        }
        // Left by an earlier run of the same seed: use it, unless it is being deleted.
        let reply = client.read(&path).await?;
        let namespace: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let going =
            namespace["metadata"]["deletionTimestamp"].is_string() || namespace["status"]["phase"] == "Terminating";
        if reply.status.is_success() && !going {
            return Ok(());
        }
        if Instant::now() >= limit {
            let text = format!(
                "namespace {name} of an earlier run has been going away for {} s: see what holds it, or use another seed",
                TERMINATING_LIMIT.as_secs()
            );
            return Err(Failure { class: Class::HttpError, text });
        }
        tokio::time::sleep(TERMINATING_POLL).await;
    }
}
