//! What the subject may do at the control plane, as scenario files say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the subject may do at the control plane.
///
/// Left out, the built-in service runs as the service account of its manifests (`kind/manifests/rbac.yaml`) and has the rights that
/// stand there; a command is a cluster administrator. Written, a command runs as a service account `longhaul-subject` and has these
/// rights only; the service has them besides its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rbac {
    /// Everything is allowed, as to a cluster administrator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
    /// Cluster roles of `kind/manifests/rbac.yaml` that are bound to it, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Rules of a cluster role of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// A rule, as Kubernetes writes it (`PolicyRule` of rbac.authorization.k8s.io/v1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// `""` is the core group.
    pub api_groups: Vec<String>,
    /// `pods`, `pods/status`.
    pub resources: Vec<String>,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verbs: Vec<String>,
    /// Only objects of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

impl Rbac {
    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<String> {
        if self.admin && !(self.roles.is_empty() && self.rules.is_empty()) {
            return Some("`rbac: {admin: true}` allows everything: leave `roles` and `rules` out".to_owned());
        }
        if *self == Self::default() {
            return Some(
                "`rbac` is empty: write `admin: true`, `roles: [name]` or `rules: […]`, or leave it out".into(),
            );
        }
        let known = kind::manifests::cluster_roles().unwrap_or_default();
        let unknown = self.roles.iter().find(|role| !known.contains(role))?;
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let near = super::nearest(unknown, &names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!("`rbac`: the manifests have no cluster role `{unknown}` ({}){near}", known.join(", ")))
    }
}
