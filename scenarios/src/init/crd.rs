//! A custom resource and a webhook, as the project's manifests define them.

use std::path::PathBuf;

use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts of a definition, each by itself")]
pub(crate) struct Crd {
    pub(crate) file: PathBuf,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    /// Whether the status has a field for the observed generation.
    pub(crate) observes: bool,
    /// Whether conditions in the status have a field for the observed generation.
    pub(super) has_conditions: bool,
    pub(super) spec: Value,
    /// Whether the schema is structural, as an API server requires.
    pub(super) is_structural: bool,
    pub(crate) is_cluster_wide: bool,
    pub(crate) definition: Value,
}

impl Crd {
    /// The resource, spelled as for `churn.resource` in scenarios.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}/{}", self.plural, self.group, self.version)
    }

    /// `group/version`, as in an object's `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The name of the `CustomResourceDefinition`, by which requests are recorded.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether an API server would accept all names in the definition. Invalid names could contain control characters
    /// or line breaks.
    pub(super) fn is_fine(&self) -> bool {
        let is_name = |text: &str, also: &str| {
            !text.is_empty() && text.len() <= 253 && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        is_name(&self.group, ".-")
            && is_name(&self.version, "")
            && is_name(&self.plural, "-")
            && is_name(&self.kind, "")
    }
}

/// A webhook, as a webhook configuration registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) file: PathBuf,
    pub(crate) is_mutating: bool,
    pub(crate) path: String,
    /// The groups and resources that the webhook reviews.
    pub(super) asked: Vec<(Vec<String>, Vec<String>)>,
}

impl Hook {
    /// Whether the webhook reviews this resource.
    pub(super) fn is_about(&self, crd: &Crd) -> bool {
        let has = |list: &[String], name: &str| list.iter().any(|one| one == "*" || one == name);
        self.asked.iter().any(|(groups, resources)| {
            has(groups, &crd.group) && (has(resources, &crd.plural) || has(resources, "*/*"))
        })
    }
}
