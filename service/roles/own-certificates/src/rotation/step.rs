//! Chooses the next step of a rotation from the Secret, the trust of the webhook configurations, and the time.
//!
//! Invariants: a certificate is used only if all webhook configurations have trusted its authority for the time
//! `settle`, or if no replica was called before. An authority is trusted until all its certificates have expired. Steps
//! are taken one at a time and depend only on stored results, so that another replica can continue after any step.

use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;

use super::Installation;
use super::make;
use super::stored::{Pair, Previous, StoredCertificates, moment, seconds};
use service_core::wire::{Facts, facts, verifies};

/// Shortest delay between two checks whether a step is due.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Largest tolerated difference between the clocks of two replicas.
const CLOCKS_APART: Duration = Duration::from_mins(1);

/// The authorities that the webhook configurations trust.
#[derive(Debug, Clone, Default)]
pub struct Trusted {
    /// The authorities of each webhook that calls the Service.
    pub entries: Vec<Vec<CertificateDer<'static>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No step is due for this duration.
    Wait(Duration),
    /// No authority is trusted yet: make an authority and a certificate in one step.
    Begin,
    /// Make a new authority, which is trusted but signs nothing yet.
    Introduce,
    /// Every configuration trusts the new authority: start the time `settle`.
    Confirm,
    Switch,
    /// Make a new certificate, signed by the present authority.
    Renew,
    /// All certificates of a former authority have expired: stop trusting it.
    Retire,
    /// The configurations do not trust the right authorities: write `caBundle`.
    Publish,
}

impl Step {
    /// The step's name in metrics, from a closed list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait(_) => "wait",
            Self::Begin => "begin",
            Self::Introduce => "introduce",
            Self::Confirm => "confirm",
            Self::Switch => "switch",
            Self::Renew => "renew",
            Self::Retire => "retire",
            Self::Publish => "publish",
        }
    }
}

impl Trusted {
    /// Whether every webhook trusts exactly the certificates in `bundle`.
    pub fn is(&self, bundle: &[CertificateDer<'_>]) -> bool {
        let same = |entry: &Vec<CertificateDer<'_>>| {
            entry.len() == bundle.len() && entry.iter().all(|one| bundle.contains(one))
        };
        self.entries.iter().all(same)
    }

    /// All valid authorities that some webhook trusts, without repetition.
    fn all(&self, now: SystemTime) -> Vec<CertificateDer<'static>> {
        self.such(|facts| is_valid(facts, now))
    }

    /// All authorities that some webhook trusts and whose validity has not started, without repetition. A replica whose
    /// clock is ahead of this replica's clock has made such authorities.
    fn early(&self, now: SystemTime) -> Vec<CertificateDer<'static>> {
        self.such(|facts| facts.not_before > now && !facts.is_expired(now))
    }

    fn such(&self, is_such: impl Fn(&Facts) -> bool) -> Vec<CertificateDer<'static>> {
        let mut such: Vec<CertificateDer<'static>> = Vec::new();
        for one in self.entries.iter().flatten() {
            if !such.contains(one) && facts(one).is_some_and(|facts| is_such(&facts)) {
                such.push(one.clone());
            }
        }
        such
    }
}

pub fn next(place: &Installation, held: &StoredCertificates, trusted: &Trusted, now: SystemTime) -> Step {
    let settings = &place.settings;
    let authority = usable(held.authority.as_ref(), now);
    let coming = usable(held.next.as_ref(), now);
    if authority.is_none() && coming.is_none() {
        // The authorities trusted now may have signed the certificates that replicas show: they must stay trusted.
        return if trusted.all(now).is_empty() { Step::Begin } else { Step::Introduce };
    }
    // Checked before everything that depends on others: without a certificate the webhook cannot be called.
    if let Some(authority) = authority
        && leaf_is_due(place, held, authority, now)
    {
        return Step::Renew;
    }
    if !trusted.is(&held.bundle()) {
        return Step::Publish;
    }
    let mut until = now + settings.authority_lifetime;
    if coming.is_some() {
        match held.confirmed.map(moment) {
            None => return Step::Confirm,
            // Confirmed by a clock that was ahead: until ours gets there, all certificates would end.
            Some(confirmed) if confirmed > now + settings.settle + CLOCKS_APART => return Step::Confirm,
            Some(confirmed) if now >= confirmed + settings.settle => return Step::Switch,
            Some(confirmed) => until = until.min(confirmed + settings.settle),
        }
    } else if let Some(authority) = authority {
        if is_due(authority.ends(), settings.authority_lifetime, now) {
            return Step::Introduce;
        }
        until = until.min(authority.ends() - settings.authority_lifetime / 3);
    }
    if let Some(retires) = held.previous.iter().map(|previous| moment(previous.until)).min() {
        if now >= retires {
            return Step::Retire;
        }
        until = until.min(retires);
    }
    if let Some(leaf) = &held.leaf {
        until = until.min(leaf.ends() - settings.leaf_lifetime / 3);
    }
    // A step that is due and cannot be taken yet is not retried without a pause.
    Step::Wait(until.duration_since(now).unwrap_or_default().max(LOOK_AGAIN))
}

