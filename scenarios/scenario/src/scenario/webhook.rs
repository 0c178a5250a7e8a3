//! The subject's webhook: where it serves, and how it is registered in the control plane.

use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Span;

mod own;

pub use own::{Configuration, Hook};
pub(super) use own::{Written, read};

/// The range of `timeoutSeconds` (admissionregistration/v1).
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 1..=30;

/// As `install` is written where nothing is said of the registration.
const AS_IT_IS: &str = "webhook";

/// What of the subject is registered in the control plane before the load, and removed at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", remote = "Self")]
#[schemars(transform = or_word)]
pub enum Install {
    /// Its mutating webhook, as `kind/manifests/webhook.yaml` says, with what is said otherwise here: `{webhook: {failurePolicy: Fail}}`.
    Webhook(Registration),
    /// `{webhooks: config/webhook/manifests.yaml}`: the project's own `MutatingWebhookConfiguration`s and
    /// `ValidatingWebhookConfiguration`s, a file or a folder relative to the scenario file, as they are: rules, selectors, conditions,
    /// policies, timeouts. Only where they live is replaced by the run's address, with the path of their service, and their names are
    /// made unique. They are registered before anything is churned.
    Webhooks(PathBuf),
}

/// How its webhook is registered. What is left out is as in `kind/manifests/webhook.yaml`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Registration {
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

/// Where a command serves admission reviews.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Serves {
    /// The path of its webhook, such as `/mutate`. Left out with `install: {webhooks: FILE}`, which has it.
    pub path: Option<String>,
    /// The port at which it serves, where its program lets nobody choose: the 9443 of a controller-runtime without a flag for it. Two runs at
    /// a time cannot have it, nor can the two builds of a gate. Default: a free one, `LONGHAUL_WEBHOOK_PORT`.
    pub port: Option<u16>,
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

impl Serves {
    /// What is wrong with it, with the registration that it is for or without one.
    pub(super) fn problem(&self, install: Option<&Install>) -> Option<String> {
        let path = self.path.as_ref();
        if let (Some(Install::Webhooks(file)), Some(_)) = (install, path) {
            return Some(format!("`serves: {{path: …}}` is already in {}: leave it out", file.display()));
        }
        if let Some(path) = path.filter(|path| !path.starts_with('/')) {
            return Some(format!("`serves: {{path: {path}}}` is no path: write for example `/mutate`"));
        }
        let none = "`serves: {port: 0}` is no port: leave it out for a free one";
        (self.port == Some(0)).then(|| none.to_owned())
    }
}

impl Install {
    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<String> {
        let Self::Webhook(Registration { timeout: Some(timeout), .. }) = self else { return None };
        let is_whole = timeout.0.subsec_nanos() == 0 && TIMEOUT_SECONDS.contains(&timeout.0.as_secs());
        (!is_whole).then(|| {
            format!(
                "`install: {{webhook: {{timeout: {timeout}}}}}`: Kubernetes allows whole seconds from `1s` to `30s`"
            )
        })
    }
}

impl Serialize for Install {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Webhook(usual) if *usual == Registration::default() => serializer.serialize_str(AS_IT_IS),
            other => Self::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Install {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Install;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`webhook`, or a mapping with `webhook` or `webhooks`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Install, E> {
                match word {
                    AS_IT_IS => Ok(Install::Webhook(Registration::default())),
                    other => Err(E::unknown_variant(other, &[AS_IT_IS])),
                }
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Install, A::Error> {
                Install::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The word alone is a registration as well.
fn or_word(schema: &mut Schema) {
    let mapping = schema.clone();
    *schema = json_schema!({"anyOf": [{"type": "string", "const": AS_IT_IS}, mapping]});
}
