//! Tests of the ledger with generated histories of which every outcome is known.
//!
//! Each script of the table is the short history of one object, together with the outcomes that the rules require. A
//! history mixes many scripts; commits and observations arrive in any order that the grace time allows. This file is
//! longer than 500 lines because the scripts are one table.

use proptest::prelude::*;

use super::*;

mod backlogs;
mod withheld;

const D: u64 = 1000;
const GRACE_MS: u64 = 500;
const RESOURCE: &str = "packages.longhaul.dev";

/// A commit, an observation or another event that reaches the ledger at `arrives_ms`.
#[derive(Debug, Clone)]
struct Step {
    arrives_ms: u64,
    what: Event,
}

#[derive(Debug, Clone)]
enum Event {
    Commit { t_ms: u64, name: String, uid: String, rv: u64, change: Change },
    Observe { t_ms: u64, uid: String, rv: String, change: Change },
    Gap { after: u64, through: u64 },
}

/// Collects the events of a test and the expected outcomes.
#[derive(Debug, Default)]
struct History {
    steps: Vec<Step>,
    planted: EventCounts,
}

use Change::{Added as A, Deleted as X, Modified as M};
use Outcome::{
    Coalesced, Duplicate, Ghost, IdentitySwap, Late, LateGhost, Missed, Observed, Phantom, Regressed, Resurrected,
    Unobservable,
};

