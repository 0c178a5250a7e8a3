//! Compares results of gates with their promises: how often a gate called identical builds, or builds with planted
//! changes, worse.
//!
//! The record of a gate states the smallest change that the gate would call worse four times in five. If gates call a
//! planted change of at least the stated size worse less often, the promise of the gates is broken. Does no I/O.

use reports::gate::certificate::POWER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Calibration, Expectation, Play, Row, Share};
use crate::calibrate::plants::is_gate;

/// Of this many gates of identical builds, one may call build B worse.
const ALARMS_ONE_IN: u64 = 20;
/// With fewer gates than this, a single false alarm may be chance. Below this number of gates, a promise is broken only
/// if Wilson's interval excludes the promised rate.
const STRICT: u64 = 20;

/// The result of a gate for the metric of its row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gated {
    /// Change of B against A as the gate reports it: a share, or a difference in the metric's unit.
    pub change: f64,
    /// The smallest change that the gate would have called worse four times in five; null if too few pairs were left.
    pub smallest: Option<f64>,
    /// The gate's own estimate of how often it would call identical builds worse by any metric.
    pub false_alarm: Option<f64>,
}

/// The results of several gates for one planted change.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The metric that must show the planted change.
    pub judge: String,
    /// Median of the measured changes.
    pub change: f64,
    /// Median of the smallest changes that the gates would call worse.
    pub smallest: Option<f64>,
    pub found: Share,
    /// How often the gates promised to find the change; `None` if the change was smaller than the gates can find.
    pub promised: Option<f64>,
}

/// The results of gates of identical builds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alarms {
    /// How often identical builds were called worse by any metric.
    pub alarms: Share,
    /// The rate of false alarms that the gates themselves estimate, over all gates.
    pub stated: f64,
    pub undecided: u64,
}

impl Found {
    /// Whether the gates found the change less often than promised.
    pub fn is_broken(&self) -> bool {
        let Some(promised) = self.promised else { return false };
        let Share { hits, of } = self.found;
        if of >= STRICT {
            return (hits as f64) < promised * of as f64;
        }
        self.found.interval().is_some_and(|interval| interval.upper < promised)
    }
}

impl Alarms {
    /// Whether there were more false alarms than allowed.
    pub fn is_broken(&self) -> bool {
        too_many(self.alarms)
    }
}

/// Whether there are more false alarms than chance and the method allow.
fn too_many(alarms: Share) -> bool {
    alarms.hits * ALARMS_ONE_IN > alarms.of
}

impl Row {
    pub fn is_gated(&self) -> bool {
        is_gate(&self.stage)
    }

    /// The results for a planted change; `None` for other rows, and for rows without runs.
    pub fn found(&self) -> Option<Found> {
        let Expectation::Caught { judge, .. } = &self.expected else { return None };
        let gated: Vec<(&Play, Gated)> = self.gated().collect();
        let change = median(gated.iter().map(|(_, gated)| gated.change))?;
        let smallest = median(gated.iter().filter_map(|(_, gated)| gated.smallest));
        let hits = gated.iter().filter(|(play, _)| play.fired.contains(judge)).count() as u64;
        let promised = smallest.filter(|smallest| change >= *smallest).map(|_| POWER);
        let found = Share { hits, of: gated.len() as u64 };
        Some(Found { judge: judge.clone(), change, smallest, found, promised })
    }

    /// The results for identical builds; `None` for other rows, and for rows without runs.
    pub fn alarms(&self) -> Option<Alarms> {
        if self.expected != Expectation::Clean {
            return None;
        }
        let gated: Vec<(&Play, Gated)> = self.gated().collect();
        if gated.is_empty() {
            return None;
        }
        let hits = gated.iter().filter(|(play, _)| !play.fired.is_empty()).count() as u64;
        Some(Alarms {
            alarms: Share { hits, of: gated.len() as u64 },
            stated: gated.iter().filter_map(|(_, gated)| gated.false_alarm).sum(),
            undecided: gated.iter().filter(|(play, _)| !play.undecided.is_empty()).count() as u64,
        })
    }

