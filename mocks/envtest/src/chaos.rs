//! The faults that a correct test suite survives, drawn for one request at a time. This module is pure: the same seed
//! gives the n-th watch of a resource the same faults.
//!
//! Owns the definition of gentle faults. If requests of the manager under test cannot be distinguished, only the
//! watches of caches and their initial lists get faults. A suite's own requests are then never refused, and a watch
//! that a test opens by hand gets no fault. If the manager's requests can be distinguished, the manager's writes also
//! conflict, and its requests are also refused. A fault begins after a number of events of its watch, never at a fixed
//! time.

use std::time::Duration;

use mock_faults::{Fault, Name, Nth, On};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use units::Span;

/// The query parameter of watches that fill caches. Faults spare watches that tests open by hand without the parameter:
/// a test that reads only the first event would fail.
pub(crate) const CACHE: &str = "allowWatchBookmarks=true";
/// An informer's first request, a list or a watch that begins with a list, has one of these query parameters.
pub(crate) const REFLECTOR: [&str; 2] = ["resourceVersion=0", "sendInitialEvents=true"];
/// Number of faults in one watch, each for a sequence of consecutive events. The sequences grow, so that the last one
/// begins some two hundred events after the start of the watch.
const STRETCHES: usize = 12;
/// The probability that a request of the manager under test is refused or slow, if its requests can be distinguished.
const HARSH: f64 = 0.12;
/// The resource of leader election: a correct manager that cannot renew its lease ends, so leases get no faults.
const LEASES: &str = "leases.coordination.k8s.io";

/// The sorts of faults that are drawn for requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Drawn {
    /// All faults that a correct suite survives.
    pub chaos: bool,
    /// Whether events of different resources arrive in another order than they were written.
    pub order: bool,
    /// Maximum number of versions by which caches are stale; `None` means no stale caches.
    pub stale: Option<u64>,
}

impl Drawn {
    /// Whether at least one sort of faults is drawn.
    pub fn is_any(self) -> bool {
        self.chaos || self.order || self.stale.is_some()
    }
}

/// The facts about a request that decide which faults it gets.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of a request of its own")]
pub(crate) struct Occasion<'a> {
    pub resource: &'a str,
    pub on: On,
    /// The number of the request among those with the same verb on this resource, from 1.
    pub number: u64,
    /// Whether the request fills or follows a cache.
    pub is_of_a_cache: bool,
    /// Whether the request continues from a revision instead of starting anew.
    pub resumes: bool,
    /// Whether the request is known to come from the manager under test.
    pub is_managers: bool,
    /// Whether a fault may end this watch; [`super::draw`] limits how many watches end.
    pub may_end: bool,
}

pub(crate) fn drawn(seed: u64, drawn: Drawn, occasion: &Occasion<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    if drawn.chaos {
        faults.extend(chaos(&mut random(seed, 0xC4A0, occasion), occasion));
    }
    if drawn.order {
        faults.extend(disorder(&mut random(seed, 0x0D0E, occasion), occasion));
    }
    if let Some(versions) = drawn.stale {
        faults.extend(lagging(&mut random(seed, 0x57A1E, occasion), versions, occasion));
    }
    // For this request and for none after it.
    let only = |fault: Fault| Fault { on: Some(occasion.on).filter(|on| *on != fault.name.row().on), ..fault };
    faults.into_iter().map(|fault| Fault { nth: fault.nth.clone().or(Some(Nth::one(1))), ..only(fault) }).collect()
}

/// A random number generator that depends only on the seed, `tag` and this request, and not on requests to other
/// resources.
fn random(seed: u64, tag: u64, occasion: &Occasion<'_>) -> ChaCha8Rng {
    let mut mixed: u64 = 0xCBF2_9CE4_8422_2325;
    let mut mix = |byte: u8| mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let words = [seed, tag, occasion.number, u64::from(occasion.on.index())];
    words.iter().flat_map(|word| word.to_le_bytes()).chain(occasion.resource.bytes()).for_each(&mut mix);
    ChaCha8Rng::seed_from_u64(mixed)
}

fn chaos(random: &mut ChaCha8Rng, occasion: &Occasion<'_>) -> Vec<Fault> {
    match occasion.on {
        On::Watch if occasion.is_of_a_cache || occasion.is_managers => watch(random, occasion),
        On::List if occasion.is_of_a_cache => list(random),
        _ if occasion.is_managers && occasion.resource != LEASES && random.random_bool(HARSH) => {
            vec![harsh(random, occasion.on)]
        }
        _ => Vec::new(),
    }
}

