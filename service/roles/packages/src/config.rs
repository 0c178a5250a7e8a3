//! The section `packages`: the reconciler's queue and retries, and the leader election of replicas.

use std::time::Duration;

use serde::Deserialize;

use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_watch::QueueKey;
use service_watch::config::Lease;

/// Default number of workers: enough to hide the latency of an API server, and few enough not to overload the server.
const WORKERS: usize = 8;
/// Default delays between attempts to reconcile a package: powers of three, like the delays between the five attempts
/// of the UDS operator.
const RETRIES: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(9), Duration::from_secs(27), Duration::from_secs(81)];
/// Default name of the Lease of the leader election. The Deployment of the role `packages` has the name
/// `longhaul-watch` too.
const LEASE_NAME: &str = "longhaul-watch";
/// Default duration of the Lease, as in client-go: longer than a short absence of the API server.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Default renewal time, as in client-go: a leader that cannot renew stops five seconds before the Lease expires.
const LEASE_RENEW: Duration = Duration::from_secs(10);
/// Default pause between attempts to renew the Lease, as in client-go: several attempts fit into the renewal time.
const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Longest configurable duration of the Lease.
const LEASE_DURATION_MAX: Duration = Duration::from_hours(1);
/// Largest factor by which client-go lengthens the retry period at random; one attempt must fit into the renewal time.
const RETRY_SPREAD: f64 = 1.2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// How packages are grouped in the queue; packages of one group are reconciled one at a time.
    pub queue: QueueKey,
    /// Maximum number of packages that are reconciled at one time.
    pub workers: usize,
    /// The delay before each further attempt to reconcile a package.
    pub retries: Vec<Duration>,
    /// Settings of the leader election of replicas.
    pub lease: Lease,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawPackages {
    pub queue: QueueKey,
    pub workers: Option<usize>,
    pub retries: Option<Vec<Span>>,
    pub lease: RawLease,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawLease {
    pub enabled: Option<bool>,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub duration: Option<Span>,
    pub renew: Option<Span>,
    pub retry: Option<Span>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    packages: RawPackages,
}

impl Section for Packages {
    const KEYS: &'static [&'static str] = &["packages"];
    const FORMER: &'static [(&'static str, &'static str)] = &[("reconcile", "packages")];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let raw = raw.packages;
        let workers = raw.workers.unwrap_or(WORKERS);
        check.within("packages.workers", workers as u64, 1, 256)?;
        let retries = match raw.retries {
            Some(retries) => retries.into_iter().map(|span| span.0).collect(),
            None => RETRIES.to_vec(),
        };
        check.within("packages.retries", retries.len() as u64, 0, 100)?;
        let lease = lease(raw.lease, check)?;
        Ok(Some(Self { queue: raw.queue, workers, retries, lease }))
    }
}

fn lease(raw: RawLease, check: &Checker<'_>) -> Result<Lease, Error> {
    let name = raw.name.unwrap_or_else(|| LEASE_NAME.into());
    for (key, text) in [("name", Some(&name)), ("namespace", raw.namespace.as_ref())] {
        check.object_name(&format!("packages.lease.{key}"), text)?;
    }
    let lease = Lease {
        enabled: raw.enabled,
        name,
        namespace: raw.namespace,
        duration: check.positive("packages.lease.duration", raw.duration, LEASE_DURATION)?,
        renew: check.positive("packages.lease.renew", raw.renew, LEASE_RENEW)?,
        retry: check.positive("packages.lease.retry", raw.retry, LEASE_RETRY)?,
    };
    if lease.duration.subsec_nanos() != 0 || lease.duration > LEASE_DURATION_MAX {
        return Err(check.value("packages.lease.duration", "is stored in whole seconds: write 1s to 1h"));
    }
    if lease.renew >= lease.duration {
        return Err(check.value("packages.lease.renew", "must be shorter than packages.lease.duration"));
    }
    if lease.retry.mul_f64(RETRY_SPREAD) >= lease.renew {
        return Err(
            check.value("packages.lease.retry", "must fit into packages.lease.renew: write less than 5/6 of it")
        );
    }
    Ok(lease)
}
