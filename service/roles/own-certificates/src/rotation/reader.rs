//! The reader of the certificate: every replica reads the certificate from the Secret and passes it to its listener.
//!
//! The reader writes nothing. The readiness check reports a missing or invalid certificate. If the certificate changes,
//! open connections stay open.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rand::RngExt as _;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use tokio::time::{Instant, sleep};

use super::Installation;
use super::keeper::{SECRET_BYTES_MAX, TIMEOUT};
use super::stored::StoredCertificates;
use service_core::edge::Handed;
use service_core::kube::Client;
use service_core::wire::{key_from_pem, pair};
use service_watch::Backoff;

/// Time between two reads of the Secret while no certificate exists; without a certificate, the replica cannot serve.
const EAGER: Duration = Duration::from_millis(500);
/// Longest delay after failed reads in a row; every useful certificate has a longer lifetime.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

pub struct Reader {
    place: Installation,
    client: Arc<Client>,
    handed: Arc<Handed>,
    shown: Vec<CertificateDer<'static>>,
    said: Option<String>,
}

impl Reader {
    pub fn new(place: Installation, client: Arc<Client>, handed: Arc<Handed>) -> Self {
        Self { place, client, handed, shown: Vec::new(), said: None }
    }

    pub async fn follow(mut self) {
        let mut backoff = Backoff::new(EAGER, BACKOFF_MAX);
        loop {
            let pause = match self.read().await {
                Ok(()) => {
                    backoff.reset();
                    self.said = None;
                    self.handed.say(None);
                    self.place.settings.interval
                }
                Err(why) => {
                    self.handed.say(Some(why.clone()));
                    let wait = backoff.next(rand::rng().random(), None).max(EAGER / 2);
                    // Waiting for the first certificate is no failure, so its pause stays short.
                    let wait = if self.shown.is_empty() { wait.min(EAGER * 4) } else { wait };
                    if self.said.as_ref() != Some(&why) {
                        tracing::warn!(name: crate::events::OWN_NOT_READ, error = why, "the certificate was not read");
                        self.said = Some(why);
                    }
                    wait
                }
            };
            sleep(pause).await;
        }
    }

    async fn read(&mut self) -> Result<(), String> {
        let place = format!("secrets/{} in {}", self.place.settings.secret, self.place.namespace);
        let deadline = Instant::now() + TIMEOUT;
        let body = match self.client.read_at_most(&self.place.secret_path(), SECRET_BYTES_MAX, deadline).await {
            Ok(body) => body,
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                return Err(format!("{place} does not exist: apply what `longhaul-service manifests` prints"));
            }
            Err(error) => return Err(format!("{place}: {error}")),
        };
        let held = StoredCertificates::read(&body).map_err(|error| format!("{place}: {error}"))?;
        let Some(leaf) = &held.leaf else {
            return Err(format!(
                "{place} has none: the replica that holds leases/{} makes it",
                self.place.settings.lease
            ));
        };
        if !held.vouches_for(leaf) {
            return Err(format!(
                "{place} has one that none of its authorities signed, which no caller would take: the replica that holds leases/{} \
                 makes another",
                self.place.settings.lease
            ));
        }
        if leaf.chain != self.shown {
            self.handed.replace(certified(leaf).map_err(|error| format!("{place}: {error}"))?);
            self.shown.clone_from(&leaf.chain);
        }
        Ok(())
    }
}

fn certified(leaf: &super::stored::Pair) -> Result<CertifiedKey, service_core::wire::TlsError> {
    pair(leaf.chain.clone(), key_from_pem(leaf.key.as_bytes())?)
}
