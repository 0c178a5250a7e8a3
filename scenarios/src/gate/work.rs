//! The work in each measurement of a gate: lengths of the phases, and the load. Does no I/O.

use std::time::Duration;

use anyhow::{Result, ensure};
use loadgen::admission::Config;
use units::Rate;

use crate::run::While;
use crate::scenario::Source;

/// Longest wait until the churn of a measurement ends and the subject has seen all versions.
const SETTLE_MAX: Duration = Duration::from_secs(3);
/// Minimum number of requests in one measurement, so that the median can be compared.
const REQUESTS_LEAST: f64 = 200.0;
/// Minimum number of events in one measurement, so that the lag can be compared.
pub(super) const EVENTS_LEAST: usize = 100;

/// The lengths of the phases of one measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) settle: Duration,
    pub(super) slice: Duration,
    pub(super) rest: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Work {
    /// The load of reviews; `None` for a controller without a webhook.
    pub(super) reviews: Option<Config>,
    /// Number of objects, and changes per second; `None` without churn.
    pub(super) churn: Option<(u64, f64)>,
    pub(super) times: Times,
}

impl Work {
    /// Reads the work from a scenario. The phases of the scenario describe one measurement of a build.
    pub(super) fn of(source: &Source) -> Result<Self> {
        let (scenario, origin) = (&source.scenario, &source.origin);
        let reviews = scenario.admission.clone();
        ensure!(
            reviews.as_ref().is_none_or(|config| config.rate.as_per_second() > 0.0),
            "{origin}: a gate needs `admission` with a `rate`, without `shape` and `replay`"
        );
        ensure!(
            scenario.subject.profile().serves.is_none_or(|serves| serves.port.is_none()),
            "{origin}: both builds run side by side and cannot serve at one `serves.port`: give the program a flag for \
             `${{LONGHAUL_WEBHOOK_PORT}}` and leave `port` out"
        );
        let population = scenario.churn.iter().map(|churn| u64::from(churn.population)).sum();
        ensure!(
            scenario.churn.iter().all(|churn| churn.rate.at().is_some()),
            "{origin}: `churn.rate` cannot be `auto`, because both builds get the same load: write the rate that a soak of the older \
             build found"
        );
        let rate: f64 = scenario.churn.iter().map(|churn| churn.rate.most().as_per_second()).sum();
        let churn = (!scenario.churn.is_empty()).then_some((population, rate));
        ensure!(
            reviews.is_some() || churn.is_some(),
            "{origin}: a gate needs load for both builds: `admission` with a `rate` for a webhook, `churn` for a watch controller"
        );
        let phases = scenario.phases;
        let times = Times { settle: phases.warm_up.0, slice: phases.steady.0, rest: phases.drain.0 };
        let work = Self { reviews, churn, times };
        if work.reviews.is_none() {
            ensure!(
                work.changes_measured() >= EVENTS_LEAST as f64,
                "{origin}: a slice would have {:.0} events, but lag needs at least {EVENTS_LEAST}: raise `churn.rate`, or make \
                 `phases.steady` longer",
                work.changes_measured()
            );
        }
        Ok(work)
    }

    /// Number of changes in one measurement whose lag is measured.
    fn changes_measured(&self) -> f64 {
        self.churn.map_or(0.0, |(_, rate)| rate * self.times.slice.as_secs_f64())
    }

    /// The work with this rate of reviews. Refuses a rate that gives too few reviews to compare.
    pub(super) fn at(mut self, rate: f64, saturation: f64) -> Result<Self> {
        if let Some(reviews) = &mut self.reviews {
            ensure!(
                rate * self.times.slice.as_secs_f64() >= REQUESTS_LEAST,
                "a slice would have fewer than {REQUESTS_LEAST} requests: a gate sends at most half of the {saturation:.0}/s that the \
                 slower build can take; make `phases.steady` of the scenario longer, or use a quieter machine"
            );
            reviews.rate = Rate::per_second(rate);
        }
        Ok(self)
    }

    /// The churn of one measurement. With reviews, the churn lasts as long as the warm-up of the reviews; without
    /// reviews, as long as the measurement.
    pub(super) fn events(&self, seed: u64) -> While {
        let Times { settle, slice, .. } = self.times;
        let (settle, length) = if self.reviews.is_some() { (Duration::ZERO, settle) } else { (settle, settle + slice) };
        While { seed, settle, length, patience: SETTLE_MAX }
    }

    /// A churn of this length, for warm-up or for counting.
    pub(super) fn events_for(seed: u64, length: Duration) -> While {
        While { seed, settle: Duration::ZERO, length, patience: SETTLE_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(more: &str) -> Result<Work> {
        let text = format!(
            "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {{warmUp: 1s, steady: 2s, drain: 1s}}\nsubject: {{command: \
             [x], witness: {{kind: http}}}}\n{more}"
        );
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        std::fs::write(file.path(), text).unwrap();
        Work::of(&Source::read(file.path().to_str().unwrap()).unwrap())
    }

    const CHURN: &str = "churn: {resource: packages.longhaul.dev/v1alpha1, population: 50, rate: RATE/s}\n";

    /// If there are no reviews, the churn lasts as long as the measurement, and a rate with too few events is refused.
    #[test]
    fn a_controller_that_only_watches_can_be_compared() {
        let watches = work(&CHURN.replace("RATE", "100")).unwrap();
        assert!(watches.reviews.is_none());
        let how = watches.events(7);
        assert_eq!((how.settle, how.length), (Duration::from_secs(1), Duration::from_secs(3)));
        let error = work(&CHURN.replace("RATE", "20")).unwrap_err().to_string();
        assert!(error.contains("a slice would have 40 events") && error.contains("raise `churn.rate`"), "{error}");
    }
}