/// The history of one object as a line of text, and its expected outcomes. A capital letter is a commit and a small
/// letter an observation: `M1@500` changes the object at 500 ms to its version 1, and `m1@510` reports that version.
/// `m?` reports a revision that was never committed, `a!` an object that never existed. `-0..3@800` is a gap that hides
/// the versions after version 0 up to version 3. `>2@710` goes on with the next object of the same name. The expected
/// outcome `u@0` means that version 0 was never observed.
type Script = (&'static str, &'static str, &'static [(Outcome, u64)]);

const SCRIPTS: [Script; 24] = [
    ("healthy", "A0@0 a0@10 M1@500 m1@1500 X2@3000 x2@3020", &[(Observed, 3)]),
    ("coalesced", "A0@0 M1@10 a1@30", &[(Coalesced, 1), (Observed, 1)]),
    ("coalesced within the deadline of the next version", "A0@0 M1@900 m1@1800", &[(Coalesced, 1), (Observed, 1)]),
    ("late", "A0@0 a0@1001", &[(Late, 1)]),
    ("just in time", "A0@0 a0@1000", &[(Observed, 1)]),
    ("a later version comes only after this one is overdue", "A0@0 M1@5000 m1@5010", &[(Late, 1), (Observed, 1)]),
    (
        "a blackout is not excused by steady updates",
        "A0@0 M1@800 M2@1600 M3@2400 m3@2500",
        &[(Late, 1), (Coalesced, 2), (Observed, 1)],
    ),
    ("missed", "A0@0 a0@1 M1@700", &[(Observed, 1), (Missed, 1)]),
    ("ghost", "A0@0 a0@1 X1@700", &[(Observed, 1), (Ghost, 1)]),
    ("late ghost", "A0@0 a0@1 X1@700 x0@2000", &[(Observed, 1), (LateGhost, 1)]),
    (
        "a relist reports the deletion with the last revision it knew",
        "A0@0 a0@1 M1@700 X2@710 x0@900",
        &[(Observed, 2), (Coalesced, 1)],
    ),
    ("duplicate", "A0@0 a0@1 m0@900 X1@2000 x1@2001 x1@2002", &[(Observed, 2), (Duplicate, 2)]),
    ("regressed", "A0@0 a0@1 M1@700 m1@701 m0@900", &[(Observed, 2), (Regressed, 1)]),
    (
        "regressed to a version that had been coalesced",
        "A0@0 M1@1 m1@2 a0@3",
        &[(Observed, 1), (Coalesced, 1), (Regressed, 1)],
    ),
    ("phantom version", "A0@0 a0@1 m?@50 M1@3000 m1@3001", &[(Observed, 2), (Phantom, 1)]),
    ("phantom object", "a!@50", &[(Phantom, 1)]),
    ("reported as deleted while alive", "A0@0 a0@1 x0@900 X1@4000 x1@4001", &[(Observed, 2), (Phantom, 1)]),
    (
        "the revision of the deletion reported as an update",
        "A0@0 a0@1 X1@700 m1@720",
        &[(Observed, 1), (Ghost, 1), (Phantom, 1)],
    ),
    ("resurrected", "A0@0 a0@1 X1@700 x1@701 a0@900", &[(Observed, 2), (Resurrected, 1)]),
    ("identity swap", "A0@0 a0@1 X1@700 >2@710 A0@0 m0@20", &[(Observed, 2), (IdentitySwap, 1)]),
    (
        "a new object of the same name reported as new leaves a ghost",
        "A0@0 a0@1 X1@700 >2@710 A0@0 a0@20",
        &[(Observed, 2), (Ghost, 1)],
    ),
    ("created and deleted inside a gap", "A1@100 M2@200 X3@300 -0..3@800", &[(Unobservable, 3)]),
    ("created before the gap: not excused", "A1@100 X3@300 -1..3@800 u@0", &[(Missed, 1), (Ghost, 1)]),
    (
        "observed although inside a gap: only the deletion is lost, and not excused",
        "A1@100 a1@120 X3@300 -0..3@800",
        &[(Observed, 1), (Ghost, 1)],
    ),
];

/// Adds the history of one object to a history of several. Revisions are `base + n`; the number of a commit in the
/// order of commits is its revision.
fn live(
    (_, script, outcomes): Script,
    mut uid: String,
    name: &str,
    mut base: u64,
    mut start_ms: u64,
    history: &mut History,
) {
    for word in script.split(' ') {
        let (what, at_ms) = word.split_once('@').unwrap();
        let t_ms = start_ms + at_ms.parse::<u64>().unwrap();
        let (kind, version) = what.split_at(1);
        let revision = || base + version.parse::<u64>().unwrap();
        let change = match kind {
            "A" | "a" => A,
            "X" | "x" => X,
            _ => M,
        };
        let what = match kind {
            "u" => {
                history.planted.unseen += 1;
                continue;
            }
            ">" => {
                (base, start_ms, uid) = (revision(), t_ms, format!("{uid}-next"));
                continue;
            }
            "-" => {
                let (after, through) = version.split_once("..").unwrap();
                let of = |version: &str| base + version.parse::<u64>().unwrap();
                Event::Gap { after: of(after), through: of(through) }
            }
            "A" | "M" | "X" => {
                history.planted.commits += 1;
                Event::Commit { t_ms, name: name.to_owned(), uid: uid.clone(), rv: revision(), change }
            }
            _ => {
                history.planted.observations += 1;
                let (uid, rv) = match version {
                    "?" => (uid.clone(), "not-a-revision".to_owned()),
                    "!" => (format!("{uid}-no-such"), "1".to_owned()),
                    _ => (uid.clone(), revision().to_string()),
                };
                Event::Observe { t_ms, uid, rv, change }
            }
        };
        history.steps.push(Step { arrives_ms: t_ms, what });
    }
    for (outcome, times) in outcomes {
        *outcome.of_mut(&mut history.planted) += times;
    }
}

fn config() -> Config {
    Config { deadline_ms: D, grace_ms: GRACE_MS, skew_ms: 0, ..Config::default() }
}

/// A history of scripts. Each entry is a script's index and the time when the script starts.
fn history(lives: &[(usize, u64)]) -> History {
    let mut history = History::default();
    for (index, (script, start_ms)) in lives.iter().enumerate() {
        let number = index as u64;
        let (uid, name) = (format!("uid-{number}"), format!("name-{number}"));
        live(SCRIPTS[*script], uid, &name, 1000 + number * 10, *start_ms, &mut history);
    }
    history
}

/// The ledger's results at the end of a history, sorted so that two runs can be compared.
#[derive(Debug, PartialEq)]
struct Said {
    counts: EventCounts,
    anomalies: Vec<(Outcome, String, String)>,
    lag: Histogram,
    heal: Histogram,
    pending: u64,
}

/// Feeds the events to a ledger in order of arrival, and advances its time every 100 ms.
fn run(mut steps: Vec<Step>, config: Config) -> Said {
    steps.sort_by_key(|step| step.arrives_ms);
    let mut ledger = Ledger::new(config);
    let mut anomalies = Vec::new();
    let mut now_ms = 0;
    for step in &steps {
        while now_ms + 100 <= step.arrives_ms {
            now_ms += 100;
            anomalies.extend(ledger.advance(now_ms));
        }
        match &step.what {
            Event::Commit { t_ms, name, uid, rv, change } => {
                let commit = Commit { name: name.as_str().into(), ..commit(uid, &rv.to_string(), *rv, *change) };
                ledger.commit(*t_ms, &commit);
            }
            Event::Observe { t_ms, uid, rv, change } => ledger.observe(&seen(*t_ms, uid, rv, *change)),
            Event::Gap { after, through } => {
                ledger.gap(RESOURCE, Order::of_numbered(*after), Order::of_numbered(*through));
            }
        }
    }
    anomalies.extend(ledger.finish(now_ms + 60_000));
    let mut anomalies: Vec<_> = anomalies.into_iter().map(|row| (row.outcome, row.uid, row.revision)).collect();
    anomalies.sort();
    let (counts, pending) = (ledger.counts(), ledger.pending());
    assert_eq!((ledger.contradictions(), ledger.overdue()), (0, 0));
    Said { counts, anomalies, lag: ledger.take_lag(), heal: ledger.take_heal(), pending }
}

fn seen(t_ms: u64, uid: &str, revision: &str, change: Change) -> Observation {
    Observation { t_ms, uid: uid.into(), revision: revision.into(), change }
}

fn commit(uid: &str, revision: &str, order: u64, change: Change) -> Commit {
    Commit {
        order: Order::of_numbered(order),
        resource: RESOURCE.into(),
        namespace: "default".into(),
        name: uid.into(),
        uid: uid.into(),
        revision: revision.into(),
        change,
    }
}

/// The number of commits with an outcome; each commit has exactly one.
fn settled(counts: &EventCounts) -> u64 {
    [Observed, Coalesced, Late, Missed, Ghost, LateGhost, IdentitySwap, Unobservable]
        .iter()
        .map(|outcome| outcome.of(counts))
        .sum()
}

#[test]
fn each_script_alone_has_its_planted_outcomes() {
    for (index, (name, ..)) in SCRIPTS.iter().enumerate() {
        let history = history(&[(index, 50)]);
        let planted = history.planted;
        let said = run(history.steps, config());
        assert_eq!(said.counts, planted, "{name}");
        assert_eq!(said.counts.commits, settled(&said.counts), "{name}");
        let rows: u64 = Outcome::ALL.iter().filter(|o| o.is_anomaly()).map(|o| o.of(&planted)).sum();
        assert_eq!(said.anomalies.len() as u64, rows, "{name}: {:?}", said.anomalies);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// In any mixture of histories the ledger finds exactly the expected outcomes.
    #[test]
    fn mixtures_have_their_planted_outcomes(lives in prop::collection::vec((0..SCRIPTS.len(), 0u64..20_000), 1..120)) {
        let history = history(&lives);
        let planted = history.planted;
        let said = run(history.steps, config());
        prop_assert_eq!(said.counts, planted);
        prop_assert_eq!(said.counts.commits, settled(&said.counts));
        prop_assert_eq!(said.pending, 0);
    }

    /// The order in which commits and observations arrive does not matter if commits of an object keep their order,
    /// observations of an object keep theirs, and no observation is ahead of its commit by more than the grace time.
    #[test]
    fn order_of_arrival_does_not_matter(
        lives in prop::collection::vec((0..SCRIPTS.len(), 0u64..5000), 1..40),
        commit_delay_ms in 0..GRACE_MS,
        observation_delay_ms in 0..GRACE_MS,
    ) {
        let history = history(&lives);
        let straight = run(history.steps.clone(), config());
        let mut delayed = history.steps;
        for step in &mut delayed {
            step.arrives_ms += match step.what {
                Event::Commit { .. } => commit_delay_ms,
                Event::Observe { .. } | Event::Gap { .. } => observation_delay_ms,
            };
        }
        let delayed = run(delayed, config());
        prop_assert_eq!(delayed, straight);
    }
}

/// The ledger's memory is bounded by live objects, versions younger than the deadline, and rings, even if the subject
/// reports nothing.
#[test]
fn memory_does_not_grow_with_the_run() {
    for blind in [false, true] {
        let bounds = Config {
            tombstones: 50,
            forgotten: 200,
            overdue_per_object: 4,
            overdue_deletions: 50,
            held: 50,
            ..config()
        };
        let mut ledger = Ledger::new(bounds);
        let mut largest = [0; 2];
        for n in 0..40_000u64 {
            let t_ms = n * 10;
            // 20 objects live at a time, each updated 10 times; new names for ever.
            let (object, change) = match n % 12 {
                0 => (n / 12, A),
                11 => ((n / 12).saturating_sub(20), X),
                k => ((n / 12).saturating_sub(k), M),
            };
            let (uid, rv) = (format!("uid-{object}"), n.to_string());
            ledger.commit(t_ms, &commit(&uid, &rv, n, change));
            if blind {
                ledger.observe(&seen(t_ms, "nobody", &rv, M));
            } else {
                ledger.observe(&seen(t_ms + 5, &uid, &rv, change));
            }
            ledger.advance(t_ms).for_each(drop);
            let half = usize::from(n > 20_000);
            largest[half] = largest[half].max(ledger.footprint());
        }
        assert!(
            largest[1] <= largest[0] + 20,
            "blind {blind}: the footprint grew from {} to {}",
            largest[0],
            largest[1]
        );
        assert!(largest[1] < 4000, "blind {blind}: {}", largest[1]);
        ledger.finish(1_000_000).for_each(drop);
        let counts = ledger.counts();
        assert_eq!(counts.commits, settled(&counts), "blind {blind}: every commit has one outcome: {counts:?}");
    }
}

#[test]
fn lag_of_commits_during_a_fault_is_kept_apart() {
    let mut ledger = Ledger::new(config());
    for (n, faulted) in [(1u64, false), (2, true), (3, false)] {
        let (uid, rv) = (format!("uid-{n}"), n.to_string());
        ledger.faulted(faulted);
        let t_ms = n * 100;
        ledger.commit(t_ms, &commit(&uid, &rv, n, A));
        ledger.faulted(false);
        ledger.observe(&seen(t_ms + n, &uid, &rv, A));
        assert_eq!(ledger.resolved(&uid.into(), &rv.into()), Some(n));
    }
    let lag = ledger.take_lag();
    assert_eq!((lag.len(), lag.min(), lag.max() / 1000), (2, 1000, 3));
    assert_eq!(ledger.take_lag_faulted().len(), 1);
    assert_eq!(ledger.take_lag().len(), 0);
}

/// Before the run's clock starts, all times are 0.
#[test]
fn what_was_seen_before_the_clock_ran_has_no_lag() {
    let mut ledger = Ledger::new(config());
    for (n, seen_ms) in [(1u64, 0), (2, 7)] {
        let (uid, rv) = (format!("uid-{n}"), n.to_string());
        ledger.commit(0, &commit(&uid, &rv, n, A));
        ledger.observe(&seen(seen_ms, &uid, &rv, A));
    }
    let lag = ledger.take_lag();
    assert_eq!((lag.len(), lag.max() / 1000, ledger.counts().observed), (1, 7, 2));
}

#[test]
fn forgotten_versions_are_regressed_and_resurrected_not_phantom() {
    let mut ledger = Ledger::new(Config { settled_per_object: 2, tombstones: 0, ..config() });
    let commit = |n: u64, change| commit("uid", &format!("r{n}"), n, change);
    for (n, change) in [(0, A), (1, M), (2, M), (3, M), (4, M)] {
        ledger.commit(n * 10, &commit(n, change));
        ledger.observe(&seen(n * 10, "uid", &format!("r{n}"), change));
    }
    ledger.observe(&seen(60, "uid", "r0", M));
    assert_eq!(ledger.counts().regressed, 1);
    ledger.commit(50, &commit(5, X));
    ledger.observe(&seen(70, "uid", "r5", X));
    assert_eq!((ledger.live_objects(), ledger.counts().observed), (0, 6));
    ledger.observe(&seen(80, "uid", "r0", M));
    ledger.observe(&seen(81, "uid", "r3", X));
    ledger.finish(5000).for_each(drop);
    let counts = ledger.counts();
    assert_eq!((counts.resurrected, counts.duplicate, counts.phantom), (1, 1, 0));
}

#[test]
fn commits_that_contradict_are_counted_and_left_out() {
    let mut ledger = Ledger::new(config());
    let mut commit = |order, revision, change| {
        ledger.commit(order, &commit("uid", revision, order, change));
        (ledger.counts().commits, ledger.contradictions())
    };
    assert_eq!(commit(5, "a", A), (1, 0));
    assert_eq!(commit(5, "a", A), (1, 0), "a repeated commit is ignored");
    assert_eq!(commit(4, "b", M), (1, 1), "out of order");
    assert_eq!(commit(6, "c", X), (2, 1));
    assert_eq!(commit(7, "d", M), (2, 2), "after the deletion");
}

#[test]
fn a_witness_without_deletions_makes_no_ghosts() {
    let mut history = history(&[(7, 0), (8, 0)]);
    history.planted.ghost -= 1;
    history.planted.unobservable += 1;
    let said = run(history.steps, Config { deletions_observable: false, ..config() });
    assert_eq!(said.counts, history.planted);
}

/// If the witness cannot report a deletion, only versions that were overdue at the deletion count against the subject.
#[test]
fn what_was_gone_before_it_could_be_told_is_undecided() {
    let mut ledger = Ledger::new(config());
    ledger.commit(0, &commit("slow", "r1", 1, A));
    ledger.commit(2000, &commit("quick", "r2", 2, A));
    ledger.commit_untold(2100, &commit("slow", "r3", 3, X));
    ledger.commit_untold(2200, &commit("quick", "r4", 4, X));
    ledger.finish(9000).for_each(drop);
    let counts = ledger.counts();
    assert_eq!((counts.missed, counts.unseen, counts.unobservable, counts.ghost), (1, 1, 3, 0));
    assert_eq!(counts.commits, settled(&counts));
}

/// An object counts as unseen only if none of its versions was observed.
#[test]
fn who_saw_one_version_saw_the_object() {
    let mut ledger = Ledger::new(config());
    for (uid, order) in [("never", 1), ("once", 3)] {
        ledger.commit(0, &commit(uid, "r1", order, A));
        ledger.commit(0, &commit(uid, "r2", order + 1, M));
    }
    ledger.observe(&seen(1, "once", "r1", A));
    ledger.finish(9000).for_each(drop);
    assert_eq!((ledger.counts().missed, ledger.counts().unseen), (3, 1));
}

/// Probes ask the ledger whether all versions up to a commit are settled, and how long that took. A probe knows the
/// version, but only a mock without rewinds derives the order of commits from the version.
#[test]
fn probes_see_when_everything_is_settled() {
    let mut ledger = Ledger::new(config());
    let (uid, revision) = ("uid".into(), "r7".into());
    ledger.commit(100, &commit("uid", "r7", 7, A));
    assert!(ledger.settled_through(Order::of_numbered(6)));
    assert!(!ledger.settled_through(Order::of_numbered(7)));
    assert_eq!((ledger.resolved(&uid, &revision), ledger.pending(), ledger.overdue()), (None, 1, 0));
    ledger.advance(1200).for_each(drop);
    assert_eq!(ledger.overdue(), 1);
    ledger.observe(&seen(1600, "uid", "r7", A));
    assert_eq!(
        (ledger.resolved(&uid, &revision), ledger.settled_through(Order::of_numbered(7)), ledger.overdue()),
        (Some(1500), true, 0)
    );
    assert_eq!(ledger.take_heal().max() / 1000, 1500);
}

/// Before the run's clock starts, every time is zero, and the grace time of an observation with time zero must not end
/// at once.
#[test]
fn an_observation_at_time_zero_has_its_grace_too() {
    let mut ledger = Ledger::new(config());
    ledger.observe(&seen(0, "a", "7", Change::Added));
    assert_eq!(ledger.advance(0).count(), 0);
    ledger.commit(0, &commit("a", "7", 7, Change::Added));
    assert_eq!(ledger.finish(10).count(), 0);
    assert_eq!((ledger.counts().observed, ledger.counts().phantom), (1, 0));
}

/// A subject works until it is stopped. Writes of the subject while no other client writes count only if there was time
/// to observe them.
#[test]
fn what_the_subject_wrote_last_stays_pending() {
    let ended = |quiet_ms, heard_ms| {
        let mut ledger = Ledger::new(config());
        ledger.commit(10, &commit("a", "7", 7, Change::Added));
        ledger.observe(&seen(12, "a", "7", Change::Added));
        ledger.commit(20_000, &commit("a", "8", 8, Change::Modified));
        ledger.commit(20_001, &commit("b", "9", 9, Change::Added));
        ledger.commit(20_002, &commit("a", "10", 10, Change::Deleted));
        ledger.advance(20_010).for_each(drop);
        let rows: Vec<_> = ledger.finish_quiet(30_000, quiet_ms, heard_ms).map(|row| row.revision).collect();
        (ledger.counts().missed, ledger.counts().ghost, ledger.pending(), rows.len())
    };
    // Load was still on, or there was time enough.
    assert_eq!(ended(u64::MAX, 20_005), (2, 1, 0, 3));
    assert_eq!(ended(15_000, 20_003 + D), (2, 1, 0, 3));
    // Nobody else wrote, and the witness was not read long enough.
    assert_eq!(ended(15_000, 20_005), (0, 0, 3, 0));
    // Some of them were early enough; the deletion of the same object was not.
    assert_eq!(ended(15_000, 20_002 + D), (2, 0, 1, 2));
    assert_eq!(ended(20_001, 20_005), (1, 0, 2, 1));
}

/// After a restore of the control plane the older version has to be observed again, and undone versions need no
/// observation. A revision that is used a second time is a new version.
#[test]
fn a_restored_version_is_owed_again_and_an_undone_one_is_not() {
    let commit = |revision, order, change| commit("u", revision, order, change);
    let see = |revision, t_ms| seen(t_ms, "u", revision, Change::Modified);
    let history = |seen: &[(&'static str, u64)]| {
        let mut ledger = Ledger::new(Config { deadline_ms: D, ..Config::default() });
        ledger.commit(10, &commit("2", 1, Change::Added));
        ledger.observe(&see("2", 15));
        ledger.commit(20, &commit("3", 2, Change::Modified));
        ledger.observe(&see("3", 25));
        ledger.commit(30, &commit("4", 3, Change::Modified));
        ledger.restore(40, &commit("2", 4, Change::Modified));
        ledger.commit(50, &commit("3", 5, Change::Modified));
        for (rv, t_ms) in seen {
            ledger.observe(&see(rv, *t_ms));
        }
        ledger.finish(100_000).for_each(drop);
        assert_eq!((ledger.contradictions(), ledger.counts().commits), (0, 5));
        ledger.counts()
    };
    let good = history(&[("2", 45), ("3", 55)]);
    assert_eq!((good.observed, good.coalesced, good.missed, good.regressed, good.duplicate), (4, 1, 0, 0, 0));
    let blind = history(&[]);
    assert_eq!((blind.missed, blind.coalesced), (2, 1), "both the restored version and the one after it");
    let crossing = history(&[("4", 45), ("2", 46), ("3", 55)]);
    assert_eq!(
        crossing,
        EventCounts { observations: 5, ..good },
        "what was under way is no phantom, and proves nothing"
    );
    let clings = history(&[("4", 45)]);
    assert_eq!((clings.missed, clings.phantom), (2, 0));
    let repeats = history(&[("4", 45), ("4", 46), ("3", 55)]);
    assert_eq!(repeats.phantom, 1, "a second time it was never committed");
}

/// The last report of each object is the subject's view, even if the version is older than that of an earlier report.
#[test]
fn what_was_told_last_is_what_the_subject_believes() {
    let mut ledger = Ledger::new(config());
    for (uid, revision, order, change) in [
        ("stays", "1", 1, Change::Added),
        ("goes", "2", 2, Change::Added),
        ("back", "3", 3, Change::Added),
        ("silent", "4", 4, Change::Added),
        ("back", "5", 5, Change::Modified),
        ("goes", "6", 6, Change::Deleted),
        ("ghost", "7", 7, Change::Added),
        ("ghost", "8", 8, Change::Deleted),
        ("risen", "9", 9, Change::Added),
        ("risen", "10", 10, Change::Deleted),
    ] {
        ledger.commit(order, &commit(uid, revision, order, change));
    }
    for (uid, revision, change) in [
        ("stays", "1", Change::Added),
        ("goes", "2", Change::Added),
        ("goes", "6", Change::Deleted),
        ("back", "3", Change::Added),
        ("back", "5", Change::Modified),
        ("back", "3", Change::Modified),
        ("ghost", "7", Change::Added),
        ("risen", "9", Change::Added),
        ("risen", "10", Change::Deleted),
        ("risen", "9", Change::Modified),
    ] {
        ledger.observe(&seen(20, uid, revision, change));
    }
    let told = ledger.believed();
    let told: Vec<(&str, Option<&str>)> =
        told.iter().map(|one| (one.uid.as_str(), one.revision.as_ref().map(Revision::as_str))).collect();
    assert_eq!(told, [("stays", Some("1")), ("back", Some("3")), ("ghost", Some("7")), ("risen", Some("9"))]);
}
