//! `manifest.json`: the plan of a run, written before it starts.
//!
//! Owns the types of that file. Nothing in it changes after the start; `end.json` says how the run ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MetricsPlan, Sees};
use crate::budgets::Budgets;

/// The schema that this build writes and reads.
pub const SCHEMA: &str = "longhaul.record/v1";
/// Faults in one plan: three times one fault a minute for 100 hours.
pub const PLANNED_FAULTS_MAX: usize = 20_000;

/// The plan of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The run's name, which is also the name of its directory.
    pub run_id: String,
    /// The wall-clock time of the run's epoch, RFC 3339.
    pub started_at: String,
    /// The scenario's name.
    pub name: String,
    /// The question that the scenario answers.
    pub question: String,
    /// The scenario as resolved, with every default filled in.
    pub scenario: serde_json::Value,
    /// The seed of load, churn and faults.
    pub seed: u64,
    /// The planned length of each phase.
    pub phases: Phases,
    /// The limits that decide the verdict.
    pub budgets: Budgets,
    /// The program that made the run.
    pub versions: Versions,
    /// The machine of the run.
    pub machine: Machine,
    /// The control plane: `mock`, `local`, `kind` or `kubeconfig`, with details if there are any.
    pub control_plane: String,
    /// The system under test.
    pub subject: Subject,
    /// The witness that carried observations: `http`, `log`, `status`, `children`, `finalizer`, `metrics` or `none`.
    pub witness: String,
    /// The facts that such a witness can prove; absent in older records: every fact that a budget asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_sees: Option<Sees>,
    /// The number of its lines that may be unreadable. Absent: unreadable lines matter as soon as a version looks
    /// missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_tolerates: Option<u64>,
    /// By which factor the lives of watches, tokens, history and idle connections were shorter than the control plane's
    /// own.
    #[serde(default = "one")]
    pub compress: u32,
    /// By which factor the subject's own clock ran faster.
    #[serde(default = "one")]
    pub clock_rate: u32,
    /// The resources whose events are judged, such as `packages.longhaul.dev`.
    #[serde(default)]
    pub judged: Vec<String>,
    /// SHA-256 of the admission payloads, hexadecimal.
    pub payload_fingerprint: Option<String>,
    /// The faults that were planned.
    pub faults: Vec<PlannedFault>,
    /// Planned admission reviews a second.
    pub admission_rate_per_second: Option<f64>,
    /// Planned object changes a second.
    pub churn_rate_per_second: Option<f64>,
    /// The webhooks that are registered in the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookPlan>,
    /// The command that repeats the run.
    pub repeat: String,
    /// Notes of the harness for the reader of this run.
    pub notes: Vec<String>,
}

fn one() -> u32 {
    1
}

/// A webhook that is registered in the control plane for the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookPlan {
    /// Its name.
    pub name: String,
    /// Whether reviews are also sent to it directly, past the control plane.
    #[serde(default)]
    pub direct: bool,
    /// Why the control plane would never call it for the run's writes, if that was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
}

/// The planned length of each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phases {
    /// The warm-up: load runs, but nothing is judged against latency budgets, in milliseconds.
    pub warm_up_ms: u64,
    /// The steady phase, which is judged, in milliseconds.
    pub steady_ms: u64,
    /// The drain: no new load; the subject may catch up, in milliseconds.
    pub drain_ms: u64,
}

/// The program that made the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of Longhaul.
    pub longhaul: String,
    /// The git revision that it was built from.
    pub git_revision: Option<String>,
}

/// The machine of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Logical processors that the run could use.
    pub cores: u32,
    /// Physical memory, in bytes.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// The processor's model name.
    pub cpu: String,
}

/// The system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `service`, `command`, `deployment` or `attach`.
    pub kind: String,
    /// The program and its arguments; empty if the harness did not start it.
    pub command: Vec<String>,
    /// SHA-256 of the program file, or of the files that the scenario says make up the subject; hexadecimal.
    pub digest: Option<String>,
    /// The bug that was planted on purpose, in calibration runs.
    pub planted_bug: Option<String>,
    /// When a process that ends by itself is started again: `always` or `onFailure`. None: such an end finishes the
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// Why its processes are not sampled; none if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<String>,
    /// The part of its own metrics that is followed; none if it has no page of metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsPlan>,
}

/// A fault as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFault {
    /// Distinguishes this fault from others of the same name in the run.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// The planned start, in milliseconds since the run's epoch.
    pub at_ms: u64,
    /// The planned length, in milliseconds; none for a fault that happens once.
    pub for_ms: Option<u64>,
    /// The fault's effect and target, for people.
    pub detail: String,
    /// Whether the seed chose it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// The properties that one request of the subject must have together; empty: none, or unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The resource that such a request has to be for, in full or in the plural alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_resource: Option<String>,
}

/// A property that a fault needs of a request before it can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A list.
    List,
    /// A watch.
    Watch,
    /// The read of one object.
    Get,
    /// A creation.
    Create,
    /// A replacement.
    Update,
    /// A patch.
    Patch,
    /// A deletion.
    Delete,
    /// `allowWatchBookmarks`.
    Bookmarks,
    /// `sendInitialEvents`.
    InitialEvents,
}
