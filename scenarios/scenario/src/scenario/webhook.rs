//! `serves` and `install`: the endpoint of the subject's webhook, and its registration in the control plane.

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

/// The word in `install: webhook`, which registers the webhook with default settings.
const AS_IT_IS: &str = "webhook";

/// The webhooks that the run registers in the control plane before the load, and removes at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", remote = "Self")]
#[schemars(transform = or_word)]
pub enum Install {
    /// The subject's mutating webhook as in `kind/manifests/webhook.yaml`, with the changes that are written here:
    /// `{webhook: {failurePolicy: Fail}}`.
    Webhook(Registration),
    /// `{webhooks: config/webhook/manifests.yaml}`: the project's own `MutatingWebhookConfiguration`s and
    /// `ValidatingWebhookConfiguration`s, a file or a folder relative to the scenario file. Rules, selectors,
    /// conditions, policies and timeouts of the configurations are kept. The run replaces the webhooks' address by that
    /// of the subject, keeps the path that the configuration names, and makes the names unique. The webhooks are
    /// registered before any object is churned.
    Webhooks(PathBuf),
}

/// The registration of the subject's webhook. Default values are those of `kind/manifests/webhook.yaml`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Registration {
    /// The reviewed resources. Default: the kinds of objects that contain images.
    pub rules: Option<Vec<HookRule>>,
    /// The result of an API request if the webhook does not answer.
    pub failure_policy: Option<FailurePolicy>,
    /// Time limit of an answer, whole seconds from 1s to 30s.
    pub timeout: Option<Span>,
    /// Whether the webhook is called again after another webhook has changed the object.
    pub reinvocation_policy: Option<ReinvocationPolicy>,
    /// CEL expressions that must all be true for a call (Kubernetes 1.28 and later).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
}

/// The endpoint at which a command answers admission reviews.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Serves {
    /// The path of the webhook, such as `/mutate`. Do not set the path with `install: {webhooks: FILE}`, because that
    /// file contains it.
    pub path: Option<String>,
    /// The port, if the program always uses the same one: 9443 for a controller-runtime program without a flag. If it
    /// is set, two runs cannot use the port at the same time, nor can the two builds that a gate compares. Default: a
    /// free port, `LONGHAUL_WEBHOOK_PORT`.
    pub port: Option<u16>,
}

/// A rule with operations and resources, in the form of Kubernetes (`RuleWithOperations`).
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

/// The result of an API request if a webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request fails.
    Fail,
    /// The request continues without the webhook's answer.
    Ignore,
}

/// Whether a webhook is called again for the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReinvocationPolicy {
    /// The webhook is called once for each request.
    Never,
    /// The webhook is called again if another webhook has changed the object.
    IfNeeded,
}

/// A condition under which a webhook is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    /// The name of the condition, for messages.
    pub name: String,
    /// The CEL expression that must be true for a call.
    pub expression: String,
}

impl Serves {
    /// A mistake in the section `serves`, as a message. `install` is the registration of the webhook, if the scenario
    /// has one.
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
    /// A mistake in this rule, as a message; `None` if the rule is valid.
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

/// Lets the schema of `install` also accept the word `webhook` alone.
fn or_word(schema: &mut Schema) {
    let mapping = schema.clone();
    *schema = json_schema!({"anyOf": [{"type": "string", "const": AS_IT_IS}, mapping]});
}
