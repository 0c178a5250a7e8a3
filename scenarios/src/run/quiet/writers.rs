//! Who wrote what, where the control plane tells who asked for what. Bounded: a subject that writes more objects than are remembered is known by
//! the first ones.

use std::collections::BTreeMap;

use reports::record::{RequestRow, Verb};

/// Objects that are remembered, of about 150 bytes each.
const OBJECTS_MAX: usize = 10_000;
/// Resources that the subject writes besides what the scenario names.
const RESOURCES_MAX: usize = 8;

/// Leases and events are written for their own sake, and reviews are questions.
const NO_OBJECTS: [&str; 5] =
    ["leases.coordination.k8s.io", "events", "events.events.k8s.io", "authorization.k8s.io", "authentication.k8s.io"];

/// The writes of the subject.
#[derive(Debug, Default)]
pub(in crate::run) struct Writers {
    /// The spelling of each resource that it wrote, `deployments.apps/v1`.
    resources: BTreeMap<String, String>,
    /// The `User-Agent` of what it wrote since [`Self::begin`], by resource, namespace and name; without a name what it made.
    agents: BTreeMap<(String, String, String), String>,
    full: bool,
}

impl Writers {
    /// Takes a request of the subject, with its path.
    pub(in crate::run) fn note(&mut self, row: &RequestRow, path: &str) {
        let writes = matches!(row.verb, Verb::Create | Verb::Update | Verb::Patch);
        if !writes || !row.succeeded() || is_no_object(&row.resource) {
            return;
        }
        if self.resources.len() < RESOURCES_MAX && !self.resources.contains_key(&row.resource) {
            let spelled = spelled(path)
                .filter(|spelled| loadgen::churn::names(spelled).is_some_and(|(name, _)| name == row.resource));
            self.resources.extend(spelled.map(|spelled| (row.resource.clone(), spelled)));
        }
        let key = (row.resource.clone(), row.namespace.clone(), row.name.clone());
        if self.agents.len() >= OBJECTS_MAX && !self.agents.contains_key(&key) {
            self.full = true;
            return;
        }
        self.agents.insert(key, row.user_agent.clone());
    }

    /// What was written before is forgotten, but for the resources.
    pub(in crate::run) fn begin(&mut self) {
        self.agents.clear();
        self.full = false;
    }

    /// Adds what others noted meanwhile.
    pub(in crate::run) fn extend(&mut self, more: Self) {
        self.resources.extend(more.resources);
        self.agents.extend(more.agents);
        self.full |= more.full;
    }

    /// Whatever it wrote, as scenarios spell it.
    pub(super) fn spelled(&self) -> impl Iterator<Item = String> {
        self.resources.values().cloned()
    }

    /// The program that wrote an object, none where the subject did not. One that is not remembered is taken for its own.
    pub(super) fn of(&self, resource: &str, namespace: &str, name: &str) -> Option<&str> {
        let key = |name: &str| (resource.to_owned(), namespace.to_owned(), name.to_owned());
        let agent = self.agents.get(&key(name)).or_else(|| self.agents.get(&key("")));
        agent.map(String::as_str).or(self.full.then_some(""))
    }
}

/// Whether it is nothing that a user would call an object.
pub(super) fn is_no_object(resource: &str) -> bool {
    NO_OBJECTS.iter().any(|one| resource == *one || resource.ends_with(&format!(".{one}")))
}

/// `/apis/apps/v1/namespaces/n/deployments/a` is of `deployments.apps/v1`.
fn spelled(path: &str) -> Option<String> {
    let words: Vec<&str> = path.split('/').skip(1).collect();
    let (group, version, rest) = match words[..] {
        ["api", version, ref rest @ ..] => ("", version, rest),
        ["apis", group, version, ref rest @ ..] => (group, version, rest),
        _ => return None,
    };
    let (["namespaces", _, plural, ..] | [plural, ..]) = rest else { return None };
    Some(if group.is_empty() { format!("{plural}/{version}") } else { format!("{plural}.{group}/{version}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(resource: &str, name: &str, status: u16) -> RequestRow {
        RequestRow {
            verb: if name.is_empty() { Verb::Create } else { Verb::Update },
            resource: resource.to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
            status,
            user_agent: "manager/v0".to_owned(),
            ..RequestRow::default()
        }
    }

    #[test]
    fn paths_are_spelled_as_scenarios_do() {
        for (path, expected) in [
            ("/apis/apps/v1/namespaces/n/deployments/a/status", Some("deployments.apps/v1")),
            ("/api/v1/namespaces/n/configmaps", Some("configmaps/v1")),
            ("/api/v1/namespaces/n", Some("namespaces/v1")),
            ("/apis/a.b/v1/things/x", Some("things.a.b/v1")),
            ("/healthz", None),
        ] {
            assert_eq!(spelled(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn what_the_subject_wrote_is_its_own_and_nothing_else() {
        let mut writers = Writers::default();
        writers.note(&wrote("deployments.apps", "a", 200), "/apis/apps/v1/namespaces/n/deployments/a");
        writers.note(&wrote("deployments.apps", "refused", 409), "/apis/apps/v1/namespaces/n/deployments/refused");
        writers
            .note(&wrote("leases.coordination.k8s.io", "l", 200), "/apis/coordination.k8s.io/v1/namespaces/n/leases/l");
        writers.note(&wrote("configmaps", "", 201), "/api/v1/namespaces/n/configmaps");
        assert_eq!(writers.spelled().collect::<Vec<_>>(), ["configmaps/v1", "deployments.apps/v1"]);
        assert_eq!(writers.of("deployments.apps", "n", "a"), Some("manager/v0"));
        assert_eq!(writers.of("deployments.apps", "n", "refused"), None);
        assert_eq!(writers.of("configmaps", "n", "made-under-any-name"), Some("manager/v0"));
        writers.begin();
        assert_eq!((writers.of("deployments.apps", "n", "a"), writers.spelled().count()), (None, 2));
    }

    #[test]
    fn reviews_leases_and_events_are_no_objects() {
        for resource in [
            "events",
            "events.events.k8s.io",
            "leases.coordination.k8s.io",
            "subjectaccessreviews.authorization.k8s.io",
        ] {
            assert!(is_no_object(resource), "{resource}");
        }
        assert!(!is_no_object("events.example.com") && !is_no_object("configmaps"));
    }
}
