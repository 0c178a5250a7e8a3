//! The order of trials: every disturbance at every point once, then pairs, then other combinations.
//!
//! Owns the seed and the guidance: trials that brought a new course are extended first. The same seed and the same
//! answers give the same trials. Does no I/O.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::disturb::{Disturbance, Fits, Kind};
use super::points::Point;
use super::watching::go_together;

/// Lengths of disturbances in the random part, in milliseconds.
const LENGTHS_MS: [u64; 6] = [50, 150, 400, 1000, 2000, 4000];
/// Maximum number of disturbances of one trial.
pub(crate) const TOGETHER_MAX: usize = 3;
/// Maximum number of trials that wait to be extended.
const PARENTS_MAX: usize = 64;
/// Maximum number of remembered trials; after so many, a combination may come again.
const PLAYED_MAX: usize = 50_000;
/// Number of times that a random trial is drawn again if it was played before.
const REDRAWS: usize = 32;

/// The parts of a hunt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Single,
    Pair,
    Other,
}

/// The disturbances of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) stage: Stage,
    pub(crate) disturbances: Vec<Disturbance>,
}

/// The search.
#[derive(Debug)]
pub(crate) struct Search {
    random: ChaCha8Rng,
    singles: VecDeque<Disturbance>,
    /// All single disturbances, from which combinations are made.
    all: Vec<Disturbance>,
    /// Highest occurrence of the point of each entry in `all`.
    occurrences: Vec<u64>,
    /// Trials with a new course, newest first.
    parents: VecDeque<Vec<Disturbance>>,
    played: BTreeSet<Vec<Disturbance>>,
    pairs: u64,
}

impl Search {
    pub(crate) fn new(seed: u64, points: &[Point], watched: &[String], fits: &Fits) -> Self {
        Self::with(seed, points, watched, fits, Vec::new())
    }

    /// Like [`Search::new`], with further disturbances that need no point.
    pub(crate) fn with(seed: u64, points: &[Point], watched: &[String], fits: &Fits, more: Vec<Disturbance>) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut all, mut occurrences) = (Vec::new(), Vec::new());
        for point in points {
            for kind in Kind::fitting(&point.signature, watched, fits) {
                let lasts_ms = if kind.is_hold() { fits.hold_ms } else { kind.usual_ms() };
                let (occurrence, most) = match kind {
                    _ if kind.is_at_last() => (point.last, 1),
                    // An hour means most to a subject that has all its objects.
                    Kind::Time => (point.occurrences, point.occurrences),
                    _ => (1, point.occurrences),
                };
                all.push(Disturbance { kind, point: point.signature.clone(), occurrence, lasts_ms });
                occurrences.push(most);
            }
        }
        occurrences.extend(more.iter().map(|_| 1));
        all.extend(more);
        // Shuffled, so that an early end has seen some of each disturbance and each point.
        let mut singles = all.clone();
        singles.shuffle(&mut random);
        // Of one kind of disturbance, creations come first: most bugs of this family are about what was made.
        singles.sort_by_key(|one| one.point.verb != "create");
        let singles = in_turn(singles);
        let (parents, played) = (VecDeque::new(), BTreeSet::new());
        Self { random, singles, all, occurrences, parents, played, pairs: 0 }
    }

    /// Number of single disturbances.
    pub(crate) fn singles(&self) -> usize {
        self.all.len()
    }

    /// Leaves out a kind of disturbance from now on. Returns the number of single disturbances that were left.
    pub(crate) fn leave_out(&mut self, name: &str) -> usize {
        let before = self.singles.len();
        self.singles.retain(|one| one.kind.name() != name);
        let kept = self.all.drain(..).zip(self.occurrences.drain(..)).filter(|(one, _)| one.kind.name() != name);
        let (all, occurrences) = kept.collect::<Vec<_>>().into_iter().unzip();
        (self.all, self.occurrences) = (all, occurrences);
        self.parents.retain(|parent| parent.iter().all(|one| one.kind.name() != name));
        before - self.singles.len()
    }

    /// The next trial; `None` if nothing can be disturbed.
    pub(crate) fn next(&mut self) -> Option<Planned> {
        if let Some(single) = self.singles.pop_front() {
            let disturbances = vec![single];
            self.played.insert(disturbances.clone());
            return Some(Planned { stage: Stage::Single, disturbances });
        }
        if self.played.len() >= PLAYED_MAX {
            self.played.clear();
        }
        for _ in 0..REDRAWS {
            let planned = self.draw()?;
            let mut key = planned.disturbances.clone();
            key.sort();
            if self.played.insert(key) {
                self.pairs += u64::from(planned.stage == Stage::Pair);
                return Some(planned);
            }
        }
        self.draw()
    }

    /// Reports that a trial brought a new course.
    pub(crate) fn is_new(&mut self, disturbances: &[Disturbance]) {
        if disturbances.len() < TOGETHER_MAX {
            self.parents.push_front(disturbances.to_vec());
            self.parents.truncate(PARENTS_MAX);
        }
    }

    fn draw(&mut self) -> Option<Planned> {
        // One trial of four is drawn without guidance, because a bug may need a course that looks usual.
        let guided = !self.parents.is_empty() && self.random.random_range(0..4) > 0;
        let mut disturbances = if guided {
            let place = self.random.random_range(0..self.parents.len());
            self.parents.get(place).cloned().unwrap_or_default()
        } else {
            vec![self.one()?]
        };
        let another = self.one()?;
        // Two disturbances of the same object meet more often if they are at one resource.
        let related = self.all.iter().filter(|one| one.point.resource == disturbances[0].point.resource).cloned();
        let related: Vec<Disturbance> = related.collect();
        let near = self.random.random_bool(0.5);
        let partner = if near { related.choose(&mut self.random).cloned().unwrap_or(another) } else { another };
        // A trial has one course of changes.
        if go_together(&disturbances[0].kind, &partner.kind) {
            disturbances.push(partner);
        }
        let stage = match disturbances.len() {
            1 => Stage::Single,
            2 => Stage::Pair,
            _ => Stage::Other,
        };
        for disturbance in &mut disturbances {
            if disturbance.kind.has_length() && self.random.random_bool(0.5) {
                disturbance.lasts_ms = *LENGTHS_MS.choose(&mut self.random)?;
            }
        }
        Some(Planned { stage, disturbances })
    }

    /// Any single disturbance, at any occurrence of its point.
    fn one(&mut self) -> Option<Disturbance> {
        if self.all.is_empty() {
            return None;
        }
        let place = self.random.random_range(0..self.all.len());
        let mut disturbance = self.all[place].clone();
        let occurrence = self.random.random_range(1..=self.occurrences[place].max(1));
        if !disturbance.kind.is_at_last() {
            disturbance.occurrence = occurrence;
        }
        Some(disturbance)
    }
}

