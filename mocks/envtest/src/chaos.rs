//! Faults that a correct suite survives. Pure: the same seed gives the same faults.
//!
//! Owns what is gentle. Where nobody knows the manager from the suite, only the watches of caches and the lists that begin them are touched: a
//! suite's own requests are never refused, and a watch that it opens by hand is left alone. Where the manager is known, its writes
//! conflict and its requests are refused as well.

use std::time::Duration;

use mock_faults::{Fault, Name, On};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use units::Span;

use super::session::Manager;

/// How long faults are drawn for; a suite that takes longer goes on without.
const LENGTH: Duration = Duration::from_mins(15);
/// One begins in each stretch of this length, on average.
const EVERY_MS: u64 = 700;
/// And at the beginning: a suite of a second has its share.
const EVERY_FIRST_MS: u64 = 120;
/// How long that is.
const FIRST: Duration = Duration::from_secs(8);
/// client-go waits before it lists again, twice as long each time, until nothing failed for two minutes: 0.8 to 1.6 s, then 1.6 to 3.2 s, and after
/// the sixth time half a minute. More ends of all watches than these would be a test of that alone.
const ENDS_MAX: usize = 2;
/// Within so long.
const ENDS_WITHIN: Duration = Duration::from_secs(130);
/// Watches of caches carry this; a watch that a test opens by hand to see one event does not, and takes what comes first.
const CACHE: &str = "allowWatchBookmarks=true";
/// Lists that begin an informer's cache carry one of these.
const REFLECTOR: [&str; 2] = ["resourceVersion=0", "sendInitialEvents=true"];

/// The faults of a seed, in order of time.
pub fn chaos(seed: u64, manager: &Manager) -> Vec<Fault> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut at = Duration::from_millis(random.random_range(0..EVERY_FIRST_MS));
    let (mut faults, mut ends) = (Vec::new(), Vec::new());
    while at < LENGTH {
        let fault =
            if manager.is_known() && random.random_bool(0.4) { harsh(&mut random) } else { gentle(&mut random) };
        ends.retain(|end| at.saturating_sub(*end) < ENDS_WITHIN);
        let is_end = matches!(fault.name, Name::WatchReset | Name::Watch410);
        if !is_end || ends.len() < ENDS_MAX {
            ends.extend(is_end.then_some(at));
            faults.push(Fault { at: Some(Span(at)), ..of_caches(fault, manager) });
        }
        let every_ms = if at < FIRST { EVERY_FIRST_MS } else { EVERY_MS };
        at += Duration::from_millis(random.random_range(every_ms / 4..every_ms * 7 / 4));
    }
    faults
}

/// A fault of watches, for those of caches alone where the manager is not known.
fn of_caches(fault: Fault, manager: &Manager) -> Fault {
    let is_of_all = !manager.is_known() && fault.on() == On::Watch && fault.query.is_none();
    Fault { query: if is_of_all { Some(CACHE.to_owned()) } else { fault.query }, ..fault }
}

/// What touches watches, and lists that begin a cache.
fn gentle(random: &mut ChaCha8Rng) -> Fault {
    let ms = |from: u64, to: u64, random: &mut ChaCha8Rng| Span::from_millis(random.random_range(from..to));
    match random.random_range(0..8) {
        0 => Fault::armed(Name::WatchReset),
        1 => Fault::armed(Name::Watch410),
        2 => Fault { lasts: Some(ms(200, 900, random)), ..Fault::armed(Name::SilentWatch) }.set("heals", true),
        3 => {
            let delay = ms(20, 300, random);
            Fault { lasts: Some(ms(300, 2000, random)), ..Fault::armed(Name::EventDelayed) }.set("delay", delay)
        }
        4 => {
            let query = REFLECTOR[random.random_range(0..REFLECTOR.len())];
            let fault =
                Fault { lasts: Some(ms(300, 1500, random)), on: Some(On::List), ..Fault::armed(Name::DelayAnswer) };
            Fault { query: Some(query.to_owned()), ..fault }.set("delay", ms(50, 400, random))
        }
        5 => Fault { lasts: Some(ms(100, 700, random)), on: Some(On::Watch), ..Fault::armed(Name::StaleView) },
        6 => Fault { lasts: Some(ms(500, 2000, random)), ..Fault::armed(Name::EventRepeated) }.set("events", 2),
        _ => {
            let query = Some(REFLECTOR[random.random_range(0..REFLECTOR.len())].to_owned());
            Fault { lasts: Some(ms(500, 2000, random)), on: Some(On::List), query, ..Fault::armed(Name::Unordered) }
        }
    }
}

