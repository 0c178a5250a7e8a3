//! Checks whether the certificate of a connected client would still be accepted.
//!
//! A full handshake checks the client's certificate once, a resumed handshake never; a connection lives for hours. So
//! each listener checks the client's certificate before each call. Signatures are verified again only after new files
//! were loaded, or after the certificate or a revocation list expired. Without such a change, the check compares two
//! numbers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{Refusal, ServerTls};
use crate::wire::{Facts, facts};

/// Longest time between two checks of a client's certificate if no file has changed.
const RECHECK: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub struct ClientCertificate {
    tls: Arc<ServerTls>,
    chain: Vec<CertificateDer<'static>>,
    facts: Facts,
    identity: Arc<str>,
    checked: Mutex<Checked>,
}

#[derive(Debug)]
struct Checked {
    generation: u64,
    /// The time until which the result of the last check is valid.
    until: SystemTime,
    result: Result<(), Refusal>,
}

impl ClientCertificate {
    /// The certificate of a client that sent `chain` to the listener `tls`, or the reason why it is refused. If a
    /// verifier has just accepted the certificate, `verified` is the generation of that verifier; a resumed session has
    /// none.
    pub(in crate::edge) fn new(
        tls: &Arc<ServerTls>,
        chain: &[CertificateDer<'static>],
        verified: Option<u64>,
    ) -> Result<Self, Refusal> {
        let leaf = chain.first().ok_or(Refusal::NoCertificate)?;
        let facts = facts(leaf).ok_or(Refusal::BadEncoding)?;
        let identity = facts.identity().into();
        let now = SystemTime::now();
        let until = verified.map_or(SystemTime::UNIX_EPOCH, |_| until(chain, tls.current.read().lists_end, now));
        let checked = Mutex::new(Checked { generation: verified.unwrap_or(u64::MAX), until, result: Ok(()) });
        let client = Self { tls: Arc::clone(tls), chain: chain.to_vec(), facts, identity, checked };
        client.check(now)?;
        Ok(client)
    }

    /// The client's name: its first alternative name, else `CN=` and its common name.
    pub fn identity(&self) -> &Arc<str> {
        &self.identity
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Checks whether the certificate would be accepted at `now`.
    pub fn check(&self, now: SystemTime) -> Result<(), Refusal> {
        let generation = self.tls.generation.load(Ordering::Acquire);
        let mut checked = self.checked.lock();
        if checked.generation == generation && now < checked.until {
            return checked.result;
        }
        *checked = self.look(generation, now);
        checked.result
    }

    fn look(&self, generation: u64, now: SystemTime) -> Checked {
        let (verifier, lists_end) = {
            let current = self.tls.current.read();
            (current.verifier.clone(), current.lists_end)
        };
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let result = match &verifier {
            None => Ok(()),
            Some(verifier) => verifier
                .verify_client_cert(&self.chain[0], &self.chain[1..], UnixTime::since_unix_epoch(since))
                .map(drop)
                .map_err(|error| Refusal::of(&error).unwrap_or(Refusal::Other)),
        };
        Checked { generation, until: until(&self.chain, lists_end, now), result }
    }
}

/// The time until which the result of a check of `chain` at `now` is valid.
fn until(chain: &[CertificateDer<'_>], lists_end: Option<SystemTime>, now: SystemTime) -> SystemTime {
    // The library compares whole seconds and accepts the last one.
    let after = |moment: SystemTime| moment + Duration::from_secs(1);
    let ends = chain.iter().filter_map(facts).map(|facts| after(facts.not_after));
    let first = ends.chain(lists_end.map(after)).filter(|moment| *moment > now).min();
    // The end of the authority is not in the chain; this limits how long a client outlives it.
    first.unwrap_or(now + RECHECK).min(now + RECHECK)
}
