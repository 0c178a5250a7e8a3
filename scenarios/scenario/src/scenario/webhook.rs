//! The subject's webhook: its endpoint, and its registration in the control plane.

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

/// The form of `install` without settings of the registration.
const AS_IT_IS: &str = "webhook";

/// The webhooks that are registered in the control plane before the load, and removed at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", remote = "Self")]
#[schemars(transform = or_word)]
pub enum Install {
    /// Its mutating webhook in the form of `kind/manifests/webhook.yaml`, with the changes given here:
    /// `{webhook: {failurePolicy: Fail}}`.
    Webhook(Registration),
    /// `{webhooks: config/webhook/manifests.yaml}`: the project's own `MutatingWebhookConfiguration`s and
    /// `ValidatingWebhookConfiguration`s, a file or a folder relative to the scenario file. Their rules, selectors,
    /// conditions, policies and timeouts are kept. Their address is replaced by the run's, with the path of their
    /// service, and their names are made unique. They are registered before anything is churned.
    Webhooks(PathBuf),
}

/// The registration of its webhook. Default values are those of `kind/manifests/webhook.yaml`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Registration {
    /// The reviewed resources, instead of the kinds that contain images.
    pub rules: Option<Vec<HookRule>>,
    /// The result of a request if the webhook does not answer.
    pub failure_policy: Option<FailurePolicy>,
    /// Time limit of an answer, whole seconds from 1s to 30s.
    pub timeout: Option<Span>,
    /// Whether it is called again after another webhook has changed the object.
    pub reinvocation_policy: Option<ReinvocationPolicy>,
    /// CEL expressions that must be true for a call (Kubernetes 1.28 and later).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
}

/// The endpoint of a command for admission reviews.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Serves {
    /// The path of its webhook, such as `/mutate`. Left out with `install: {webhooks: FILE}`, which contains it.
    pub path: Option<String>,
    /// The port, if the program has a fixed one: 9443 for a controller-runtime program without a flag. Two runs at a
    /// time cannot have it, nor can the two builds of a gate. Default: a free one, `LONGHAUL_WEBHOOK_PORT`.
    pub port: Option<u16>,
}

/// Operations and resources in the form of Kubernetes (`RuleWithOperations`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HookRule {
    /// API groups; `""` is the core group, `*` means all.
    pub api_groups: Vec<String>,
    /// API versions, such as `v1`; `*` means all.
    pub api_versions: Vec<String>,
    /// Operations: `CREATE`, `UPDATE`, `DELETE`, `*`.
    pub operations: Vec<String>,
    /// Resources, such as `pods` and `pods/*`; `*` means all.
    pub resources: Vec<String>,
}

/// The result of a request if a webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request fails.
    Fail,
    /// The request goes on without it.
    Ignore,
}

/// Whether a webhook is called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReinvocationPolicy {
    /// Once for each request.
    Never,
    /// Again if another webhook has changed the object.
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
    /// A mistake in it, considering its registration if there is one.
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
    /// A mistake in the rule, if there is one.
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
