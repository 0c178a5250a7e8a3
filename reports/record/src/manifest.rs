//! `manifest.json`: what the run was going to be, written before it starts.
//!
//! Owns the types of that file. Nothing in it changes after the start; how the run ended is in `end.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MetricsPlan, Sees};
use crate::budgets::Budgets;

/// The schema that this build writes and reads.
pub const SCHEMA: &str = "longhaul.record/v1";
/// Faults in one plan: three times a fault a minute for 100 hours.
pub const PLANNED_FAULTS_MAX: usize = 20_000;

/// What the run was going to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Names the run; also the name of its directory.
    pub run_id: String,
    /// The wall-clock time of the run's epoch, RFC 3339.
    pub started_at: String,
    /// The scenario's name.
    pub name: String,
    /// The question that the scenario answers.
    pub question: String,
    /// The scenario as resolved, with every default filled in.
    pub scenario: serde_json::Value,
    /// The seed from which load, churn and faults are planned.
    pub seed: u64,
    /// The planned length of each phase.
    pub phases: Phases,
    /// The limits that decide the verdict.
    pub budgets: Budgets,
    /// What produced the run.
    pub versions: Versions,
    /// Where it ran.
    pub machine: Machine,
    /// What answered the Kubernetes API: `mock`, `local`, `kind` or `kubeconfig`, with details if there are any.
    pub control_plane: String,
    /// The system under test.
    pub subject: Subject,
    /// How observations were carried: `http`, `log`, `status`, `children`, `finalizer`, `metrics` or `none`.
    pub witness: String,
    /// What such a witness can prove; absent in records from before it was told: whatever a budget asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_sees: Option<Sees>,
    /// How many lines of it may be unreadable; absent: they matter as soon as something looks missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness_tolerates: Option<u64>,
    /// How many times shorter watches, tokens, history and idle connections lived than the control plane lets them live.
    #[serde(default = "one")]
    pub compress: u32,
    /// How many times faster the subject's own clock ran.
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
    /// What the harness wants the reader to know about this run.
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
    /// Reviews are also sent to it without the control plane.
    #[serde(default)]
    pub direct: bool,
    /// Why the control plane would call it for nothing that the run writes, if that was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
}

/// The planned length of each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phases {
    /// Load runs, but nothing is judged against latency budgets, in milliseconds.
    pub warm_up_ms: u64,
    /// The part that is judged, in milliseconds.
    pub steady_ms: u64,
    /// No new load; the subject may catch up, in milliseconds.
    pub drain_ms: u64,
}

/// What produced the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of Longhaul.
    pub longhaul: String,
    /// The git revision it was built from.
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
    /// When a process of it that ends by itself is started again: `always` or `onFailure`; none: that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// Why nothing is known of its processes; none where they are sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<String>,
    /// What of its own metrics is followed; none where it has no such page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsPlan>,
}

/// A fault as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFault {
    /// Tells this fault from others of the same name in the run.
    pub id: String,
    /// The name in the catalogue of faults.
    pub name: String,
    /// When it is to start.
    pub at_ms: u64,
    /// How long it is to last; none for a fault that happens once.
    pub for_ms: Option<u64>,
    /// What it does to whom, for people.
    pub detail: String,
    /// Whether the seed drew it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// What it needs of a request of the subject, all in one; empty: nothing, or nobody knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The resource that such a request has to be for, in full or in the plural alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_resource: Option<String>,
}

/// What a fault needs of a request before it can act on it.
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
