//! The subject's webhook: where it serves, and how it is registered in the control plane.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

mod own;

pub(crate) use own::{Configuration, Hook};
pub(super) use own::{Written, read};

/// The range of `timeoutSeconds` (admissionregistration/v1).
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 1..=30;

/// What of the subject is registered in the control plane before the load, and removed at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Install {
    /// Its mutating webhook, as `kind/manifests/webhook.yaml` says, with what [`Webhook`] says otherwise.
    Webhook,
    /// `{webhooks: config/webhook/manifests.yaml}`: the project's own `MutatingWebhookConfiguration`s and
    /// `ValidatingWebhookConfiguration`s, a file or a folder relative to the scenario file, as they are: rules, selectors, conditions,
    /// policies, timeouts. Only where they live is replaced by the run's address, with the path of their service, and their names are
    /// made unique. They are registered before anything is churned.
    Webhooks(PathBuf),
}

/// Where the subject serves admission reviews and, with `install: webhook`, how that is registered. What is left out is as in
/// `kind/manifests/webhook.yaml`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Webhook {
    /// The path of the mutating webhook, such as `/mutate`; a `command` needs it.
    pub path: Option<String>,
    /// The port at which it serves, where its program lets nobody choose: the 9443 of a controller-runtime without a flag for it. Two runs at
    /// a time cannot have it, nor can the two builds of a gate. Default: a free one, `LONGHAUL_WEBHOOK_PORT`.
    pub port: Option<u16>,
    /// What it is asked about, instead of the kinds that hold images.
    pub rules: Option<Vec<HookRule>>,
    /// What happens when it does not answer.
    pub failure_policy: Option<FailurePolicy>,
    /// How long it may take, whole seconds from 1s to 30s.
    pub timeout: Option<Span>,
    /// Whether it is asked again after another webhook has changed the object.
    pub reinvocation_policy: Option<ReinvocationPolicy>,
    /// CEL expressions that must hold for it to be asked (Kubernetes 1.28 and later).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
}

/// Operations and resources, as Kubernetes writes them (`RuleWithOperations`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HookRule {
    /// `""` is the core group, `*` every one.
    pub api_groups: Vec<String>,
    /// `v1`, `*`.
    pub api_versions: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `*`.
    pub operations: Vec<String>,
    /// `pods`, `pods/*`, `*`.
    pub resources: Vec<String>,
}

/// What happens when a webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request fails.
    Fail,
    /// The request goes on without it.
    Ignore,
}

/// Whether a webhook is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReinvocationPolicy {
    /// Once for each request.
    Never,
    /// Again when another one has changed the object.
    IfNeeded,
}

/// A condition of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    /// Its name, for messages.
    pub name: String,
    /// A CEL expression.
    pub expression: String,
}

impl Webhook {
    /// What is wrong with it, with the registration that it is for or without one.
    pub(super) fn problem(&self, install: Option<&Install>) -> Option<String> {
        let registers = Self { path: None, port: None, ..self.clone() } != Self::default();
        if let Some(Install::Webhooks(file)) = install.filter(|_| registers || self.path.is_some()) {
            return Some(format!(
                "`webhook` says what {} says as well: leave all but `port` out of it, and write the rest there",
                file.display()
            ));
        }
        if registers && install.is_none() {
            return Some(
                "`webhook` says how it is registered, and nothing registers it: add `install: webhook`".to_owned(),
            );
        }
        if let Some(path) = self.path.as_ref().filter(|path| !path.starts_with('/')) {
            return Some(format!("`webhook: {{path: {path}}}` is no path: write for example `/mutate`"));
        }
        if self.port == Some(0) {
            return Some("`webhook: {port: 0}` is no port: leave it out for a free one".to_owned());
        }
        let timeout = self.timeout?;
        if timeout.0.subsec_nanos() != 0 || !TIMEOUT_SECONDS.contains(&timeout.0.as_secs()) {
            return Some(format!(
                "`webhook: {{timeout: {timeout}}}`: Kubernetes allows whole seconds from `1s` to `30s`"
            ));
        }
        None
    }
}
