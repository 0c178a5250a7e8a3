//! Tests of the guarantees of a draw, over many seeds, lengths and rates.

use std::collections::BTreeSet;

use super::*;

fn named(names: &[Name]) -> Vec<Candidate> {
    names.iter().map(|name| Candidate(Fault::armed(*name))).collect()
}

fn window(from_s: u64, to_s: u64) -> Window<'static> {
    let (from, to) = (Duration::from_secs(from_s), Duration::from_secs(to_s));
    Window { from, to, resource: Some("packages"), planned: &[] }
}

fn end(fault: &Fault) -> Duration {
    fault.at.unwrap().0 + active(fault).unwrap()
}

/// For any seed, rate and time limits, drawn faults are within the time limits, in order, and do not overlap. The same
/// seed gives the same faults.
#[test]
fn a_draw_is_within_bounds_apart_and_repeatable() {
    // The time that Pods and programs take is longer than the shortest stretch.
    let quick: Vec<Name> = Name::ALL.iter().copied().filter(|name| !name.row().family.takes_its_time()).collect();
    for seed in 0..300 {
        let every = Span::from_secs(10 + seed % 51);
        let random = Random { every, from: named(&quick) };
        let window = window(seed % 90, seed % 90 + 600 + 37 * seed);
        let drawn = random.draw(seed, &window).unwrap();
        assert_eq!(drawn, random.draw(seed, &window).unwrap());
        assert_ne!(drawn, random.draw(seed + 1, &window).unwrap());
        assert_eq!(drawn.len() as u64, window.to.saturating_sub(window.from).as_secs() / every.0.as_secs());
        assert!(drawn[0].at.unwrap().0 >= window.from && end(drawn.last().unwrap()) <= window.to, "{seed}");
        for pair in drawn.windows(2) {
            assert!(pair[1].at.unwrap().0 >= end(&pair[0]) + BETWEEN, "{seed}: {pair:?}");
        }
        super::super::check_all(&drawn).unwrap();
    }
}

/// Faults begin at whole seconds, unless only few whole seconds are possible.
#[test]
fn drawn_times_are_whole_seconds_where_there_are_enough() {
    let draw =
        |every| Random { every: Span::from_secs(every), from: named(&[Name::WatchReset]) }.draw(3, &window(60, 6060));
    let whole = |faults: Vec<Fault>| faults.iter().filter(|fault| fault.at.unwrap().0.subsec_nanos() == 0).count();
    let of_second: BTreeSet<u64> = draw(60).unwrap().iter().map(|fault| fault.at.unwrap().0.as_secs() % 60).collect();
    assert!(of_second.len() > 30, "they strike at any second of their minute: {of_second:?}");
    assert_eq!(whole(draw(60).unwrap()), 100);
    assert!(whole(draw(5).unwrap()) < 100, "of 1,200");
}

/// Every fault of the catalogue can be drawn by its name alone; every fault is drawn once before any is drawn again.
#[test]
fn every_name_can_be_drawn_and_none_is_forgotten() {
    let random = Random { every: Span::from_secs(60), from: named(Name::ALL) };
    let round = Name::ALL.len();
    let drawn = random.draw(7, &window(60, 60 + 60 * 2 * round as u64)).unwrap();
    for half in drawn.chunks(round) {
        assert_eq!(half.iter().map(|fault| fault.name).collect::<BTreeSet<_>>().len(), round);
    }
    let reset = drawn.iter().find(|fault| fault.name == Name::WatchReset).unwrap();
    assert_eq!((reset.lasting(), reset.resource.as_deref()), (Lasting::Moment, Some("packages")));
    let hang = drawn.iter().find(|fault| fault.name == Name::RegistryHang).unwrap();
    assert_eq!((hang.lasting(), hang.resource.as_deref()), (Lasting::For(Span::from_secs(8)), None));
}

/// A schedule of a hundred hours with one fault a minute is accepted; ten times as many faults are refused.
#[test]
fn a_draw_is_bounded() {
    let hundred_hours = window(60, 360_060);
    let drawn = Random { every: Span::from_secs(60), from: named(&[Name::WatchReset]) }.draw(1, &hundred_hours);
    assert_eq!(drawn.unwrap().len(), 6000);
    let error = Random { every: Span::from_secs(6), from: named(&[Name::WatchReset]) }.draw(1, &hundred_hours);
    assert_eq!(
        error.unwrap_err().to_string(),
        "`random.every: 6s` draws 60000 faults, at most 10000 are played: write at least 36s"
    );
}

/// While a planned fault is active, no drawn fault is active. A planned fault that lasts to the end overlaps all drawn
/// faults.
#[test]
fn a_draw_keeps_clear_of_what_is_planned() {
    let random = Random { every: Span::from_secs(10), from: named(&[Name::WatchReset]) };
    let planned = [
        Fault { lasts: Some(Span::from_secs(30)), ..Fault::new(Name::HttpError, Span::from_secs(100)) },
        Fault::new(Name::NoBookmarks, Span::from_secs(1)),
    ];
    let drawn = random.draw(1, &Window { planned: &planned, ..window(60, 260) }).unwrap();
    assert!((15..=18).contains(&drawn.len()), "{}", drawn.len());
    assert!(
        drawn
            .iter()
            .all(|fault| end(fault) + BETWEEN <= planned[0].at.unwrap().0 || fault.at.unwrap().0 >= end(&planned[0]))
    );
}

#[test]
fn what_cannot_be_drawn_is_refused_with_a_remedy() {
    let error = |every, from: Vec<Candidate>, window: &Window<'_>| {
        Random { every: Span::from_secs(every), from }.draw(1, window).unwrap_err().to_string()
    };
    let long = window(60, 600);
    assert!(error(60, vec![], &long).starts_with("`random.from` is empty: name what"));
    let timed = vec![Candidate(Fault::new(Name::WatchReset, Span::from_secs(5)))];
    assert!(error(60, timed, &long).contains("entry 1 (`watch-reset`) has `at`, which the draw decides"));
    assert!(
        error(5, named(&[Name::SilentWatch]), &long)
            .contains("`silent-watch` takes 10s with its canaries: write at least 10s")
    );
    let no_room = "no drawn fault fits: the warm-up is over at 1m, from 90s on there is no time left to heal, and one strikes every 1m: make \
        `steady` longer by 30s";
    assert_eq!(error(60, named(&[Name::WatchReset]), &window(60, 90)), no_room);
    assert!(
        error(60, named(&[Name::WatchReset]), &window(60, 30)).ends_with("longer by 90s"),
        "it ends before it begins"
    );
    let unsound = vec![Candidate(Fault { count: Some(0), ..Fault::armed(Name::WatchReset) })];
    assert!(error(60, unsound, &long).contains("entry 1 (`watch-reset`): `count` is 0"));
}

#[test]
fn an_entry_is_a_name_or_a_fault() {
    let read = |text: &str| serde_json::from_str::<Random>(text).map_err(|error| error.to_string());
    let random = read(r#"{"every": "60s", "from": ["watch-reset", {"name": "silent-watch", "for": "9s"}]}"#).unwrap();
    assert_eq!(random.from[0], Candidate(Fault::armed(Name::WatchReset)));
    assert_eq!(random.from[1].0.lasts, Some(Span::from_secs(9)));
    assert!(read(r#"{"every": "60s", "from": ["watch-rest"]}"#).unwrap_err().contains("unknown variant `watch-rest`"));
}
