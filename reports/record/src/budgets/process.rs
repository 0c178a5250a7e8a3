//! Budgets of the subject's processes: memory, descriptors, threads, watches, own metrics, crashes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Growth, Rate};

/// Limits on ends of a process that the subject causes itself. Judged of every subject with `restart`; `max` is 0 by
/// default.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Crashes {
    /// How often a process of a subject with `restart` may end by itself, also before it was ready. Default 0.
    pub max: Option<u64>,
    /// How often it may enter a crash loop, which a cluster calls `CrashLoopBackOff`: it ends again before the back-off is reset.
    /// Absent: reported and not judged.
    pub loops: Option<u64>,
}

/// Limits on the subject's memory.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// The largest resident set of the process tree in any sample.
    pub ceiling: Option<Bytes>,
    /// How much memory may grow with time at a constant population: the reported heap in use, else the resident set. Growth
    /// outside of the heap breaks it too.
    pub growth: Option<Growth>,
    /// How much memory may grow with each hour of the subject's own clock, such as `256KiB`; at `clockRate: 60` that is each minute.
    pub growth_per_own_hour: Option<Bytes>,
    /// How much memory may grow with each distinct object that has come and gone.
    pub growth_per_object: Option<Bytes>,
    /// How much memory may grow with each admission review.
    pub growth_per_request: Option<Bytes>,
    /// How much more memory (as for `growth`) may be in use after a burst of deletions than before the objects were made. Needs
    /// ten seconds before and fifteen after with about the same few objects, and five with at least twice as many.
    pub retained: Option<Bytes>,
}

/// Limits on the subject's open file descriptors.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptors {
    /// The most descriptors in any sample.
    pub ceiling: Option<u64>,
    /// How many more at the end of the steady phase than at the end of the warm-up.
    pub growth: Option<u64>,
}

/// Limits on the subject's threads.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Threads {
    /// The most threads in any sample.
    pub ceiling: Option<u64>,
    /// How many more at the end of the steady phase than at the end of the warm-up.
    pub growth: Option<u64>,
}

/// Limits on the watches that the subject holds open.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenWatches {
    /// How many more at the end of the steady phase than at the end of the warm-up, as the control plane sees it.
    pub growth: Option<u64>,
}

/// Limits on one series of the subject's own metrics.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnSeries {
    /// The largest value in any reading, from the first to the last phase.
    pub ceiling: Option<f64>,
    /// How much it may grow with time, such as `10/h`.
    pub growth: Option<Rate>,
    /// How much it may grow with each distinct object that has come and gone.
    pub growth_per_object: Option<f64>,
    /// How much it may grow with each admission review.
    pub growth_per_request: Option<f64>,
}
