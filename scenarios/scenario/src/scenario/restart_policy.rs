//! `restart` and `backOff`: whether and when a process of the subject is started again after it ends by itself.
//!
//! This module owns the keys and their default delays, which are a kubelet's (Kubernetes, "Pod Lifecycle", container
//! restarts). The first restart comes at once, the second after 10 s, and each further delay doubles up to 5 min. After
//! a process has run for 10 min, the delays begin again. `run/crashes.rs` computes the time of each restart.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

const DEFAULT_INITIAL: Span = Span::from_secs(10);
const DEFAULT_MAX: Span = Span::from_secs(5 * 60);
const DEFAULT_RESET_AFTER: Span = Span::from_secs(10 * 60);
/// Minimum delay before a restart of a process. Without this minimum, a process that ends immediately would be started
/// thousands of times a minute.
const LEAST: Duration = Duration::from_millis(100);

/// Which ends of a process cause a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Restart {
    /// Every end, as with `restartPolicy: Always` of a Pod.
    Always,
    /// An end by a signal or with an exit status other than 0. An end with status 0 ends the run.
    OnFailure,
}

/// The delay between a crash and the restart. Default values are a kubelet's, divided by `controlPlane.compress`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct BackOff {
    /// Delay before the second restart; the first comes at once. Default: 10s.
    pub initial: Option<Span>,
    /// The longest delay; the delay doubles with each restart up to this. Default: 5m.
    pub max: Option<Span>,
    /// After a process has run this long, the delays begin again. Default: 10m.
    pub reset_after: Option<Span>,
}

/// The three delays of restarts, with defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Delay before the second restart.
    pub initial: Duration,
    pub max: Duration,
    /// After a process has run this long, the delays begin again.
    pub reset_after: Duration,
}

impl Restart {
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::OnFailure => "onFailure",
        }
    }

    /// Whether a process is restarted after an end; `success` says whether its exit status was 0.
    pub fn follows(self, success: bool) -> bool {
        self == Self::Always || !success
    }
}

impl BackOff {
    /// The delays of restarts, with defaults divided by `compression`.
    pub fn delays(&self, compression: u32) -> Delays {
        let of = |written: Option<Span>, default: Span| {
            written.map_or_else(|| (default.0 / compression.max(1)).max(LEAST), |span| span.0)
        };
        let max = of(self.max, DEFAULT_MAX);
        Delays {
            initial: of(self.initial, DEFAULT_INITIAL).min(max),
            max,
            reset_after: of(self.reset_after, DEFAULT_RESET_AFTER),
        }
    }

    /// A mistake in the delays, as a message; `None` if they are valid.
    pub(super) fn problem(&self) -> Option<String> {
        let short =
            |(key, span): (&str, Option<Span>)| span.filter(|span| span.0 < LEAST).map(|span| (key.to_owned(), span));
        let written = [("initial", self.initial), ("max", self.max), ("resetAfter", self.reset_after)];
        if let Some((key, span)) = written.into_iter().find_map(short) {
            return Some(format!("`backOff: {{{key}: {span}}}`: write {} or more", Span(LEAST)));
        }
        match (self.initial, self.max) {
            (Some(initial), Some(max)) if initial > max => {
                Some(format!("`backOff`: `initial` ({initial}) is longer than `max` ({max}): make `max` longer"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BackOff {
        serde_saphyr::from_str(text).unwrap()
    }

    /// Default delays are divided by `compress`; delays in the scenario file are not.
    #[test]
    fn the_numbers_are_those_of_a_kubelet() {
        let secs = Duration::from_secs;
        let kubelet = Delays { initial: secs(10), max: secs(300), reset_after: secs(600) };
        assert_eq!(BackOff::default().delays(1), kubelet);
        let fast = Delays { initial: Duration::from_millis(500), max: secs(15), reset_after: secs(30) };
        assert_eq!(BackOff::default().delays(20), fast);
        assert_eq!(BackOff::default().delays(1000).initial, LEAST);
        assert_eq!(read("{initial: 2s}").delays(20).initial, secs(2));
        assert_eq!(read("{max: 3s}").delays(1).initial, secs(3), "as `maxContainerRestartPeriod` of a kubelet");
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert!(read("{initial: 1ms}").problem().unwrap().contains("`backOff: {initial: 1ms}`: write 100ms or more"));
        assert!(read("{initial: 9s, max: 3s}").problem().unwrap().contains("make `max` longer"));
        assert_eq!(read("{initial: 1s, max: 3s}").problem(), None);
        assert!(
            Restart::Always.follows(true) && !Restart::OnFailure.follows(true) && Restart::OnFailure.follows(false)
        );
    }
}
