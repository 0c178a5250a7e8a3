//! Canaries: one write before and one write after each fault, which show whether the control plane is healthy. For
//! faults of the registry, a canary is a pull.
//!
//! A canary is healthy if the control plane accepted the write and the harness itself sees it. The ledger decides
//! whether the subject saw the write. The record row of a canary only shows the delay until the subject saw the write.

use std::net::SocketAddr;
use std::time::Duration;

use facts::{Revision, Uid};
use loadgen::churn;
use reports::record::{FaultEvent, FaultRow};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ready::http_ready;

/// Timeout of a canary's write; a slower control plane is not healthy.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a canary waits until the subject sees its version: longer than all timeouts of a careful client (see
/// `missed-events.md` 2.2).
const SEEN_TIMEOUT_MS: u64 = 60_000;
/// Timeout of a canary's pull; a slower registry is not healthy.
const PULL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of canaries at once: two for each fault of a scenario with a few simultaneous faults.
const UNDER_WAY_MAX: usize = 64;

/// The fault of a canary, and whether the canary comes before or after the fault.
#[derive(Debug, Clone)]
pub(super) struct Which {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) event: FaultEvent,
    pub(super) hits: u64,
}

/// A written canary that the subject has not seen yet.
struct Waiting {
    which: Which,
    uid: Uid,
    revision: Revision,
    written_ms: u64,
}

/// Uid and revision of a written canary, or the reason why it was not written.
type Written = Result<(Uid, Revision), String>;

#[derive(Default)]
pub(super) struct Canaries {
    writes: JoinSet<(Which, Written)>,
    pulls: JoinSet<(Which, Result<String, String>)>,
    waiting: Vec<Waiting>,
}

impl Canaries {
    /// Writes a canary to a churned object. Without churn no object can be written, which is no failure of the control
    /// plane.
    pub(super) fn write(&mut self, which: Which, canaries: Option<churn::Canaries>) {
        let Some(canaries) = canaries else { return };
        if self.writes.len() + self.waiting.len() >= UNDER_WAY_MAX {
            return;
        }
        self.writes.spawn(async move {
            let result = match tokio::time::timeout(WRITE_TIMEOUT, canaries.write()).await {
                Ok(Ok(write)) => Ok((write.uid.into(), write.resource_version.into())),
                Ok(Err(error)) => Err(format!("the canary could not be written: {error}")),
                Err(_) => Err(format!("the canary was not written within {} s", WRITE_TIMEOUT.as_secs())),
            };
            (which, result)
        });
    }

    /// Pulls the manifest at `path` from the registry, at an address without faults and rate limits.
    pub(super) fn pull(&mut self, which: Which, door: SocketAddr, path: String) {
        if self.pulls.len() >= UNDER_WAY_MAX {
            return;
        }
        self.pulls.spawn(async move {
            let began = Instant::now();
            let result = match tokio::time::timeout(PULL_TIMEOUT, http_ready(door, &path)).await {
                Ok(Ok(())) => Ok(format!("the registry served it within {} ms", began.elapsed().as_millis())),
                Ok(Err(error)) => Err(format!("the canary could not be pulled: {error}")),
                Err(_) => Err(format!("the canary was not served within {} s", PULL_TIMEOUT.as_secs())),
            };
            (which, result)
        });
    }

    /// The rows of canaries that the subject has seen, or has not seen in time. `seen` returns the lag in ms if the
    /// subject has seen a version.
    pub(super) fn decided(
        &mut self,
        now_ms: u64,
        seen: &mut dyn FnMut(&Uid, &Revision) -> Option<u64>,
    ) -> Vec<FaultRow> {
        let mut rows = Vec::new();
        while let Some(done) = self.writes.try_join_next() {
            let Ok((which, result)) = done else { continue };
            match result {
                Ok((uid, revision)) => self.waiting.push(Waiting { which, uid, revision, written_ms: now_ms }),
                Err(detail) => rows.push(row(which, now_ms, false, detail)),
            }
        }
        while let Some(done) = self.pulls.try_join_next() {
            let Ok((which, result)) = done else { continue };
            let ok = result.is_ok();
            rows.push(row(which, now_ms, ok, result.unwrap_or_else(|detail| detail)));
        }
        self.waiting.retain_mut(|canary| {
            let detail = match seen(&canary.uid, &canary.revision) {
                Some(lag_ms) => format!("the subject saw it after {lag_ms} ms"),
                None if now_ms.saturating_sub(canary.written_ms) >= SEEN_TIMEOUT_MS => {
                    format!("the subject had not seen it after {} s", SEEN_TIMEOUT_MS / 1000)
                }
                None => return true,
            };
            rows.push(row(canary.which.clone(), now_ms, true, detail));
            false
        });
        rows
    }

    /// Whether the subject has not yet seen a canary that was written after its fault.
    pub(super) fn waits_after(&self) -> bool {
        !self.writes.is_empty() || self.waiting.iter().any(|canary| canary.which.event == FaultEvent::CanaryAfter)
    }

    /// The rows of canaries that the subject has not seen at the end of the run.
    pub(super) fn close(&mut self, now_ms: u64) -> Vec<FaultRow> {
        let unseen = |canary: Waiting| {
            row(canary.which, now_ms, true, "the subject had not seen it by the end of the run".to_owned())
        };
        self.waiting.drain(..).map(unseen).collect()
    }
}

fn row(which: Which, t_ms: u64, ok: bool, detail: String) -> FaultRow {
    FaultRow {
        t_ms,
        id: which.id,
        name: which.name,
        event: which.event,
        hits: which.hits,
        ok: Some(ok),
        detail: Some(detail),
    }
}
