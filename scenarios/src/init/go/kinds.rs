//! Kinds as Go programs write them, and their resources. Does no I/O.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::init::Crd;

static IMPORT: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r#"(?m)^\s*(?:import\s+)?(?:(\w+)\s+)?"([\w./~-]+)"\s*$"#));
/// The path prefix of Go packages with built-in kinds.
const BUILT_IN: &str = "k8s.io/api/";
/// Packages whose name differs from their group.
const GROUPS: &[(&str, &str)] = &[
    ("core", ""),
    ("admissionregistration", "admissionregistration.k8s.io"),
    ("certificates", "certificates.k8s.io"),
    ("coordination", "coordination.k8s.io"),
    ("discovery", "discovery.k8s.io"),
    ("networking", "networking.k8s.io"),
    ("rbac", "rbac.authorization.k8s.io"),
    ("scheduling", "scheduling.k8s.io"),
    ("storage", "storage.k8s.io"),
];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) name: String,
    package: Option<String>,
}

impl Kind {
    pub(super) fn new(name: &str, package: Option<&str>) -> Self {
        Self { name: name.to_owned(), package: package.map(str::to_owned) }
    }

    /// The resource as in scenarios; `None` if the kind is neither built in nor defined by the project.
    pub(crate) fn resource(&self, crds: &[Crd]) -> Option<String> {
        let built_in = self.package.as_deref().and_then(|package| package.strip_prefix(BUILT_IN));
        let Some((group, version)) = built_in.and_then(|rest| rest.split_once('/')) else {
            return crds.iter().find(|crd| crd.kind == self.name).map(Crd::resource);
        };
        let group = GROUPS.iter().find(|(package, _)| *package == group).map_or(group, |(_, name)| name);
        let dot = if group.is_empty() { "" } else { "." };
        Some(format!("{}{dot}{group}/{version}", plural(&self.name)))
    }
}

fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with("endpoints") {
        lower
    } else if let Some(stem) = lower.strip_suffix('y') {
        format!("{stem}ies")
    } else if lower.ends_with("ss") {
        format!("{lower}es")
    } else {
        format!("{lower}s")
    }
}

/// The imported packages of a Go file, by their local names.
pub(super) fn imports(text: &str) -> BTreeMap<String, String> {
    let named = |found: regex::Captures<'_>| {
        let path = &found[2];
        let last = path.rsplit('/').next().unwrap_or(path);
        let name = found.get(1).map_or(last, |name| name.as_str());
        (name.to_owned(), path.to_owned())
    };
    IMPORT.captures_iter(text).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_the_api() {
        for (kind, expected) in [
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
            ("Pod", "pods"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn a_kind_of_elsewhere_is_no_resource() {
        let kind = |package: &str| Kind::new("Route", Some(package)).resource(&[]);
        assert_eq!(kind("github.com/openshift/api/route/v1"), None);
        assert_eq!(kind("k8s.io/api/rbac/v1"), Some("routes.rbac.authorization.k8s.io/v1".to_owned()));
    }

    #[test]
    fn imports_have_names() {
        let found = imports("import \"a/b\"\nimport (\n\tx \"c/v1\"\n\t_ \"d\"\n\t\"k8s.io/api/core/v1\"\n)\n");
        assert_eq!(
            (found["b"].as_str(), found["x"].as_str(), found["v1"].as_str()),
            ("a/b", "c/v1", "k8s.io/api/core/v1")
        );
    }
}
