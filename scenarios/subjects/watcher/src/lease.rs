//! A Lease by which several watchers agree on the watcher that reports, with the rules of client-go's leader election.
//!
//! The holder writes to the Lease regularly. Another watcher takes the Lease if the Lease has not changed for its whole
//! duration, by the watcher's own monotonic clock. The time that another holder wrote into the Lease is never used,
//! because the wall clocks of two machines may differ.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bugs::Bug;
use crate::net::{Api, text};

/// Time without a write after which another watcher may take the Lease.
const DURATION: Duration = Duration::from_secs(9);
/// Time after its last write during which the holder may rely on the Lease.
const COUNTED_ON: Duration = Duration::from_secs(7);
/// Interval at which a watcher reads the Lease, and the holder writes to it.
const EVERY: Duration = Duration::from_millis(1500);

/// A Lease, and whether this process holds it.
pub struct Lease {
    name: String,
    path: String,
    /// The time until which this process may rely on the Lease.
    until: Arc<Mutex<Option<Instant>>>,
    /// The Lease as another holder wrote it, and the time at which this process first saw this content.
    seen: Option<(Value, Instant)>,
}

/// Shows other tasks whether this process holds the Lease.
#[derive(Clone)]
pub struct Leads(Arc<Mutex<Option<Instant>>>);

impl Leads {
    /// Whether this process holds the Lease now.
    pub fn leads(&self) -> bool {
        self.0.lock().is_some_and(|until| Instant::now() < until)
    }
}

impl Lease {
    /// The Lease that `LONGHAUL_LEASE` names as `namespace/name`; `None` if the variable is not set.
    pub fn from_environment() -> anyhow::Result<Option<Self>> {
        let Ok(wanted) = std::env::var("LONGHAUL_LEASE") else { return Ok(None) };
        let (namespace, name) = wanted.split_once('/').context("write LONGHAUL_LEASE as namespace/name")?;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let until = Arc::new(Mutex::new(None));
        Ok(Some(Self { name: name.to_owned(), path, until, seen: None }))
    }

    /// A value that shows other tasks whether this process holds the Lease.
    pub fn leads(&self) -> Leads {
        Leads(Arc::clone(&self.until))
    }

    /// Holds the Lease or waits for it, for as long as the process lives.
    pub async fn keep(mut self, mut api: Api) {
        let every = Bug::lease_renewal().unwrap_or(EVERY);
        loop {
            if let Err(error) = self.look(&mut api).await {
                eprintln!("the lease: {error:#}");
            }
            let holds = self.until.lock().is_some();
            sleep(if holds { every } else { EVERY }).await;
        }
    }

    /// Reads the Lease once from the API server. Writes to the Lease if this process holds it or if it is free.
    pub async fn look(&mut self, api: &mut Api) -> anyhow::Result<()> {
        let began = Instant::now();
        let one = format!("{}/{}", self.path, self.name);
        let me = std::process::id().to_string();
        let (status, found) = api.ask("GET", &one, None).await?;
        let (method, path, mut lease) = match status {
            200 => ("PUT", one, found),
            404 => ("POST", self.path.clone(), json!({"metadata": {"name": self.name}, "spec": {}})),
            _ => anyhow::bail!("it was answered with {status}"),
        };
        let holder = text(&lease["spec"], "holderIdentity").unwrap_or_default();
        if holder != me && !holder.is_empty() && !self.is_free(&lease["spec"], began) {
            *self.until.lock() = None;
            return Ok(());
        }
        lease["spec"] = json!({
            "holderIdentity": me, "leaseDurationSeconds": DURATION.as_secs(), "renewTime": micro_time(SystemTime::now()),
        });
        let (status, _) = api.ask(method, &path, Some(lease)).await?;
        // Another watcher was faster.
        *self.until.lock() =
            matches!(status, 200 | 201).then(|| began + Bug::lease_renewal().map_or(COUNTED_ON, |_| DURATION));
        Ok(())
    }

    /// Whether another holder has not changed the Lease for its whole duration.
    fn is_free(&mut self, spec: &Value, now: Instant) -> bool {
        if Bug::trusts_the_wall_clock() {
            let written = text(spec, "renewTime").and_then(|time| time.parse::<jiff::Timestamp>().ok());
            let now = jiff::Timestamp::now();
            return written
                .is_some_and(|written| now.duration_since(written).as_secs() > DURATION.as_secs().cast_signed());
        }
        match &self.seen {
            Some((before, since)) if before == spec => now.duration_since(*since) > DURATION,
            _ => {
                self.seen = Some((spec.clone(), now));
                false
            }
        }
    }
}

/// A time in the format of Kubernetes' `MicroTime`.
fn micro_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.6}"))
}