/// Draws the faults of a watch: some at its beginning, others after a number of its events.
fn watch(random: &mut ChaCha8Rng, occasion: &Occasion<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    if occasion.resumes && occasion.number > 1 && occasion.may_end && random.random_bool(0.05) {
        return vec![Fault { count: Some(1), ..Fault::armed(Name::HttpError) }.set("status", 410)];
    }
    if occasion.resumes && random.random_bool(0.3) {
        faults.push(Fault { count: Some(1), ..Fault::armed(Name::EventRepeated) }.set("events", 2));
    }
    if !occasion.resumes && random.random_bool(0.15) {
        let (lasts, count) = (Some(ms(100, 700, random)), Some(1));
        faults.push(Fault { lasts, count, ..Fault::armed(Name::StaleView) });
    }
    let mut after = if random.random_bool(0.4) { 0 } else { random.random_range(1..4) };
    for _ in 0..STRETCHES {
        let events = random.random_range(1..=5);
        let after_events = Some(after);
        let (fault, is_end) = match random.random_range(0..10) {
            0 | 1 if occasion.may_end => (Fault::armed(Name::WatchReset), true),
            2 if occasion.may_end => (Fault::armed(Name::ErrorEvent).set("code", 410), true),
            3 | 4 => (
                Fault { lasts: Some(ms(100, 700, random)), ..Fault::armed(Name::SilentWatch) }.set("heals", true),
                false,
            ),
            _ => {
                let delay = ms(20, 300, random);
                (Fault { count: Some(events), ..Fault::armed(Name::EventDelayed) }.set("delay", delay), false)
            }
        };
        let count = fault.count.or(Some(1));
        faults.push(Fault { after_events, count, ..fault });
        if is_end {
            break;
        }
        after += events + random.random_range(0..=3 + after / 4);
    }
    faults
}

/// Draws the faults of a list that fills a cache.
fn list(random: &mut ChaCha8Rng) -> Vec<Fault> {
    let count = Some(1);
    match random.random_range(0..10) {
        0..=3 => vec![Fault { count, ..Fault::armed(Name::DelayAnswer) }.set("delay", ms(50, 400, random))],
        4..=6 => vec![Fault { count, ..Fault::armed(Name::Unordered) }],
        _ => Vec::new(),
    }
}

/// Draws the fault of a request of the manager under test.
fn harsh(random: &mut ChaCha8Rng, on: On) -> Fault {
    let times = random.random_range(1..=2);
    let refused = Fault { nth: Some(Nth::Range { from: 1, to: Some(times) }), ..Fault::armed(Name::HttpError) };
    let refused = Fault { count: Some(times), ..refused };
    match on {
        On::Update | On::Patch if random.random_bool(0.7) => refused.set("status", 409),
        On::Create if random.random_bool(0.6) => refused.set("status", 500),
        On::Get if random.random_bool(0.4) => {
            Fault { count: Some(1), nth: None, ..refused }.set("status", 429).set("retryAfter", Span::from_secs(1))
        }
        _ => Fault { count: Some(1), ..Fault::armed(Name::DelayAnswer) }.set("delay", ms(50, 500, random)),
    }
}

/// Changes the order of events between resources: each watch delays some of its events but keeps their order.
fn disorder(random: &mut ChaCha8Rng, occasion: &Occasion<'_>) -> Vec<Fault> {
    if occasion.on != On::Watch || !occasion.is_of_a_cache {
        return Vec::new();
    }
    let stretch = |random: &mut ChaCha8Rng, count| {
        Fault { count: Some(count), ..Fault::armed(Name::EventDelayed) }.set("delay", ms(5, 200, random))
    };
    stretches(random, 1..=5, 0..=4, stretch)
}

/// Makes caches up to `versions` versions stale, for some events at a time. Open watches withhold their newest events;
/// new lists and watches show an older state.
fn lagging(random: &mut ChaCha8Rng, versions: u64, occasion: &Occasion<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let begins = matches!(occasion.on, On::Watch | On::List) && occasion.is_of_a_cache && !occasion.resumes;
    if begins && random.random_bool(0.5) {
        let behind = random.random_range(0..=versions);
        let (lasts, count) = (Some(ms(50, 400, random)), Some(1));
        faults.push(Fault { lasts, count, ..Fault::armed(Name::StaleView) }.set("behind", behind));
    }
    if occasion.on != On::Watch || !occasion.is_of_a_cache || versions == 0 {
        return faults;
    }
    let stretch = |random: &mut ChaCha8Rng, count| {
        let held = random.random_range(1..=versions);
        let fault = Fault { count: Some(count), ..Fault::armed(Name::EventDelayed) };
        fault.set("delay", ms(80, 500, random)).set("events", held)
    };
    faults.extend(stretches(random, 2..=8, 0..=3, stretch));
    faults
}

