//! The rules for taking a Lease, without I/O. The functions of this module get the present time as an argument.
//!
//! Invariant: a replica takes another holder's Lease only after the Lease was unchanged for its whole duration on the
//! replica's own monotonic clock. The times in the Lease are never compared with a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Longest duration of a Lease that is obeyed: a wrong number in a Lease must not stop all replicas.
const DURATION_MAX: Duration = Duration::from_hours(1);

/// The fields of a Lease's `spec` that this service uses or must preserve.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The holder; empty or `None` means that the Lease has no holder.
    pub holder_identity: Option<String>,
    /// Time for which the Lease is valid without renewal, in seconds.
    pub lease_duration_seconds: Option<i64>,
    pub acquire_time: Option<String>,
    /// The time of the last renewal; only a change of this text counts.
    pub renew_time: Option<String>,
    /// Number of times that the Lease got another holder.
    pub lease_transitions: Option<i64>,
}

#[derive(Debug)]
pub struct Election {
    identity: String,
    duration: Duration,
    observed: Option<(Record, Instant)>,
}

impl Election {
    /// A candidate that has seen no Lease yet. The Leases that the candidate takes last `duration`, in whole seconds.
    pub fn new(identity: String, duration: Duration) -> Self {
        Self { identity, duration, observed: None }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn holder(&self) -> &str {
        self.observed.as_ref().and_then(|(record, _)| record.holder_identity.as_deref()).unwrap_or_default()
    }

    /// Records the present Lease. Returns whether another replica became the holder of the Lease.
    pub fn observe(&mut self, record: Record, now: Instant) -> bool {
        if self.observed.as_ref().is_some_and(|(known, _)| *known == record) {
            return false;
        }
        let before = self.holder().to_owned();
        self.observed = Some((record, now));
        let holder = self.holder();
        holder != before && !holder.is_empty() && holder != self.identity
    }

    /// Whether this replica may take the Lease, or already holds it.
    pub fn may_take(&self, now: Instant) -> bool {
        let Some((record, since)) = &self.observed else { return true };
        let holder = self.holder();
        if holder.is_empty() || holder == self.identity {
            return true;
        }
        let lasts = match record.lease_duration_seconds {
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(DURATION_MAX),
            None => self.duration,
        };
        now.saturating_duration_since(*since) >= lasts
    }

    pub fn claim(&self, now: &Value) -> Value {
        let known = self.observed.as_ref().map(|(record, _)| record);
        let kept = known.filter(|record| record.holder_identity.as_ref() == Some(&self.identity));
        let (acquired, transitions) = match (kept, known) {
            (Some(kept), _) => (json!(kept.acquire_time), kept.lease_transitions.unwrap_or(0)),
            (None, Some(known)) => (now.clone(), known.lease_transitions.unwrap_or(0).saturating_add(1)),
            (None, None) => (now.clone(), 0),
        };
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.duration.as_secs(),
            "acquireTime": acquired,
            "renewTime": now,
            // The API has 32 bits for this number.
            "leaseTransitions": transitions.clamp(0, i64::from(i32::MAX)),
        })
    }

    /// The content of a released Lease: no holder, and a duration of one second for replicas that check only the
    /// duration.
    pub fn release(&mut self, now: &Value) -> Value {
        self.observed = None;
        json!({"holderIdentity": null, "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, seconds: i64, renewed: &str) -> Record {
        Record {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(renewed.into()),
            lease_transitions: Some(4),
            ..Record::default()
        }
    }

    fn election() -> (Election, Instant) {
        (Election::new("me".into(), Duration::from_secs(15)), Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_taken_only_after_it_stood_still_for_its_duration_whatever_its_times_say() {
        let (mut election, start) = election();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        // Long over by the clock of its writer, or not yet begun: neither counts.
        for renewed in ["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
            election.observe(record("other", 20, renewed), start);
            assert!(!election.may_take(at(19)), "{renewed}");
            election.observe(record("other", 20, renewed), at(19));
            assert!(election.may_take(at(20)), "seeing the same again is no renewal: {renewed}");
        }
        election.observe(record("other", 20, "renewed"), at(19));
        assert!(!election.may_take(at(38)) && election.may_take(at(39)), "a renewal starts the wait anew");
        let claim = election.claim(&json!("now"));
        assert_eq!((&claim["leaseTransitions"], &claim["acquireTime"]), (&json!(5), &json!("now")));
        assert_eq!(claim["leaseDurationSeconds"], 15, "ours lasts as long as ours do");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ours_or_nobodys_is_taken_at_once() {
        let (mut election, start) = election();
        assert!(election.may_take(start));
        assert_eq!(election.claim(&json!("now"))["leaseTransitions"], 0);
        election.observe(record("", 3600, ""), start);
        assert!(election.may_take(start), "given back");
        assert!(!election.observe(record("me", 15, ""), start), "our own holding is no news");
        assert!(election.may_take(start));
        let claim = election.claim(&json!("now"));
        assert_eq!((&claim["leaseTransitions"], &claim["acquireTime"]), (&json!(4), &Value::Null), "kept");
        assert!(election.observe(record("other", 15, ""), start));
    }

    #[tokio::test(start_paused = true)]
    async fn numbers_from_outside_do_no_harm() {
        let (mut election, start) = election();
        for (seconds, waits) in [(i64::MAX, DURATION_MAX), (i64::MIN, Duration::ZERO), (0, Duration::ZERO)] {
            election.observe(record("other", seconds, ""), start);
            assert!(election.may_take(start + waits), "{seconds}");
            assert_eq!(election.may_take(start), waits.is_zero(), "{seconds}");
        }
        let without = Record { lease_duration_seconds: None, ..record("other", 0, "") };
        election.observe(without, start);
        assert!(
            !election.may_take(start + Duration::from_secs(14)) && election.may_take(start + Duration::from_secs(15))
        );
        election.observe(Record { lease_transitions: Some(i64::MAX), ..record("other", 1, "") }, start);
        assert_eq!(election.claim(&json!("now"))["leaseTransitions"], i32::MAX);
    }
}
