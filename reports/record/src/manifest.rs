//! `manifest.json`: the plan of a run, written before it starts.
//!
//! Owns the types of `manifest.json`. The file does not change after the start of the run; `end.json` says how the run
//! ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MetricsPlan, Sees};
use crate::budgets::Budgets;

/// The version of the record's schema that this build writes and reads.
pub const SCHEMA: &str = "longhaul.record/v1";
/// Maximum number of faults in the plan of a run: three times one fault a minute for 100 hours.
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
    /// The scenario with every default filled in.
    pub scenario: serde_json::Value,
    /// The seed of load, churn and faults.
    pub seed: u64,
    /// The planned length of each phase.
    pub phases: Phases,
    /// The limits that decide the verdict.
    pub budgets: Budgets,
    /// Version and git revision of Longhaul.
    pub versions: Versions,
    /// The machine of the run.
    pub machine: Machine,
    /// The control plane: `mock`, `local`, `kind` or `kubeconfig`, with details if there are any.
    pub control_plane: String,
    /// The system under test.
    pub subject: Subject,
    /// The witness that carried observations: `http`, `log`, `status`, `children`, `finalizer`, `metrics` or `none`.
    pub witness: String,
    /// The facts that the witness can prove. Absent in older records: then the witness proves every fact that a budget
    /// needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_sees: Option<Sees>,
    /// How many lines of the witness may be unreadable. Absent: unreadable lines matter only if versions look missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_tolerates: Option<u64>,
    /// The factor by which the lives of watches, tokens, history and idle connections were shorter than on a real
    /// control plane.
    #[serde(default = "one")]
    pub compress: u32,
    /// The factor by which the subject's own clock ran faster.
    #[serde(default = "one")]
    pub clock_rate: u32,
    /// The resources whose events are judged, such as `packages.longhaul.dev`.
    #[serde(default)]
    pub judged: Vec<String>,
    /// SHA-256 of the admission payloads, in hexadecimal.
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
    /// The webhook's name.
    pub name: String,
    /// Whether the harness also sends reviews directly to the webhook, past the control plane.
    #[serde(default)]
    pub direct: bool,
    /// Why the control plane would never call the webhook for the run's writes, if that was known before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
}

/// The planned length of each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phases {
    /// The length of the warm-up in milliseconds. Load runs, but latency budgets are not judged.
    pub warm_up_ms: u64,
    /// The length of the steady phase in milliseconds. The budgets are judged in this phase.
    pub steady_ms: u64,
    /// The length of the drain in milliseconds. No new load is sent; the subject may catch up.
    pub drain_ms: u64,
}

/// Version and git revision of Longhaul.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of Longhaul.
    pub longhaul: String,
    /// The git revision from which Longhaul was built.
    pub git_revision: Option<String>,
}

/// The machine of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Logical processors that the run was allowed to use.
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
    /// The kind of subject: `service`, `command`, `deployment` or `attach`.
    pub kind: String,
    /// The program and its arguments; empty if the harness did not start the subject.
    pub command: Vec<String>,
    /// SHA-256 of the program file, or of the files that the scenario names as the subject; in hexadecimal.
    pub digest: Option<String>,
    /// The planted bug of the subject, in calibration runs.
    pub planted_bug: Option<String>,
    /// When a process that ends by itself is started again: `always` or `onFailure`. None: the end of a process
    /// finishes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// Why the harness does not sample the subject's processes; none if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<String>,
    /// The series of the subject's own metrics that are read; none if the subject has no metrics page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsPlan>,
}

/// A fault as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFault {
    /// Distinguishes the fault from others of the same name in the run.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// The planned start, in milliseconds since the run's epoch.
    pub at_ms: u64,
    /// The planned length, in milliseconds; none for a fault that happens once.
    pub for_ms: Option<u64>,
    /// The effect and the target of the fault, for people.
    pub detail: String,
    /// Whether the seed chose the fault, and not the scenario.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// The properties that one request of the subject must have together so that the fault can act on it. Empty: the
    /// fault acts on any request, or the properties are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The resource of a request that the fault can act on, in full or as the plural alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_resource: Option<String>,
}

/// A property that a request must have before a fault can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// The request is a list.
    List,
    /// The request is a watch.
    Watch,
    /// The request reads one object.
    Get,
    /// The request creates an object.
    Create,
    /// The request replaces an object.
    Update,
    /// The request patches an object.
    Patch,
    /// The request deletes an object.
    Delete,
    /// The request has `allowWatchBookmarks`.
    Bookmarks,
    /// The request has `sendInitialEvents`.
    InitialEvents,
}
