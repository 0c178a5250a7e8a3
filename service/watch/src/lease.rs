//! The Lease that decides which replica reconciles (coordination.k8s.io/v1, with the semantics of client-go's leader
//! election).
//!
//! This module owns the requests and their timing; `election` decides who may take the Lease. A leader stops by its own
//! clock before another replica may start. The leader's term ends `renew` after it sent the last renewal; other
//! replicas wait `duration` after they saw that renewal. Clocks of different machines are never compared.

mod election;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use parking_lot::Mutex;
use rand::RngExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::config;
use election::{Election, Record};
use service_core::kube::{self, Client, Write};

/// Waiting replicas delay each check at random by up to this multiple of the retry period, as client-go does.
const JITTER: f64 = 1.2;
/// Time limit for the release of the Lease. If the release fails, the other replicas wait until the Lease expires.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// The term in which this process may reconcile. The reconciler checks the term before each object, because a suspended
/// process later continues where it stopped.
#[derive(Debug, Clone, Default)]
pub struct Tenure {
    until: Arc<Mutex<Option<Instant>>>,
}

/// Why the result of an attempt to get or renew the Lease is unknown.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("not a lease: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// The outcome of an attempt to get or renew the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ours,
    Theirs,
    /// Another replica wrote the Lease at the same moment.
    Conflict,
}

/// The participation of this replica in the election of a leader.
pub struct Elector {
    settings: config::Lease,
    client: Arc<Client>,
    collection: String,
    election: Election,
    /// `metadata.resourceVersion` of the Lease after this replica's last write. With the version, this replica can
    /// renew the Lease without reading it.
    version: Option<Box<str>>,
    tenure: Tenure,
    last_error: String,
}

#[derive(Deserialize)]
struct Lease {
    metadata: Meta,
    #[serde(default)]
    spec: Option<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: Box<str>,
}

impl Tenure {
    /// Whether this process may reconcile now. Without an election the result is always true.
    pub fn holds(&self) -> bool {
        self.until.lock().is_none_or(|until| Instant::now() < until)
    }

