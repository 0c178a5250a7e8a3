//! `rbac`: the subject's rights at the control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The subject's rights at the control plane.
///
/// By default, the built-in service runs as the service account of its manifests and has the rights in
/// `kind/manifests/rbac.yaml`. A command is a cluster administrator by default. If `rbac` is set, a command runs as a
/// service account `longhaul-subject` and has only the rights listed here. The built-in service gets the listed rights
/// in addition to its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rbac {
    /// All rights, like a cluster administrator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
    /// Names of cluster roles of `kind/manifests/rbac.yaml` that are bound to the subject's service account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Rules of an additional cluster role for the subject.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// A rule of a cluster role in the form of Kubernetes (`PolicyRule` of rbac.authorization.k8s.io/v1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// API groups; `""` is the core group.
    pub api_groups: Vec<String>,
    /// Resources, such as `pods` and `pods/status`.
    pub resources: Vec<String>,
    /// Verbs: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verbs: Vec<String>,
    /// Limits the rule to objects with these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

impl Rbac {
    /// A mistake in the section `rbac`, as a message; `None` if the section is valid.
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
