//! A custom resource and a webhook, as a project defines them.

use std::path::PathBuf;

use serde_json::Value;

/// A custom resource, by its definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts of a definition, each by itself")]
pub(crate) struct Crd {
    pub(crate) file: PathBuf,
    pub(crate) group: String,
    /// The stored version.
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    /// Whether its status has the field in which a controller repeats the generation that it handled.
    pub(crate) observes: bool,
    /// Whether its conditions have such a field.
    pub(super) has_conditions: bool,
    /// The schema of its spec.
    pub(super) spec: Value,
    /// Whether its schema has a type, without which an API server takes no definition.
    pub(super) is_structural: bool,
    /// Whether its objects are in no namespace.
    pub(crate) is_cluster_wide: bool,
    /// The whole of it.
    pub(crate) definition: Value,
}

impl Crd {
    /// As `churn.resource` writes it.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}/{}", self.plural, self.group, self.version)
    }

    /// `group/version`, as objects name it.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The name of the definition, which is the resource as requests name it.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether all names in it are such as an API server takes. What is none could be anything, in a file and on a terminal.
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

/// A webhook, by its registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) file: PathBuf,
    pub(crate) is_mutating: bool,
    pub(crate) path: String,
    /// What it is asked about: groups, and resources of them.
    pub(super) asked: Vec<(Vec<String>, Vec<String>)>,
}

impl Hook {
    /// Whether it is asked about this resource.
    pub(super) fn is_about(&self, crd: &Crd) -> bool {
        let has = |list: &[String], name: &str| list.iter().any(|one| one == "*" || one == name);
        self.asked.iter().any(|(groups, resources)| {
            has(groups, &crd.group) && (has(resources, &crd.plural) || has(resources, "*/*"))
        })
    }
}