    /// Remaining time of the term in which this process may reconcile.
    pub fn left(&self) -> Duration {
        self.until.lock().map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    fn end(&self) -> Instant {
        self.until.lock().unwrap_or_else(Instant::now)
    }

    fn set(&self, until: Instant) {
        *self.until.lock() = Some(until);
    }
}

impl Elector {
    /// A candidate for the Lease in `namespace` that has seen no Lease yet.
    pub fn new(settings: config::Lease, namespace: &str, client: Arc<Client>) -> Self {
        let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
        let host = host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok()).unwrap_or_default();
        // Two processes of one host, or one before and after a restart, are different replicas.
        let identity = format!("{}_{:032x}", host.trim(), rand::rng().random::<u128>());
        let tenure = Tenure::default();
        tenure.set(Instant::now());
        Self {
            election: Election::new(identity, settings.duration),
            collection: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            settings,
            client,
            version: None,
            tenure,
            last_error: String::new(),
        }
    }

    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    pub async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Ok(Outcome::Ours) => {
                    tracing::info!(name: crate::events::LEASE_TAKEN, identity = self.election.identity(), "this replica leads");
                    return;
                }
                Ok(Outcome::Theirs | Outcome::Conflict) => self.last_error.clear(),
                Err(error) => self.say(&error),
            }
            let pause = self.settings.retry.mul_f64(1.0 + JITTER * rand::rng().random::<f64>());
            sleep(pause).await;
        }
    }

    /// Renews the Lease until renewals fail for too long or another replica holds the Lease; returns the reason.
    pub async fn hold(&mut self) -> String {
        loop {
            let end = self.tenure.end();
            let work = async {
                sleep(self.settings.retry).await;
                self.attempt().await
            };
            match timeout_at(end, work).await {
                Ok(Ok(Outcome::Ours)) => self.last_error.clear(),
                Ok(Ok(Outcome::Conflict)) => {}
                Ok(Ok(Outcome::Theirs)) => {
                    self.tenure.set(Instant::now());
                    return format!("the lease is {}'s", self.election.holder());
                }
                Ok(Err(error)) => self.say(&error),
                Err(_) => {
                    self.version = None;
                    return format!("not renewed for {} s", self.settings.renew.as_secs_f64());
                }
            }
        }
    }

    /// Releases the Lease, so that no replica waits until it expires. The caller must have stopped reconciling before
    /// the release.
    pub async fn release(&mut self) {
        self.tenure.set(Instant::now());
        let Some(version) = self.version.take() else { return };
        let body = json!({"metadata": {"resourceVersion": version}, "spec": self.election.release(&now())});
        let path = format!("{}/{}", self.collection, self.settings.name);
        match timeout(RELEASE_MAX, self.client.write(Write::Merge, &path, &body)).await {
            Ok(Ok(_)) => tracing::info!(name: crate::events::LEASE_GIVEN_BACK, "the lease was given back"),
            Ok(Err(error)) => {
                tracing::warn!(name: crate::events::LEASE_NOT_GIVEN_BACK, %error, "the lease was not given back");
            }
            Err(_) => {
                tracing::warn!(name: crate::events::LEASE_NOT_GIVEN_BACK, "the lease was not given back in time");
            }
        }
    }

    /// Makes one attempt to get or renew the Lease, in at most half of the time for a renewal, so that a second attempt
    /// fits.
    async fn attempt(&mut self) -> Result<Outcome, Error> {
        let max = self.settings.renew / 2;
        if let Ok(outcome) = timeout(max, self.try_to_have()).await {
            return outcome;
        }
        // The connection may be dead without an error; and a write may have arrived all the same.
        self.client.forget_connections();
        self.version = None;
        Err(Error::Late(max))
    }

    async fn try_to_have(&mut self) -> Result<Outcome, Error> {
        let path = format!("{}/{}", self.collection, self.settings.name);
        if self.version.is_none() {
            match self.client.read(&path).await {
                Ok(body) => self.observe(&body)?,
                Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => return self.create().await,
                Err(error) => return Err(error.into()),
            }
            if !self.election.may_take(Instant::now()) {
                self.version = None;
                return Ok(Outcome::Theirs);
            }
        }
        let sent = Instant::now();
        let spec = self.election.claim(&now());
        let body = json!({"metadata": {"resourceVersion": self.version.take()}, "spec": spec});
        self.written(self.client.write(Write::Merge, &path, &body).await, sent)
    }

    async fn create(&mut self) -> Result<Outcome, Error> {
        let sent = Instant::now();
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.settings.name, "labels": {"app.kubernetes.io/part-of": "longhaul"}},
            "spec": self.election.claim(&now()),
        });
        self.written(self.client.write(Write::Create, &self.collection, &body).await, sent)
    }

    /// Handles the answer to a write of the Lease. The term counts from the time before the write, because other
    /// replicas cannot have seen the write earlier.
    fn written(&mut self, answer: Result<bytes::Bytes, kube::Error>, sent: Instant) -> Result<Outcome, Error> {
        match answer {
            Ok(body) => {
                self.observe(&body)?;
                self.tenure.set(sent + self.settings.renew);
                Ok(Outcome::Ours)
            }
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn observe(&mut self, body: &[u8]) -> Result<(), Error> {
        let lease: Lease = serde_json::from_slice(body)?;
        self.version = Some(lease.metadata.resource_version);
        if self.election.observe(lease.spec.unwrap_or_default(), Instant::now()) {
            tracing::info!(name: crate::events::LEASE_HELD, holder = self.election.holder(), "the lease has another holder");
        }
        Ok(())
    }

    /// Logs a failed request for the Lease, unless the last logged reason was the same.
    fn say(&mut self, error: &Error) {
        let text = error.to_string();
        if text != self.last_error {
            tracing::warn!(name: crate::events::LEASE_FAILED, lease = self.settings.name, error = text, "the lease was neither got nor renewed");
            self.last_error = text;
        }
    }
}

/// The present time as Kubernetes' `MicroTime`, which always has six fractional digits.
fn now() -> Value {
    format!("{:.6}", Timestamp::now()).into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_have_six_digits_and_a_z() {
        let text = super::now();
        let text = text.as_str().unwrap();
        assert!(text.len() == "2026-01-01T00:00:00.000000Z".len() && text.ends_with('Z'), "{text}");
    }
}
