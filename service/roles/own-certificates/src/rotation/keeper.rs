//! The keeper of the certificates: in the replica that holds the Lease, it makes missing certificates and renews
//! expiring certificates, step by step.
//!
//! This module decides when the Secret is written. A write names the version of the Secret that was read: if two
//! replicas believe that they hold the Lease, the second write is refused, and the replica that sent it reads again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use rand::RngExt as _;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::state::State;
use super::step::{Step, Trusted, after, next};
use super::stored::StoredCertificates;
use super::{Installation, bundle, make};
use service_core::kube::{self, Client, Write};
use service_watch::config::Lease;
use service_watch::{Backoff, Elector};

/// Maximum number of bytes of a Secret in an answer; a Secret has at most 1 MiB.
pub(super) const SECRET_BYTES_MAX: usize = 2 << 20;
/// Time limit of a request to the API server; after a timeout, the request is repeated.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest and longest delay after failed checks of the certificates in a row.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Maximum number of rotation steps in one check: a whole rotation has fewer steps, so more steps would be an endless
/// loop.
const STEPS_MAX: usize = 8;
/// Longest duration of the Lease, equal to client-go's. The Lease may be long, because certificates are renewed long
/// before they expire.
const LEASE_MAX: Duration = Duration::from_secs(15);
/// The Lease lasts at most this fraction (a ninth) of a certificate's lifetime. A certificate is renewed when a third
/// of its lifetime is left; in that time, two holders in a row may be killed and replaced.
const LEASES_PER_LEAF: u32 = 9;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("secrets/{name}: {source}{}", remedy(source))]
    Secret { name: String, source: kube::Error },
    #[error("secrets/{name}: {source}")]
    Answer { name: String, source: serde_json::Error },
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error(transparent)]
    Make(#[from] make::Error),
    #[error("the steps of a rotation go round in a circle: somebody else writes Secret or caBundle")]
    Circle,
}

/// The part of a message that names missing rights or a missing Secret; empty for other errors.
fn remedy(error: &kube::Error) -> &'static str {
    match error.status() {
        Some(StatusCode::FORBIDDEN) => {
            " (apply what `longhaul-service manifests --certificates own` prints: an empty Secret, and the right to fill it)"
        }
        _ => "",
    }
}

/// The participation of this replica in the rotation.
pub struct Keeper {
    place: Installation,
    client: Arc<Client>,
    state: Arc<State>,
    metrics: Metrics,
    elector: Elector,
}

impl Keeper {
    pub fn new(place: Installation, client: Arc<Client>, state: Arc<State>, metrics: Metrics) -> Self {
        let lease = lease(&place);
        let elector = Elector::new(lease, &place.namespace, Arc::clone(&client));
        Self { place, client, state, metrics, elector }
    }

    /// Makes and renews certificates while this replica holds the Lease, until `stop` is cancelled. After `stop`, the
    /// keeper releases the Lease and waits for the end of its task.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.elector.acquire() => {}
                () = stop.cancelled() => break,
            }
            self.state.holds(true);
            let work = Work { place: &self.place, client: &self.client, state: &self.state, metrics: &self.metrics };
            let stopped = tokio::select! {
                why = self.elector.hold() => {
                    tracing::warn!(name: service_watch::events::LEASE_LOST, why, "this replica does not lead any more");
                    false
                }
                () = work.go_on() => false,
                () = stop.cancelled() => true,
            };
            self.state.holds(false);
            if stopped {
                self.elector.release().await;
                break;
            }
        }
        // The task ends with its set, not by itself.
        std::future::pending::<()>().await;
    }
}

/// The settings of the Lease: times in whole seconds, as a Lease stores them, in client-go's proportions.
fn lease(place: &Installation) -> Lease {
    let longest = (place.settings.leaf_lifetime / LEASES_PER_LEAF).min(LEASE_MAX).as_secs().max(1);
    let duration = Duration::from_secs(longest);
    let (renew, retry) = (duration * 2 / 3, duration * 2 / 15);
    Lease { enabled: None, name: place.settings.lease.clone(), namespace: None, duration, renew, retry }
}