    /// Whether too many gates reported a worse value of an unchanged metric.
    pub(super) fn cries(&self) -> bool {
        let gates = self.gated().count() as u64;
        let hits = self.gated().filter(|(play, _)| play.fired.iter().any(|name| !self.may_fire(name))).count() as u64;
        too_many(Share { hits, of: gates })
    }

    fn gated(&self) -> impl Iterator<Item = (&Play, Gated)> {
        self.valid().filter_map(|play| Some((play, play.gate?)))
    }
}

impl Calibration {
    pub fn has_gates(&self) -> bool {
        self.rows.iter().any(|row| row.is_gated() && row.gated().next().is_some())
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::calibrate::plants::GATE;

    fn row(expected: Expectation, plays: &[(bool, f64, f64)]) -> Row {
        let play = |(fires, change, smallest): &(bool, f64, f64)| Play {
            seed: 1,
            verdict: if *fires { "fail" } else { "pass" }.to_owned(),
            fired: fires.then(|| "gate.cpuPerRequest".to_owned()).into_iter().collect(),
            undecided: Vec::new(),
            judged: vec!["gate.cpuPerRequest".to_owned()],
            says: String::new(),
            seconds: 40.0,
            record: String::new(),
            gate: Some(Gated { change: *change, smallest: Some(*smallest), false_alarm: Some(0.002) }),
        };
        Row { expected, plays: plays.iter().map(play).collect(), ..Row::twin(GATE) }
    }

    fn caught() -> Expectation {
        Expectation::Caught { judge: "gate.cpuPerRequest".to_owned(), also: Vec::new() }
    }

    /// A change counts as found if it was called worse. A gate promises to find a change that is larger than the
    /// smallest change that it states.
    #[test]
    fn what_is_found_is_held_against_the_promise() {
        let found = |plays: &[(bool, f64, f64)]| row(caught(), plays).found().unwrap();
        let seen = (true, 0.052, 0.045);
        let missed = (false, 0.048, 0.045);
        let two = found(&[seen, missed, seen]);
        assert_eq!((two.found, two.promised, two.is_broken()), (Share { hits: 2, of: 3 }, Some(POWER), false));
        assert!((two.change - 0.052).abs() < 1e-9);
        let one = found(&[seen, missed, missed]);
        assert!(one.is_broken(), "one of three is not four of five: {one:?}");
        let small = found(&[(false, 0.05, 0.09), (false, 0.05, 0.08)]);
        assert_eq!((small.promised, small.is_broken()), (None, false), "nothing was promised");
        assert_eq!(row(caught(), &[(false, 0.05, 0.09)]).state(), State::Undecided);
        assert_eq!(row(caught(), &[seen, missed, seen]).state(), State::Right);
        assert_eq!(row(caught(), &[seen, missed, missed]).state(), State::Missed);
    }

    /// In twenty gates, one false alarm is allowed and two are not. In three gates, no false alarm is allowed.
    #[test]
    fn one_alarm_of_twenty_is_allowed() {
        let clean = |alarms: usize, of: usize| {
            let plays: Vec<_> = (0..of).map(|at| (at < alarms, 0.0, 0.05)).collect();
            row(Expectation::Clean, &plays)
        };
        for (alarms, of, broken) in [(0, 3, false), (1, 3, true), (1, 20, false), (2, 20, true)] {
            let row = clean(alarms, of);
            assert_eq!(row.alarms().unwrap().is_broken(), broken, "{alarms} of {of}");
            assert_eq!(row.state(), if broken { State::FalseAlarm } else { State::Right });
        }
        assert!((clean(0, 20).alarms().unwrap().stated - 0.04).abs() < 1e-9);
    }
}
