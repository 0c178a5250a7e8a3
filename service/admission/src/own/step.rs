//! The next step: from what the Secret holds, what the webhook configurations trust, and the time. Pure.
//!
//! What holds: a certificate is shown only when its authority has been trusted everywhere for `settle` (or when nobody was called
//! before), and an authority is trusted until everything that it signed has ended. One step at a time; the next one is decided from
//! what the step before has left behind, so that another replica can go on anywhere.

use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;

use super::Place;
use super::held::{Held, Pair, Previous, moment, seconds};
use super::make;
use service_core::wire::{Facts, facts, verifies};

/// Least wait between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How far the clocks of two replicas may be apart.
const CLOCKS_APART: Duration = Duration::from_mins(1);

/// The authorities that the webhook configurations trust, all of them together.
#[derive(Debug, Clone, Default)]
pub struct Trusted {
    /// Of each entry that calls us, its bundle.
    pub entries: Vec<Vec<CertificateDer<'static>>>,
}

/// Steps of the rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing, for so long.
    Wait(Duration),
    /// Nobody is trusted yet: authority and certificate at once.
    Begin,
    /// A new authority, trusted and not signing.
    Introduce,
    /// Every configuration trusts the new authority: from now the time counts.
    Confirm,
    /// The new authority signs.
    Switch,
    /// A new certificate of the authority that signs.
    Renew,
    /// Everything that an authority before had signed has ended: it is not trusted any more.
    Retire,
    /// The configurations trust something else than they should.
    Publish,
}

impl Step {
    /// Its name in metrics, of a closed list.
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
    /// Whether every entry trusts exactly `bundle`.
    pub fn is(&self, bundle: &[CertificateDer<'_>]) -> bool {
        let same = |entry: &Vec<CertificateDer<'_>>| {
            entry.len() == bundle.len() && entry.iter().all(|one| bundle.contains(one))
        };
        self.entries.iter().all(same)
    }

    /// Everything that some entry trusts and that is valid, each once.
    fn all(&self, now: SystemTime) -> Vec<CertificateDer<'static>> {
        self.such(|facts| is_valid(facts, now))
    }

    /// Everything that some entry trusts and that has not begun, each once: made by a clock that is ahead of ours.
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

pub fn next(place: &Place, held: &Held, trusted: &Trusted, now: SystemTime) -> Step {
    let settings = &place.settings;
    let authority = usable(held.authority.as_ref(), now);
    let coming = usable(held.next.as_ref(), now);
    if authority.is_none() && coming.is_none() {
        // Who is trusted already may be what replicas show until now: they are not cut off.
        return if trusted.all(now).is_empty() { Step::Begin } else { Step::Introduce };
    }
    // Before everything that depends on others: without a certificate nobody can be called.
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
            // By a clock that was ahead: until ours gets there, everything would end.
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
    // What is due and cannot be done yet is not asked about without a pause.
    Step::Wait(until.duration_since(now).unwrap_or_default().max(LOOK_AGAIN))
}

/// The content of the Secret after `step`.
pub fn after(step: Step, place: &Place, held: &Held, trusted: &Trusted, now: SystemTime) -> Result<Held, make::Error> {
    let settings = &place.settings;
    let mut fresh = held.clone();
    match step {
        Step::Begin => {
            let authority = make::authority(now, now + settings.authority_lifetime)?;
            fresh = Held { version: held.version.clone(), ..Held::default() };
            fresh.leaf = Some(leaf(place, &authority, now)?);
            fresh.authority = Some(authority);
            // Should it be our clock that is wrong, replicas show what these signed and callers take it.
            let until = until_forgotten(place, now);
            fresh.previous = trusted.early(now).into_iter().map(|one| Previous::new(one, until)).collect();
        }
        Step::Introduce => {
            fresh.next = Some(make::authority(now, now + settings.authority_lifetime)?);
            fresh.confirmed = None;
            if usable(held.authority.as_ref(), now).is_none() {
                // Not ours, or lost: whoever shows what it signed is trusted for as long as ours would be.
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
        // Nobody may count the time from before a configuration lost what it trusted.
        Step::Publish => fresh.confirmed = None,
        Step::Wait(_) => {}
    }
    Ok(fresh)
}

/// Until when authorities are trusted that are not ours, or lost: whoever shows what they signed has another certificate by then.
fn until_forgotten(place: &Place, now: SystemTime) -> u64 {
    seconds(now + place.settings.settle * 2 + place.settings.leaf_lifetime)
}

/// A certificate ends with its authority at the latest: a chain is valid as long as its shortest part.
fn leaf(place: &Place, authority: &Pair, now: SystemTime) -> Result<Pair, make::Error> {
    let ends = (now + place.settings.leaf_lifetime).min(authority.ends());
    make::leaf(authority, &place.names(), now, ends)
}

fn usable(pair: Option<&Pair>, now: SystemTime) -> Option<&Pair> {
    pair.filter(|pair| is_valid(&pair.facts, now))
}

/// Whether callers take it. What has not begun was made by a clock that was ahead: kube-apiserver refuses it and all that it signs.
fn is_valid(facts: &Facts, now: SystemTime) -> bool {
    facts.not_before <= now && !facts.is_expired(now)
}

/// Whether a third of `lifetime` or less is left until `ends`; or more than all of it, because it was made for a longer one.
fn is_due(ends: SystemTime, lifetime: Duration, now: SystemTime) -> bool {
    // Ends are whole seconds.
    now + lifetime / 3 >= ends || ends > now + lifetime + Duration::from_secs(2)
}

fn leaf_is_due(place: &Place, held: &Held, authority: &Pair, now: SystemTime) -> bool {
    let Some(leaf) = &held.leaf else { return true };
    let signed = verifies(&authority.chain, &leaf.chain, &place.called_as(), now).is_ok();
    let lifetime = place.settings.leaf_lifetime;
    // An authority at its end can sign nothing that lasts longer: not again and again.
    let gains = (now + lifetime).min(authority.ends()) > leaf.ends() + lifetime / 10 || leaf.ends() > now + lifetime;
    !signed || (is_due(leaf.ends(), lifetime, now) && gains)
}

#[cfg(test)]
mod tests;
