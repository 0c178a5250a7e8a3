//! Budgets for the subject's processes: memory, file descriptors, threads, open watches, own metrics, crashes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Growth, Rate};

/// Limits on how often a process of the subject ends by itself. Each subject with `restart` is judged, with `max` 0 by
/// default.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Crashes {
    /// How often a process of a subject with `restart` may end by itself, also before it was ready. Default 0.
    pub max: Option<u64>,
    /// How often a process may enter a crash loop (in a cluster `CrashLoopBackOff`): it ends again before the back-off
    /// is reset. Absent: crash loops are reported and not judged.
    pub loops: Option<u64>,
}

/// Limits on the subject's memory.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// The largest resident set of the process tree in any sample.
    pub ceiling: Option<Bytes>,
    /// How much memory may grow with time at a constant population. Memory is the heap in use if the subject reports
    /// it, else the resident set. Growth outside of the heap breaks this budget too.
    pub growth: Option<Growth>,
    /// How much memory may grow with each hour of the subject's own clock, such as `256KiB`. At `clockRate: 60` such an
    /// hour is one minute.
    pub growth_per_own_hour: Option<Bytes>,
    /// How much memory may grow with each distinct object that was created and deleted.
    pub growth_per_object: Option<Bytes>,
    /// How much memory may grow with each admission review.
    pub growth_per_request: Option<Bytes>,
    /// How much more memory (as for `growth`) may be in use after a burst of deletions than before the objects were
    /// made. Needs ten seconds before and fifteen seconds after with about the same small number of objects. Needs five
    /// seconds between with at least twice as many objects.
    pub retained: Option<Bytes>,
}

/// Limits on the subject's open file descriptors.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptors {
    /// The largest number of descriptors in any sample.
    pub ceiling: Option<u64>,
    /// How many more descriptors may be open at the end of the steady phase than at the end of the warm-up.
    pub growth: Option<u64>,
}

/// Limits on the subject's threads.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Threads {
    /// The largest number of threads in any sample.
    pub ceiling: Option<u64>,
    /// How many more threads there may be at the end of the steady phase than at the end of the warm-up.
    pub growth: Option<u64>,
}

/// Limits on the watches that the subject holds open.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenWatches {
    /// The largest number of watches that may be open at once, of all scopes together.
    pub ceiling: Option<u64>,
    /// How many more watches the control plane may see open at the end of the steady phase than at the end of the
    /// warm-up.
    pub growth: Option<u64>,
}

/// Limits on one series of the subject's own metrics.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnSeries {
    /// The largest allowed value in any reading of the whole run.
    pub ceiling: Option<f64>,
    /// How much the series may grow with time, such as `10/h`.
    pub growth: Option<Rate>,
    /// How much the series may grow with each distinct object that was created and deleted.
    pub growth_per_object: Option<f64>,
    /// How much the series may grow with each admission review.
    pub growth_per_request: Option<f64>,
}
