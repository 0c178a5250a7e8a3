//! The result of the last check of the registration: a health note, a metric, and a log line for each change.

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::calls::now_s;
use service_core::edge::Probe;

#[derive(Debug, Default)]
pub struct State {
    known: Mutex<Known>,
    uncalled_s: Gauge,
}

#[derive(Debug, Default)]
struct Known {
    /// Why the webhook is not called, and since when, in seconds since 1970.
    why: Option<(String, u64)>,
    /// One more note for the health endpoint.
    note: Option<String>,
}

impl State {
    /// A state without problems, whose metric is registered.
    pub fn register(registry: &mut Registry) -> Self {
        let state = Self::default();
        registry.register(
            "longhaul_admission_uncalled_seconds",
            "For how long the webhook has not been called although it should be, or could not be; 0 when all is well",
            state.uncalled_s.clone(),
        );
        state
    }

    /// Records the result of a check: `why` says why and since when the webhook is not called; `None` if it is called.
    /// If the reason is unchanged, the recorded start time stays.
    pub fn judge(&self, why: Option<(String, u64)>, note: Option<String>) {
        let mut known = self.known.lock();
        known.note = note;
        match (&mut known.why, why) {
            (slot @ Some(_), None) => {
                *slot = None;
                tracing::info!(name: crate::events::CALLED, "the webhook can be called again");
            }
            (Some((before, since)), Some((why, begun))) => {
                *since = (*since).min(begun);
                if *before != why {
                    tracing::error!(name: crate::events::UNCALLED, why, "the webhook is not called");
                    *before = why;
                }
            }
            (slot @ None, Some((why, begun))) => {
                tracing::error!(name: crate::events::UNCALLED, why, "the webhook is not called");
                *slot = Some((why, begun));
            }
            (None, None) => {}
        }
        let lasts = known.why.as_ref().map_or(0, |(_, since)| now_s().saturating_sub(*since).max(1));
        self.uncalled_s.set(i64::try_from(lasts).unwrap_or(i64::MAX));
    }

    /// Records a check that failed; the result of the former check remains.
    pub fn unknown(&self, error: &str) {
        let note = Some(format!("it could not be looked at: {error}"));
        let mut known = self.known.lock();
        if known.note != note {
            tracing::warn!(name: crate::events::CALLS_UNKNOWN, error, "whether the webhook is called is not known");
            known.note = note;
        }
    }
}

impl Probe for State {
    fn name(&self) -> &'static str {
        "registration"
    }

    /// A problem with the registration only causes a note, because an unready replica gets even fewer calls.
    fn note(&self) -> Option<String> {
        let known = self.known.lock();
        known.why.as_ref().map(|(why, _)| why.clone()).or_else(|| known.note.clone())
    }
}