struct Work<'k> {
    place: &'k Installation,
    client: &'k Client,
    state: &'k State,
    metrics: &'k Metrics,
}

impl Work<'_> {
    async fn go_on(&self) {
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        loop {
            let pause = match self.turn().await {
                Ok(wait) => {
                    backoff.reset();
                    wait.min(self.place.settings.interval)
                }
                Err(error) => {
                    self.metrics.failures.inc();
                    let text = error.to_string();
                    if self.state.trouble(Some(text.clone())) {
                        tracing::warn!(name: crate::events::OWN_FAILED, error = text, "certificates are not kept for now");
                    }
                    // Full jitter may give zero; a failed request is never repeated at once.
                    backoff.next(rand::rng().random(), None).max(BACKOFF.0 / 2)
                }
            };
            sleep(pause).await;
        }
    }

    /// Takes steps of the rotation until no step is due; returns how long to wait.
    async fn turn(&self) -> Result<Duration, Error> {
        for _ in 0..STEPS_MAX {
            let held = self.read().await?;
            self.state.show(&held);
            let look = match bundle::look(self.place, self.client).await {
                Ok(look) => look,
                Err(error) => {
                    self.renew_all_the_same(&held).await?;
                    return Err(error.into());
                }
            };
            let now = SystemTime::now();
            let step = next(self.place, &held, &look.trusted, now);
            if let Step::Wait(wait) = step {
                self.state.trouble((!look.notes.is_empty()).then(|| look.notes.join("; ")));
                return Ok(wait);
            }
            let fresh = after(step, self.place, &held, &look.trusted, now)?;
            if step == Step::Publish {
                bundle::publish(&look, &held.bundle(), self.client).await?;
            }
            if step != Step::Publish || fresh.confirmed != held.confirmed {
                self.write(&fresh).await?;
            }
            self.metrics.done(step);
            tracing::info!(name: crate::events::OWN_STEP, step = step.name(), "own certificates went a step on");
        }
        Err(Error::Circle)
    }

    /// Renews the certificate under the same authority if a renewal is due. The renewal is possible even if the webhook
    /// configurations cannot be read.
    async fn renew_all_the_same(&self, held: &StoredCertificates) -> Result<(), Error> {
        let (now, nobody) = (SystemTime::now(), Trusted::default());
        if next(self.place, held, &nobody, now) == Step::Renew {
            self.write(&after(Step::Renew, self.place, held, &nobody, now)?).await?;
            self.metrics.done(Step::Renew);
        }
        Ok(())
    }

    async fn read(&self) -> Result<StoredCertificates, Error> {
        let deadline = Instant::now() + TIMEOUT;
        let name = || self.place.settings.secret.clone();
        match self.client.read_at_most(&self.place.secret_path(), SECRET_BYTES_MAX, deadline).await {
            Ok(body) => StoredCertificates::read(&body).map_err(|source| Error::Answer { name: name(), source }),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(StoredCertificates::default()),
            Err(source) => Err(Error::Secret { name: name(), source }),
        }
    }

    async fn write(&self, held: &StoredCertificates) -> Result<(), Error> {
        let name = &self.place.settings.secret;
        let (deadline, path) = (Instant::now() + TIMEOUT, self.place.secret_path());
        let written = if held.version.is_some() {
            self.client.write_before(Write::Merge, &path, &held.patch(), deadline).await
        } else {
            let path = self.place.secrets_path();
            self.client.write_before(Write::Create, &path, &held.object(name), deadline).await
        };
        match written {
            // Another replica wrote at the same moment: the next step is chosen from the present state.
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => Ok(()),
            Err(source) => Err(Error::Secret { name: name.clone(), source }),
            Ok(_) => Ok(()),
        }
    }
}
