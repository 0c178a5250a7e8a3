//! The causes that a hunt has seen: each is a sign with the trials that showed it.
//!
//! Owns which trial is replayed next if the replays of one trial do not show its sign again. Does no I/O.

use std::collections::{BTreeSet, VecDeque};

use reports::hunt::{Sign, What};

use super::schedule::Planned;

/// Maximum number of further trials of a cause that wait for a replay.
const WAITING_MAX: usize = 4;

/// A sign, and the trials that showed it.
pub(super) struct Cause {
    sign: Sign,
    /// The names of all disturbances that showed it.
    pub(super) names: BTreeSet<&'static str>,
    /// Number of trials that showed it.
    pub(super) trials: u32,
    /// Trials with disturbances that no replay has had. They have the same sign by accident, or show the true cause.
    waiting: VecDeque<Planned>,
    replayed: BTreeSet<Vec<&'static str>>,
}

/// All causes of a hunt.
#[derive(Default)]
pub(super) struct Causes(Vec<Cause>);

impl Causes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The cause of a sign.
    pub(super) fn of(&self, sign: &Sign) -> Option<&Cause> {
        self.0.iter().find(|cause| cause.sign.is_like(sign))
    }

    /// Adds a trial with these signs. True if the first sign is a new cause, whose trial must be replayed. One cause shows
    /// several signs, and the first sign may differ from trial to trial. But a value that differs in many trials, for
    /// example in a status, explains no trial with more than other values.
    pub(super) fn add(&mut self, signs: &[Sign], planned: &Planned) -> bool {
        let Some(first) = signs.first() else { return false };
        let names = names(planned);
        let explains = |cause: &Cause| cause.sign.what != What::Field || first.what == What::Field;
        let is_shown = |cause: &Cause| signs.iter().any(|sign| sign.is_like(&cause.sign));
        let Some(cause) = self.0.iter_mut().find(|cause| explains(cause) && is_shown(cause)) else {
            let (trials, waiting, replayed) = (1, VecDeque::new(), BTreeSet::from([names.clone()]));
            self.0.push(Cause { sign: first.clone(), names: names.into_iter().collect(), trials, waiting, replayed });
            return true;
        };
        cause.trials += 1;
        cause.names.extend(&names);
        if cause.waiting.len() < WAITING_MAX && cause.replayed.insert(names) {
            cause.waiting.push_back(planned.clone());
        }
        false
    }

    /// The replays of one trial did not show the sign. Returns the next trial that showed it; the cause is forgotten if
    /// there is none.
    pub(super) fn not_again(&mut self, sign: &Sign) -> Option<Planned> {
        let next = self.0.iter_mut().find(|cause| cause.sign.is_like(sign)).and_then(|cause| cause.waiting.pop_front());
        if next.is_none() {
            self.0.retain(|cause| !cause.sign.is_like(sign));
        }
        next
    }
}

/// The names of the disturbances of a trial.
pub(super) fn names(planned: &Planned) -> Vec<&'static str> {
    planned.disturbances.iter().map(|one| one.kind.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::of_object;
    use super::super::disturb::Kind;
    use super::super::disturb::tests::at;
    use super::super::schedule::Stage;
    use super::*;

    fn planned(kind: Kind) -> Planned {
        Planned { stage: Stage::Single, disturbances: vec![at(kind, "create")] }
    }

    /// If a trial does not show its sign again, another trial with this sign is replayed.
    #[test]
    fn another_trial_with_the_same_sign_is_replayed() {
        let sign = of_object(What::Missing, "pods n/a", "is missing", "there");
        let mut causes = Causes::default();
        assert!(causes.add(std::slice::from_ref(&sign), &planned(Kind::Slow)));
        for kind in [Kind::Slow, Kind::EventFirst, Kind::EventFirst] {
            assert!(!causes.add(std::slice::from_ref(&sign), &planned(kind)));
        }
        assert_eq!(causes.of(&sign).map(|cause| (cause.trials, cause.names.len())), Some((4, 2)));
        assert_eq!(causes.not_again(&sign), Some(planned(Kind::EventFirst)));
        assert_eq!((causes.not_again(&sign), causes.len()), (None, 0), "each disturbance has been replayed");
        assert!(causes.add(std::slice::from_ref(&sign), &planned(Kind::Slow)), "it may come again");
    }

    /// A field that differs in many trials hides no missing object.
    #[test]
    fn a_field_explains_no_missing_object() {
        let field = of_object(What::Field, "caches.x n/a", "1", "2");
        let missing = of_object(What::Missing, "pods n/a", "is missing", "there");
        let mut causes = Causes::default();
        assert!(causes.add(std::slice::from_ref(&field), &planned(Kind::Slow)));
        assert!(causes.add(&[missing.clone(), field.clone()], &planned(Kind::Kill)));
        assert!(!causes.add(&[missing.clone(), field.clone()], &planned(Kind::Slow)));
        assert!(!causes.add(std::slice::from_ref(&field), &planned(Kind::Slow)));
        assert_eq!((causes.len(), causes.of(&missing).map(|cause| cause.trials)), (2, Some(2)));
    }
}
