//! How long each part of a run takes, and by whose clock that is meant.
//!
//! Pure. Whoever asks gets real lengths; what the file says of the subject's own clock is divided once its rate is known.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// How long each part of a run takes. Everything starts with the warm-up; load and churn stop with the steady phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Phases {
    /// Load runs, latency is not judged yet.
    pub warm_up: Span,
    /// Load runs and everything is judged.
    pub steady: Span,
    /// No load: the subject gets the time to catch up before anything counts as missed.
    pub drain: Span,
    /// By whose clock they are: `own` is the subject's, which `clockRate` makes faster, so that `steady: 100h` takes 100 minutes at
    /// `clockRate: 60`. Everything else of the file stays in real time, but for `rates`. Default: `real`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<PhaseClock>,
    /// By whose clock `rate` of `admission` and `churn` is: `own` is the subject's, so that `rate: 200/h` are 200 in each of its own hours,
    /// whatever `clockRate` is. Default: `real`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<PhaseClock>,
    /// As they were written, where they are of the subject's clock: warm-up, steady, drain.
    #[serde(skip)]
    own: Option<[Span; 3]>,
    /// How many times faster rates are than they were written, where they are of the subject's clock.
    #[serde(skip)]
    hurried: Option<u32>,
}

/// By whose clock phases are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PhaseClock {
    /// The harness's.
    Real,
    /// The subject's.
    Own,
}

impl Phases {
    /// From the start of the warm-up to the end of the steady phase.
    pub fn loaded(&self) -> Duration {
        self.warm_up.0 + self.steady.0
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.loaded() + self.drain.0
    }

    /// The steady phase by the subject's clock, if it was written so.
    pub fn own_steady(&self) -> Option<Span> {
        self.own.map(|[_, steady, _]| steady)
    }

    /// Makes the phases as long as they really are, where they are of a clock that goes so many times faster. It may be told another rate
    /// later.
    pub fn by_real_clock(&mut self, rate: u32) {
        // What is written out again is real.
        if self.clock.take() == Some(PhaseClock::Own) {
            self.own = Some([self.warm_up, self.steady, self.drain]);
        }
        if let Some(own) = self.own {
            [self.warm_up, self.steady, self.drain] = own.map(|span| Span(span.0 / rate.max(1)));
        }
    }

    /// By how much rates are to be multiplied, where they are of a clock that goes so many times faster. It may be told another rate later.
    pub fn hurry_rates(&mut self, rate: u32) -> Option<f64> {
        let before = match (self.rates.take(), self.hurried) {
            (Some(PhaseClock::Own), _) => 1,
            (_, Some(before)) => before,
            _ => return None,
        };
        self.hurried = Some(rate.max(1));
        Some(f64::from(rate.max(1)) / f64::from(before))
    }

    /// How many times faster rates are than they were written, if they were written by the subject's clock.
    pub fn own_rates(&self) -> Option<u32> {
        self.hurried
    }

    /// Gives all of it another length, by the clock by which it was written; the steady phase is what is left. An error is how long the
    /// others take.
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
        // What is written out is what it is.
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

    /// `--for 1h` is an hour of the clock by which the file counts.
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