/// What touches requests of a manager that is known.
fn harsh(random: &mut ChaCha8Rng) -> Fault {
    let lasts = Some(Span::from_millis(random.random_range(100..600)));
    let error = Fault { lasts, count: Some(random.random_range(1..4)), ..Fault::armed(Name::HttpError) };
    match random.random_range(0..5) {
        0 | 1 => {
            let on = if random.random_bool(0.5) { On::Update } else { On::Patch };
            Fault { on: Some(on), ..error }.set("status", 409)
        }
        2 => Fault { on: Some(On::Create), ..error }.set("status", 500),
        3 => Fault { on: Some(On::Get), ..error }.set("status", 429).set("retryAfter", Span::from_secs(1)),
        _ => {
            let delay = Span::from_millis(random.random_range(50..500));
            Fault { lasts, on: Some(On::Any), ..Fault::armed(Name::DelayAnswer) }.set("delay", delay)
        }
    }
}

/// Delivery across kinds in another order: each of these kinds lags by turns, for the whole suite.
pub fn disorder(seed: u64, manager: &Manager) -> Vec<Fault> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x0D0E);
    let mut at = Duration::ZERO;
    let mut faults = Vec::new();
    while at < LENGTH {
        let lasts = Duration::from_millis(random.random_range(30..250));
        let delay = Span::from_millis(random.random_range(5..120));
        // Each stream that opens or is open gets the delay with a chance of one half: kinds overtake each other, and a kind keeps its order.
        let fault = Fault {
            at: Some(Span(at)),
            lasts: Some(Span(lasts)),
            probability: Some(0.5),
            ..Fault::armed(Name::EventDelayed)
        };
        faults.push(of_caches(fault.set("delay", delay), manager));
        at += lasts + Duration::from_millis(random.random_range(5..60));
    }
    faults
}

/// Caches that stand up to `versions` versions behind, by turns: open watches hold their newest events, and lists and watches that begin
/// meanwhile show an older state.
pub fn lagging(seed: u64, versions: u64, manager: &Manager) -> Vec<Fault> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x57A1E);
    let mut at = Duration::from_millis(random.random_range(50..400));
    let mut faults = Vec::new();
    while at < LENGTH {
        let lasts = Duration::from_millis(random.random_range(50..400));
        let mut add = |fault: Fault| {
            let fault = Fault { at: Some(Span(at)), lasts: Some(Span(lasts)), ..fault };
            faults.push(of_caches(fault, manager));
        };
        for on in [On::Watch, On::List] {
            let query = (on == On::List).then(|| REFLECTOR[0].to_owned());
            let behind = random.random_range(0..=versions);
            add(Fault { on: Some(on), query, ..Fault::armed(Name::StaleView) }.set("behind", behind));
        }
        if versions > 0 {
            let held = random.random_range(1..=versions);
            add(Fault::armed(Name::EventDelayed).set("delay", Span(lasts)).set("events", held));
        }
        at += lasts + Duration::from_millis(random.random_range(100..800));
    }
    faults
}

#[cfg(test)]
mod tests {
    use mock_faults::Schedule;

    use super::*;

    fn known() -> Manager {
        Manager { agent: Some("manager".to_owned()), user: None }
    }

    /// Every drawn fault is one that the mock plays, and the seed alone decides which.
    #[test]
    fn a_seed_is_a_schedule() {
        for seed in 0..20 {
            for manager in [Manager::default(), known()] {
                let faults = chaos(seed, &manager);
                assert!(faults.len() > 800, "{}", faults.len());
                assert_eq!(faults, chaos(seed, &manager));
                Schedule::new(&faults).unwrap();
            }
            Schedule::new(&disorder(seed, &Manager::default())).unwrap();
            Schedule::new(&lagging(seed, 3, &Manager::default())).unwrap();
        }
        assert_ne!(chaos(1, &known()), chaos(2, &known()));
    }

    /// A client that waits longer each time is not kept away for half a minute.
    #[test]
    fn watches_end_twice_in_two_minutes_at_most() {
        let ends = |seed| {
            chaos(seed, &known()).into_iter().filter(|fault| matches!(fault.name, Name::WatchReset | Name::Watch410))
        };
        for seed in 0..20 {
            let at: Vec<Duration> = ends(seed).filter_map(|fault| fault.at.map(|at| at.0)).collect();
            assert!(at.len() >= 10, "{at:?}");
            assert!(at.windows(3).all(|three| three[2].saturating_sub(three[0]) >= ENDS_WITHIN), "{at:?}");
        }
    }

    /// A suite's own writes, reads and watches by hand are nobody's but its own.
    #[test]
    fn without_a_known_manager_only_caches_are_touched() {
        let nobody = Manager::default();
        let all = (0..20).flat_map(|seed| [chaos(seed, &nobody), disorder(seed, &nobody), lagging(seed, 2, &nobody)]);
        for fault in all.flatten() {
            let query = fault.query.as_deref().unwrap_or_default();
            let is_of_a_cache = match fault.on() {
                On::Watch => query == CACHE,
                On::List => REFLECTOR.contains(&query),
                _ => false,
            };
            assert!(is_of_a_cache, "{fault:?}");
        }
        assert!(chaos(1, &known()).iter().any(|fault| fault.on() == On::Watch && fault.query.is_none()));
    }
}
