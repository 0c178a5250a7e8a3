//! `phases`: the lengths of warm-up, steady phase and drain, and the clock in which a scenario gives them.
//!
//! Lengths in the subject's own clock are divided by the clock's rate once the rate is known, so that callers always
//! get real lengths.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// The length of each phase of a run. The run starts with the warm-up; load and churn stop at the end of the steady
/// phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Phases {
    /// Load runs, but latency is not judged yet.
    pub warm_up: Span,
    /// Load runs, and everything is judged.
    pub steady: Span,
    /// No load. The subject gets time to catch up before any object version counts as missed.
    pub drain: Span,
    /// The clock that the phases are written in. `own` is the subject's clock, which `clockRate` makes faster: `steady:
    /// 100h` takes 100 minutes at `clockRate: 60`. All other times of the file are real, except those in `rates`.
    /// Default: `real`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<PhaseClock>,
    /// The clock of `rate` in `admission` and `churn`. `own` is the subject's clock: `rate: 200/h` means 200 in each
    /// hour of that clock, for any `clockRate`. Default: `real`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<PhaseClock>,
    /// Lengths of warm-up, steady phase and drain as written, if they are in the subject's clock.
    #[serde(skip)]
    own: Option<[Span; 3]>,
    /// Factor by which load rates were raised because they are written in the subject's clock; `None` if the rates are
    /// in real time.
    #[serde(skip)]
    hurried: Option<u32>,
}

/// The clock in which phases or rates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PhaseClock {
    /// The clock of the harness.
    Real,
    /// The clock of the subject.
    Own,
}

impl Phases {
    /// Time from the start of the warm-up to the end of the steady phase.
    pub fn loaded(&self) -> Duration {
        self.warm_up.0 + self.steady.0
    }

    /// Time of all phases.
    pub fn total(&self) -> Duration {
        self.loaded() + self.drain.0
    }

    /// The length of the steady phase in the subject's clock, if the phases are written in that clock.
    pub fn own_steady(&self) -> Option<Span> {
        self.own.map(|[_, steady, _]| steady)
    }

    /// Converts the phases to real time, if they are written in the subject's clock, which runs `rate` times faster. A
    /// later call with another rate replaces the lengths of this call.
    pub fn by_real_clock(&mut self, rate: u32) {
        // The serialized form is in real time.
        if self.clock.take() == Some(PhaseClock::Own) {
            self.own = Some([self.warm_up, self.steady, self.drain]);
        }
        if let Some(own) = self.own {
            [self.warm_up, self.steady, self.drain] = own.map(|span| Span(span.0 / rate.max(1)));
        }
    }

    /// The factor for load rates, if they are written in the subject's clock, which runs `rate` times faster. A later
    /// call with another rate takes the earlier factor into account.
    pub fn hurry_rates(&mut self, rate: u32) -> Option<f64> {
        let before = match (self.rates.take(), self.hurried) {
            (Some(PhaseClock::Own), _) => 1,
            (_, Some(before)) => before,
            _ => return None,
        };
        self.hurried = Some(rate.max(1));
        Some(f64::from(rate.max(1)) / f64::from(before))
    }

    /// Factor by which load rates were raised because they are written in the subject's clock; `None` if the rates are
    /// in real time.
    pub fn own_rates(&self) -> Option<u32> {
        self.hurried
    }

    /// Sets another total length of all phases, in the clock in which the file gives the phases. Warm-up and drain keep
    /// their lengths; the steady phase gets the rest. If nothing is left for the steady phase, the error is the length
    /// of warm-up and drain together.
    pub fn last(&mut self, length: Span, rate: u32) -> Result<(), Span> {
        let [warm_up, _, drain] = self.own.unwrap_or([self.warm_up, self.steady, self.drain]);
        let around = Span(warm_up.0 + drain.0);
        let steady = length.0.checked_sub(around.0).filter(|steady| !steady.is_zero()).map(Span).ok_or(around)?;
        match &mut self.own {
            Some(own) => own[1] = steady,
            None => self.steady = steady,
        }
        self.by_real_clock(rate);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(text: &str) -> Phases {
        let mut phases: Phases = serde_saphyr::from_str(text).unwrap();
        phases.by_real_clock(60);
        phases
    }

    fn lengths(phases: &Phases) -> [u64; 3] {
        [phases.warm_up, phases.steady, phases.drain].map(|span| span.0.as_secs())
    }

    #[test]
    fn phases_of_the_subjects_clock_are_divided_by_its_rate() {
        let mut own = phases("{clock: own, warmUp: 10m, steady: 100h, drain: 5m}");
        assert_eq!(lengths(&own), [10, 6000, 5]);
        assert_eq!(own.own_steady(), Some(Span::from_secs(360_000)));
        own.by_real_clock(30);
        assert_eq!(lengths(&own), [20, 12_000, 10]);
        own.by_real_clock(1);
        assert_eq!(lengths(&own), [600, 360_000, 300]);
        // The serialized form has no own clock any more.
        let written = serde_json::to_string(&own).unwrap();
        assert!(!written.contains("clock") && !written.contains("own"), "{written}");
    }

    #[test]
    fn rates_of_the_subjects_clock_are_multiplied_once() {
        let mut own = phases("{clock: own, rates: own, warmUp: 10m, steady: 100h, drain: 5m}");
        assert_eq!((own.hurry_rates(60), own.own_rates()), (Some(60.0), Some(60)));
        assert_eq!((own.hurry_rates(30), own.own_rates()), (Some(0.5), Some(30)));
        assert!(!serde_json::to_string(&own).unwrap().contains("rates"));
        let mut real = phases("{warmUp: 10m, steady: 100h, drain: 5m}");
        assert_eq!((real.hurry_rates(60), real.own_rates()), (None, None));
    }

    #[test]
    fn phases_of_the_real_clock_stay() {
        for text in ["{warmUp: 10m, steady: 100h, drain: 5m}", "{clock: real, warmUp: 10m, steady: 100h, drain: 5m}"] {
            assert_eq!(lengths(&phases(text)), [600, 360_000, 300]);
        }
    }

    /// `--for 1h` means an hour of the clock in which the file gives the phases.
    #[test]
    fn another_length_is_by_the_same_clock() {
        let mut own = phases("{clock: own, warmUp: 10m, steady: 100h, drain: 5m}");
        own.last(Span::from_secs(3600), 60).unwrap();
        assert_eq!(lengths(&own), [10, 45, 5]);
        assert_eq!(own.last(Span::from_secs(900), 60), Err(Span::from_secs(900)));
        let mut real = phases("{warmUp: 10s, steady: 100s, drain: 5s}");
        real.last(Span::from_secs(60), 60).unwrap();
        assert_eq!(lengths(&real), [10, 45, 5]);
    }
}
