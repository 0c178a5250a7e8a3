//! The section `reconcile`: the queue of the reconciler, its attempts, and which of several replicas works.

use std::time::Duration;

use serde::Deserialize;

use super::quantity::Span;
use super::{Checker, Error};

/// Enough to hide the latency of an API server, few enough to be a polite client.
const WORKERS: usize = 8;
/// The waits of the UDS operator between its five attempts: powers of three.
const RETRIES: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(9), Duration::from_secs(27), Duration::from_secs(81)];
/// The name of the lease and, by default, what the role `watch` is called in a cluster.
const LEASE_NAME: &str = "longhaul-watch";
/// client-go's default: longer than a short outage of the API server, shorter than anybody's patience.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// client-go's default: five seconds before the lease ends a leader that could not renew it has stopped.
const LEASE_RENEW: Duration = Duration::from_secs(10);
/// client-go's default: some attempts fit before the renewal is given up.
const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Replicas believe no lease that says it lasts longer.
const LEASE_DURATION_MAX: Duration = Duration::from_hours(1);
/// client-go spreads its attempts by up to this part of the retry period; one of them must fit.
const RETRY_SPREAD: f64 = 1.2;

/// The reconciler.
#[derive(Debug, Clone)]
pub struct Reconcile {
    /// What is kept in order.
    pub queue: QueueKey,
    /// Objects worked on at one time.
    pub workers: usize,
    /// Wait before each further attempt.
    pub retries: Vec<Duration>,
    /// Which of several replicas works.
    pub lease: Lease,
}

/// The election among replicas.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Whether there is one; without a word there is one exactly when the namespace is known.
    pub enabled: Option<bool>,
    /// Name of the lease.
    pub name: String,
    /// Its namespace; without it that of the pod.
    pub namespace: Option<String>,
    /// How long others wait after the last renewal that they saw; whole seconds.
    pub duration: Duration,
    /// How long a leader works after the last renewal that it sent.
    pub renew: Duration,
    /// Pause between attempts.
    pub retry: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawReconcile {
    pub queue: QueueKey,
    pub workers: Option<usize>,
    pub retries: Option<Vec<Span>>,
    pub lease: RawLease,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawLease {
    pub enabled: Option<bool>,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub duration: Option<Span>,
    pub renew: Option<Span>,
    pub retry: Option<Span>,
}

/// What is kept in order by the reconcile queue: two objects with the same key are never worked on at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueKey {
    /// One object.
    #[default]
    KindNsName,
    /// All objects of a namespace.
    KindNs,
    /// All objects of the kind.
    Kind,
    /// Everything.
    Global,
}

impl Checker<'_> {
    pub(super) fn reconcile(&self, raw: RawReconcile) -> Result<Reconcile, Error> {
        let workers = raw.workers.unwrap_or(WORKERS);
        self.within("reconcile.workers", workers as u64, 1, 256)?;
        let retries = match raw.retries {
            Some(retries) => retries.into_iter().map(|span| span.0).collect(),
            None => RETRIES.to_vec(),
        };
        self.within("reconcile.retries", retries.len() as u64, 0, 100)?;
        let lease = self.lease(raw.lease)?;
        Ok(Reconcile { queue: raw.queue, workers, retries, lease })
    }

    fn lease(&self, raw: RawLease) -> Result<Lease, Error> {
        let name = raw.name.unwrap_or_else(|| LEASE_NAME.into());
        for (key, text) in [("name", Some(&name)), ("namespace", raw.namespace.as_ref())] {
            if text.is_some_and(|text| !is_name(text)) {
                let key = format!("reconcile.lease.{key}");
                return Err(self.value(key, "is no name: write lower-case letters, digits, dots and dashes"));
            }
        }
        let lease = Lease {
            enabled: raw.enabled,
            name,
            namespace: raw.namespace,
            duration: self.positive("reconcile.lease.duration", raw.duration, LEASE_DURATION)?,
            renew: self.positive("reconcile.lease.renew", raw.renew, LEASE_RENEW)?,
            retry: self.positive("reconcile.lease.retry", raw.retry, LEASE_RETRY)?,
        };
        if lease.duration.subsec_nanos() != 0 || lease.duration > LEASE_DURATION_MAX {
            return Err(self.value("reconcile.lease.duration", "is stored in whole seconds: write 1s to 1h"));
        }
        if lease.renew >= lease.duration {
            return Err(self.value("reconcile.lease.renew", "must be shorter than reconcile.lease.duration"));
        }
        if lease.retry.mul_f64(RETRY_SPREAD) >= lease.renew {
            return Err(
                self.value("reconcile.lease.retry", "must fit into reconcile.lease.renew: write less than 5/6 of it")
            );
        }
        Ok(lease)
    }
}

/// A DNS subdomain (RFC 1123), as far as a path is safe with it; the API server says the rest.
pub(super) fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(inner) && !text.starts_with('.')
}
