//! Evidence of an anomaly: the history of its object, from both sides of the wire.
//!
//! Owns the types of the evidence in `anomalies.jsonl`. The evidence is gathered when the anomaly is found, because
//! the harness forgets; `reports::causes` draws the conclusions.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EndedBy, Verb};
use facts::Change;

/// Steps of one anomaly that are kept: a screen or two. Of more, the least important ones are left out.
pub const STEPS_MAX: usize = 40;

/// The history of an anomaly's object, as far as it was known when the anomaly was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// The end of the examined time: nothing that came later is included.
    pub until_ms: u64,
    /// Whether the control plane records what it sent and the requests that it got. A real one does not: then only
    /// commits and reports are known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// The events, in order of time.
    pub steps: Vec<Step>,
    /// Steps that were known and are not shown.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: u64,
    /// The first proof after the version's time that the subject had read on: it reported a later version of the
    /// resource. None if it did not, or in records older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_on: Option<ReadOn>,
}

/// The subject's reports of a resource after a version of another object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadOn {
    /// When it first reported a later version.
    pub t_ms: u64,
    /// How many later versions it reported.
    pub times: u64,
}

/// One event of the object, or one request of the subject about its resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Step {
    /// A version of it was written.
    Committed {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// Its resourceVersion.
        revision: String,
        /// The kind of change.
        change: Change,
    },
    /// A version of it was put on a watch of the subject.
    Sent {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// Its resourceVersion.
        revision: String,
        /// The number of the watch.
        watch: u64,
    },
    /// A fault kept a version of it from a watch.
    Withheld {
        /// Milliseconds since the run's epoch.
        t_ms: u64,
        /// Its resourceVersion.
        revision: String,
        /// The number of the watch.
        watch: u64,
        /// The fault: its name and its place in the scenario.
        fault: String,
    },
    /// The subject listed the resource: one page.
    Listed {
        /// Time of the request, in milliseconds since the run's epoch.
        t_ms: u64,
        /// The status of the answer; 0 if there was none.
        status: u16,
        /// The revision of the list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
        /// The number of items in the page.
        objects: u64,
        /// Whether the page is not the first one.
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
        /// Whether the subject asked for all objects first.
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
        /// Its number.
        watch: u64,
        /// The side that ended it.
        by: EndedBy,
        /// The newest revision that was sent on it, including bookmarks; none if nothing was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<u64>,
    },
    /// The subject wrote the object, or an object whose name begins with this object's name: several such requests in a
    /// row with the same result.
    Wrote {
        /// Time of the last request, in milliseconds since the run's epoch.
        t_ms: u64,
        /// The verb: `create`, `update`, `patch`, `delete`.
        verb: Verb,
        /// The resource, such as `deployments.apps`.
        resource: String,
        /// Its namespace and name.
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

    /// Whether the step is about this version.
    fn is_of(&self, version: &str) -> bool {
        match self {
            Self::Committed { revision, .. }
            | Self::Sent { revision, .. }
            | Self::Withheld { revision, .. }
            | Self::Reported { revision, .. } => revision == version,
            Self::Listed { .. } | Self::Watched { .. } | Self::WatchEnded { .. } | Self::Wrote { .. } => false,
        }
    }

    /// How well the step can be left out; higher is easier.
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

    /// The order of steps of the same time: a version is written, then asked for, sent, reported.
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
    /// Sorts the steps and keeps at most [`STEPS_MAX`] of them: first those of the version itself, then the requests
    /// and how the object was created and deleted, then the nearest of its other versions.
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

    /// However many steps are known, those that the cause depends on are kept.
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