/// One trial of each kind of disturbance in turn. Otherwise the trials that hold other kinds crowd out the rest, if the
/// subject watches many kinds.
fn in_turn(singles: Vec<Disturbance>) -> VecDeque<Disturbance> {
    let mut rounds: BTreeMap<&'static str, usize> = BTreeMap::new();
    let in_round = |single: Disturbance| {
        let round = rounds.entry(single.kind.name()).or_default();
        *round += 1;
        (*round, single)
    };
    let mut all: Vec<(usize, Disturbance)> = singles.into_iter().map(in_round).collect();
    all.sort_by_key(|(round, _)| *round);
    all.into_iter().map(|(_, single)| single).collect()
}

#[cfg(test)]
mod tests {
    use super::super::disturb::HOLD_MS;
    use super::super::disturb::tests::point;
    use super::*;

    const FITS: Fits = Fits {
        kills: false,
        clock: false,
        requests: true,
        hold_ms: 2000,
        children: Vec::new(),
        lease_ms: None,
        processes: Vec::new(),
    };

    fn search(seed: u64) -> Search {
        let of = |verb, resource| Point { signature: point(verb, resource), occurrences: 3, last: 5 };
        let points = [of("create", "pods"), of("update", "caches.x")];
        Search::new(seed, &points, &["pods".to_owned(), "caches.x".to_owned()], &FITS)
    }

    fn trials(search: &mut Search, count: usize) -> Vec<Planned> {
        (0..count).map(|_| search.next().unwrap()).collect()
    }

    /// One seed repeats a hunt, and another seed gives another order.
    #[test]
    fn one_seed_gives_the_same_trials() {
        let play = |seed| {
            let mut search = search(seed);
            let first = trials(&mut search, 20);
            search.is_new(&first[3].disturbances);
            [first, trials(&mut search, 30)].concat()
        };
        assert_eq!(play(7), play(7));
        assert_ne!(play(7), play(8));
    }

    /// Every single disturbance comes once before any combination.
    #[test]
    fn all_singles_come_first() {
        let mut search = search(1);
        let count = search.singles();
        let first = trials(&mut search, count);
        assert!(first.iter().all(|trial| trial.stage == Stage::Single && trial.disturbances.len() == 1));
        let different: BTreeSet<&Disturbance> = first.iter().flat_map(|trial| &trial.disturbances).collect();
        assert_eq!(different.len(), count);
        assert!(trials(&mut search, 20).iter().all(|trial| trial.stage == Stage::Pair));
    }

    /// A subject that watches many kinds has many trials that hold another kind, and each other disturbance comes early
    /// all the same.
    #[test]
    fn each_kind_of_disturbance_comes_early() {
        let points = [Point { signature: point("create", "pods"), occurrences: 1, last: 1 }];
        let watched: Vec<String> = (0..40).map(|number| format!("k{number}.example.com")).collect();
        let mut search = Search::new(1, &points, &watched, &FITS);
        let early = trials(&mut search, 12);
        let names: BTreeSet<&str> = early.iter().map(|trial| trial.disturbances[0].kind.name()).collect();
        let wanted = ["absent API", "error of the server", "hold another kind", "lose an answer", "slow answers"];
        assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(search.singles() > 80);
    }