pub fn after(
    step: Step,
    place: &Installation,
    held: &StoredCertificates,
    trusted: &Trusted,
    now: SystemTime,
) -> Result<StoredCertificates, make::Error> {
    let settings = &place.settings;
    let mut fresh = held.clone();
    match step {
        Step::Begin => {
            let authority = make::authority(now, now + settings.authority_lifetime)?;
            fresh = StoredCertificates { version: held.version.clone(), ..StoredCertificates::default() };
            fresh.leaf = Some(leaf(place, &authority, now)?);
            fresh.authority = Some(authority);
            // If our clock is the wrong one, replicas still show certificates of these, and callers accept them.
            let until = until_forgotten(place, now);
            fresh.previous = trusted.early(now).into_iter().map(|one| Previous::new(one, until)).collect();
        }
        Step::Introduce => {
            fresh.next = Some(make::authority(now, now + settings.authority_lifetime)?);
            fresh.confirmed = None;
            if usable(held.authority.as_ref(), now).is_none() {
                // The authority is foreign or lost: certificates that it signed stay trusted for as long as ours would
                // be.
                fresh.authority = None;
                fresh.leaf = None;
                let until = until_forgotten(place, now);
                fresh.previous = trusted.all(now).into_iter().map(|one| Previous::new(one, until)).collect();
            }
        }
        Step::Confirm => fresh.confirmed = Some(seconds(now) + 1),
        Step::Switch => {
            let Some(authority) = fresh.next.take() else { return Ok(fresh) };
            if let Some(old) = held.authority.as_ref().and_then(|old| old.chain.first()) {
                let ends = held.leaf.as_ref().map_or(now, Pair::ends).max(now + settings.settle);
                fresh.previous.push(Previous::new(old.clone(), seconds(ends) + 1));
            }
            fresh.leaf = Some(leaf(place, &authority, now)?);
            fresh.authority = Some(authority);
            fresh.confirmed = None;
        }
        Step::Renew => {
            if let Some(authority) = &fresh.authority {
                fresh.leaf = Some(leaf(place, authority, now)?);
            }
        }
        Step::Retire => fresh.previous.retain(|previous| moment(previous.until) > now),
        // A configuration lost its trust, so the time before must not count.
        Step::Publish => fresh.confirmed = None,
        Step::Wait(_) => {}
    }
    Ok(fresh)
}

/// The time at which authorities of unknown origin stop being trusted, because by then all replicas use a certificate
/// of another authority.
fn until_forgotten(place: &Installation, now: SystemTime) -> u64 {
    seconds(now + place.settings.settle * 2 + place.settings.leaf_lifetime)
}

/// Makes a certificate that expires no later than its authority, because a chain is valid only while all its
/// certificates are valid.
fn leaf(place: &Installation, authority: &Pair, now: SystemTime) -> Result<Pair, make::Error> {
    let ends = (now + place.settings.leaf_lifetime).min(authority.ends());
    make::leaf(authority, &place.names(), now, ends)
}

fn usable(pair: Option<&Pair>, now: SystemTime) -> Option<&Pair> {
    pair.filter(|pair| is_valid(&pair.facts, now))
}

/// Whether callers accept the certificate. If the validity of a certificate has not started, a replica whose clock is
/// ahead has made the certificate. kube-apiserver refuses such a certificate and everything that it signed.
fn is_valid(facts: &Facts, now: SystemTime) -> bool {
    facts.not_before <= now && !facts.is_expired(now)
}

/// Whether at most a third of `lifetime` is left until `ends`. The result is also true if more than the whole
/// `lifetime` is left, because then the configured lifetime was shortened.
fn is_due(ends: SystemTime, lifetime: Duration, now: SystemTime) -> bool {
    // Ends are whole seconds.
    now + lifetime / 3 >= ends || ends > now + lifetime + Duration::from_secs(2)
}

fn leaf_is_due(place: &Installation, held: &StoredCertificates, authority: &Pair, now: SystemTime) -> bool {
    let Some(leaf) = &held.leaf else { return true };
    let signed = verifies(&authority.chain, &leaf.chain, &place.called_as(), now).is_ok();
    let lifetime = place.settings.leaf_lifetime;
    // An authority near its end cannot sign a longer-lived certificate, so renewal would repeat without effect.
    let gains = (now + lifetime).min(authority.ends()) > leaf.ends() + lifetime / 10 || leaf.ends() > now + lifetime;
    !signed || (is_due(leaf.ends(), lifetime, now) && gains)
}

#[cfg(test)]
mod tests;