/// Returns one fault for each of [`STRETCHES`] sequences of a watch's events, with gaps between them.
fn stretches(
    random: &mut ChaCha8Rng,
    length: std::ops::RangeInclusive<u64>,
    gap: std::ops::RangeInclusive<u64>,
    fault: impl Fn(&mut ChaCha8Rng, u64) -> Fault,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut after = random.random_range(gap.clone());
    for _ in 0..STRETCHES {
        let grown = after / 6;
        let events = random.random_range(length.clone()) + grown;
        faults.push(Fault { after_events: Some(after), ..fault(random, events) });
        after += events + random.random_range(gap.clone()) + random.random_range(0..=grown);
    }
    faults
}

fn ms(from: u64, to: u64, random: &mut ChaCha8Rng) -> Span {
    Span(Duration::from_millis(random.random_range(from..to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Drawn = Drawn { chaos: true, order: true, stale: Some(3) };

    fn occasion(on: On, resource: &str, number: u64) -> Occasion<'_> {
        let (is_of_a_cache, resumes) = (matches!(on, On::Watch | On::List), number > 1);
        Occasion { resource, on, number, is_of_a_cache, resumes, is_managers: false, may_end: true }
    }

    /// The mock can inject every drawn fault, and only the seed and the request decide which faults are drawn.
    #[test]
    fn a_seed_and_a_request_are_a_schedule() {
        let mut all = 0;
        for seed in 0..20 {
            for on in [On::Watch, On::List, On::Get, On::Create, On::Update, On::Patch, On::Delete] {
                for number in 1..20 {
                    let one = Occasion { is_managers: seed % 2 == 0, ..occasion(on, "pods", number) };
                    let faults = drawn(seed, ALL, &one);
                    assert_eq!(faults, drawn(seed, ALL, &one));
                    for fault in &faults {
                        fault.check().unwrap();
                        assert!(fault.nth.is_some() && fault.at.is_none() && fault.on() == on, "{fault:?}");
                        assert!(fault.count_most().is_some(), "it would never be over: {fault:?}");
                    }
                    all += faults.len();
                }
            }
        }
        assert!(all > 5000, "{all}");
        let watch = |seed, resource, number| drawn(seed, ALL, &occasion(On::Watch, resource, number));
        assert_ne!(watch(1, "pods", 1), watch(2, "pods", 1));
        assert_ne!(watch(1, "pods", 1), watch(1, "secrets", 1));
        assert_ne!(watch(1, "pods", 1), watch(1, "pods", 2));
    }

    /// If requests of the manager cannot be distinguished, the suite's own requests and the watches that tests open by
    /// hand get no faults.
    #[test]
    fn without_a_known_manager_only_caches_are_touched() {
        for seed in 0..50 {
            for on in [On::Watch, On::List, On::Get, On::Create, On::Update, On::Patch, On::Delete] {
                let own = Occasion { is_of_a_cache: false, ..occasion(on, "pods", seed) };
                assert_eq!(drawn(seed, ALL, &own), [], "{on:?}");
            }
        }
    }

    /// No fault ends a watch for which `may_end` is false. A client that waits longer after each end would otherwise
    /// get no events.
    #[test]
    fn a_watch_that_may_not_end_does_not() {
        let ends = |fault: &Fault| matches!(fault.name, Name::WatchReset | Name::ErrorEvent | Name::HttpError);
        let count = |may_end| -> usize {
            let one = |seed| Occasion { may_end, ..occasion(On::Watch, "pods", seed) };
            (1..100).map(|seed| drawn(seed, ALL, &one(seed)).iter().filter(|fault| ends(fault)).count()).sum()
        };
        assert!(count(true) > 30);
        assert_eq!(count(false), 0);
    }

    /// With nearly every seed, some watch has a fault within its first two events, so a suite with few objects gets
    /// faults too.
    #[test]
    fn faults_begin_early() {
        const CHAOS: Drawn = Drawn { chaos: true, order: false, stale: None };
        let is_early = |fault: &Fault| fault.after_events.unwrap_or(0) <= 1;
        let early = |seed: &u64| {
            let first = |resource| drawn(*seed, CHAOS, &occasion(On::Watch, resource, 1)).iter().any(is_early);
            ["pods", "secrets", "configmaps", "deployments.apps", "jobs.batch"].into_iter().any(first)
        };
        assert!((0..50).filter(early).count() >= 45);
    }
}