    /// Each kind of disturbance is tried first at a creation. Otherwise a short hunt of a subject with many writes would
    /// often miss the creations.
    #[test]
    fn creations_come_first() {
        let others =
            ["update", "patch", "delete"].map(|verb| ["pods", "caches.x", "leases.x"].map(|of| point(verb, of)));
        let signatures = others.into_iter().flatten().chain([point("create", "pods")]);
        let points: Vec<Point> = signatures.map(|signature| Point { signature, occurrences: 1, last: 1 }).collect();
        let watched = ["pods", "caches.x", "leases.x"].map(str::to_owned);
        for seed in 1..4 {
            let mut search = Search::new(seed, &points, &watched, &FITS);
            let count = search.singles();
            let all = trials(&mut search, count);
            let verb = |kind: &Kind| {
                let of_kind = all.iter().map(|planned| &planned.disturbances[0]).find(|one| one.kind == *kind);
                of_kind.map(|one| one.point.verb.clone())
            };
            assert_eq!(
                [verb(&Kind::HoldOwn), verb(&Kind::Slow)],
                [Some("create".to_owned()), Some("create".to_owned())]
            );
        }
    }

    /// The clock jumps late, when the objects are there.
    #[test]
    fn time_passes_at_a_late_write() {
        let points = [Point { signature: point("create", "pods"), occurrences: 3, last: 3 }];
        let mut search = Search::new(1, &points, &[], &Fits { kills: true, clock: true, ..FITS });
        let count = search.singles();
        let all = trials(&mut search, count);
        let occurrence = |kind: Kind| {
            let mut all = all.iter().map(|trial| &trial.disturbances[0]);
            all.find(|one| one.kind == kind).map(|one| one.occurrence)
        };
        assert_eq!((occurrence(Kind::Time), occurrence(Kind::Kill)), (Some(3), Some(1)));
    }

    /// A trial with a new course is extended, at most to three disturbances.
    #[test]
    fn new_courses_are_extended() {
        let mut search = search(1);
        let count = search.singles();
        trials(&mut search, count);
        let parent = trials(&mut search, 1)[0].disturbances.clone();
        search.is_new(&parent);
        let next = trials(&mut search, 40);
        let kinds = |trial: &Planned| trial.disturbances.iter().map(|one| one.kind.clone()).collect::<Vec<_>>();
        let extended =
            next.iter().filter(|trial| kinds(trial)[..2] == [parent[0].kind.clone(), parent[1].kind.clone()]);
        assert!(extended.count() > 15);
        assert!(next.iter().all(|trial| trial.disturbances.len() <= TOGETHER_MAX));
    }

    /// A kind that is left out comes in no later trial.
    #[test]
    fn a_kind_that_is_left_out_does_not_come_again() {
        let mut search = search(1);
        let singles = search.singles();
        let left = search.leave_out(Kind::Slow.name());
        assert_eq!((left, search.singles()), (2, singles - 2));
        let next = trials(&mut search, singles + 30);
        assert!(next.iter().flat_map(|trial| &trial.disturbances).all(|one| one.kind != Kind::Slow));
    }

    /// Writes are refused for a while at the last occurrence only, because a later write would correct the end.
    #[test]
    fn long_refusals_are_at_the_last_write() {
        let mut search = search(1);
        let count = search.singles();
        let all = trials(&mut search, count + 60);
        let long: Vec<&Disturbance> =
            all.iter().flat_map(|trial| &trial.disturbances).filter(|one| one.kind.is_at_last()).collect();
        assert!(long.len() > 3 && long.iter().all(|one| one.occurrence == 5), "{long:?}");
    }

    /// If the subject's clock is faster, events are held longer, and refusals are not.
    #[test]
    fn only_holds_are_longer_by_a_faster_clock() {
        let points = [Point { signature: point("update", "pods"), occurrences: 3, last: 5 }];
        let faster = Fits { hold_ms: 2 * HOLD_MS, ..FITS };
        let mut search = Search::new(1, &points, &["pods".to_owned()], &faster);
        let count = search.singles();
        let singles = trials(&mut search, count);
        let lasts = |kind: &Kind| {
            let one = singles.iter().flat_map(|planned| &planned.disturbances).find(|one| one.kind == *kind);
            one.map(|one| one.lasts_ms)
        };
        assert_eq!(lasts(&Kind::HoldOwn), Some(2 * HOLD_MS));
        assert_eq!((lasts(&Kind::Conflicts), lasts(&Kind::ServerErrors)), (Some(HOLD_MS), Some(HOLD_MS)));
    }

    #[test]
    fn without_points_there_is_no_trial() {
        assert!(Search::new(1, &[], &[], &FITS).next().is_none());
    }
}
