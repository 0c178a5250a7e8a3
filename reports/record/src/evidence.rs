//! Evidence of an anomaly: the history of its object, as seen by the control plane and as reported by the subject.
//!
//! Owns the types of the evidence in `anomalies.jsonl`. The running harness gathers evidence when it finds an anomaly,
//! because control plane and ledger forget old versions. `reports::causes` derives the cause of an anomaly from its
//! evidence.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EndedBy, Verb};
use facts::Change;

/// Maximum number of events and requests that are kept of the history of one anomaly: they fit on one or two screens.
/// If the history is longer, the least important of them are left out.
pub const STEPS_MAX: usize = 40;

/// The history of an anomaly's object, as far as it was known when the anomaly was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// The end of the examined time; later events are not included.
    pub until_ms: u64,
    /// Whether the control plane records the versions that it sent and the requests that it got. A real control plane
    /// does not record them; then only commits and the subject's reports are known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// The events, in order of time.
    pub steps: Vec<Step>,
    /// The number of known events and requests that the evidence does not include.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: u64,
    /// Proof that the subject read on after the time of the anomaly's version: the subject reported a later version of
    /// the resource. None if the subject reported no later version, or in records older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_on: Option<ReadOn>,
}

/// The subject's reports of other objects of the resource, after the version of the anomaly was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadOn {
    /// When the subject first reported a later version.
    pub t_ms: u64,
    /// How many later versions the subject reported.
    pub times: u64,
}

/// One event of the object, or one request of the subject about its resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Step {
    /// A version of the object was written.
    Committed {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The version's resourceVersion.
        revision: String,
        /// The kind of change.
        change: Change,
    },
    /// A version of the object was sent on a watch of the subject.
    Sent {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The version's resourceVersion.
        revision: String,
        /// The number of the watch.
        watch: u64,
    },
    /// A fault withheld a version of the object from a watch.
    Withheld {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The version's resourceVersion.
        revision: String,
        /// The number of the watch.
        watch: u64,
        /// The fault: its name and its index in the scenario.
        fault: String,
    },
    /// The subject listed one page of the resource.
    Listed {
        /// Time of the request, in milliseconds since the run's epoch.
        t_ms: u64,
        /// The status of the answer; 0 if there was none.
        status: u16,
        /// The `resourceVersion` of the list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
        /// The number of items in the page.
        objects: u64,
        /// Whether the page is a further page of a list, not the first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        further: bool,
    },
    /// The subject asked to watch the resource.
    Watched {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The number of the watch; none if it was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watch: Option<u64>,
        /// The revision to watch from, as the subject sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Whether the subject asked for all objects first (`sendInitialEvents`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        initial: bool,
        /// The status of the answer; 0 if there was none.
        status: u16,
        /// The code of the `ERROR` event that the subject got.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<u16>,
    },
    /// A watch ended.
    WatchEnded {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The number of the watch.
        watch: u64,
        /// Whether the subject or the control plane ended the watch.
        by: EndedBy,
        /// The newest revision that was sent on the watch, including bookmarks; none if nothing was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<u64>,
    },
    /// The subject wrote the object, or an object whose name begins with the object's name. This step covers several
    /// such requests in a row with the same result.
    Wrote {
        /// Time of the last request, in milliseconds since the run's epoch.
        t_ms: u64,
        /// The verb: `create`, `update`, `patch`, `delete`.
        verb: Verb,
        /// The resource, such as `deployments.apps`.
        resource: String,
        /// Namespace and name of the written object.
        object: String,
        /// The status of the answer; 0 if there was none.
        status: u16,
        /// The number of requests.
        times: u64,
        /// The reason of a refusal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The subject proved through its witness that it saw a version of the object.
    Reported {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// The resourceVersion, as the subject reported it.
        revision: String,
        /// The change that the subject reported.
        change: Change,
    },
}

impl Step {
    pub fn t_ms(&self) -> u64 {
        match self {
            Self::Committed { t_ms, .. }
            | Self::Sent { t_ms, .. }
            | Self::Withheld { t_ms, .. }
            | Self::Listed { t_ms, .. }
            | Self::Watched { t_ms, .. }
            | Self::WatchEnded { t_ms, .. }
            | Self::Wrote { t_ms, .. }
            | Self::Reported { t_ms, .. } => *t_ms,
        }
    }

    /// Whether the event or request is about this version of the object.
    fn is_of(&self, version: &str) -> bool {
        match self {
            Self::Committed { revision, .. }
            | Self::Sent { revision, .. }
            | Self::Withheld { revision, .. }
            | Self::Reported { revision, .. } => revision == version,
            Self::Listed { .. } | Self::Watched { .. } | Self::WatchEnded { .. } | Self::Wrote { .. } => false,
        }
    }

    /// How unimportant the event or request is: if an anomaly has too many, those with the highest number are left out
    /// first.
    fn spare(&self, version: &str) -> u8 {
        match self {
            _ if self.is_of(version) => 0,
            Self::Listed { .. }
            | Self::Watched { .. }
            | Self::WatchEnded { .. }
            | Self::Wrote { .. }
            | Self::Committed { change: Change::Added | Change::Deleted, .. } => 1,
            _ => 2,
        }
    }

    /// The rank among events and requests with the same time: a version is written, then requested, sent, reported.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Committed { .. } => 0,
            Self::Listed { .. } => 1,
            Self::Watched { .. } => 2,
            Self::Withheld { .. } | Self::Sent { .. } => 3,
            Self::Reported { .. } => 4,
            Self::Wrote { .. } => 5,
            Self::WatchEnded { .. } => 6,
        }
    }
}

impl Evidence {
    /// Sorts the events and requests, and keeps at most [`STEPS_MAX`] of them. Those of the anomaly's version are kept
    /// first, then requests and the object's creation and deletion, then the nearest other versions.
    pub fn bound(&mut self, revision: &str) {
        self.steps.sort_by_key(|step| (step.t_ms(), step.rank()));
        self.steps.dedup();
        let surplus = self.steps.len().saturating_sub(STEPS_MAX);
        if surplus == 0 {
            return;
        }
        let own = self.steps.iter().position(|step| step.is_of(revision)).unwrap_or(0);
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse((self.steps[*at].spare(revision), at.abs_diff(own))));
        let dropped: BTreeSet<usize> = order.into_iter().take(surplus).collect();
        let mut at = 0;
        self.steps.retain(|_| {
            at += 1;
            !dropped.contains(&(at - 1))
        });
        self.left_out += surplus as u64;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long the history of an anomaly is, the events and requests that decide its cause are kept.
    #[test]
    fn the_version_itself_and_what_was_asked_are_kept() {
        let sent = |t_ms: u64| Step::Sent { t_ms, revision: t_ms.to_string(), watch: 3 };
        let listed = |t_ms| Step::Listed { t_ms, status: 200, revision: Some(t_ms), objects: 1, further: false };
        let mut evidence = Evidence { steps: (1..200).map(sent).collect(), ..Evidence::default() };
        evidence.steps.extend([listed(7), listed(190)]);
        evidence.steps.push(sent(100));
        evidence.bound("100");
        assert_eq!((evidence.steps.len(), evidence.left_out), (STEPS_MAX, 161));
        for kept in [sent(100), sent(99), sent(101), listed(7), listed(190)] {
            assert!(evidence.steps.contains(&kept), "{kept:?}");
        }
        assert!(evidence.steps.is_sorted_by_key(Step::t_ms));
        let before = evidence.clone();
        evidence.bound("100");
        assert_eq!(evidence, before);
    }
}
