//! The client that wrote each object, if the control plane records requests. Memory is bounded: if the subject writes
//! more objects than the limit, only the first objects are known.

use std::collections::BTreeMap;

use reports::record::{RequestRow, Verb};

/// Maximum number of written objects kept, about 150 bytes each.
const OBJECTS_MAX: usize = 10_000;
/// Maximum number of resources that are kept because the subject writes them.
const RESOURCES_MAX: usize = 8;

/// Resources that are not counted: leases, events and reviews are no state.
const NO_OBJECTS: [&str; 5] =
    ["leases.coordination.k8s.io", "events", "events.events.k8s.io", "authorization.k8s.io", "authentication.k8s.io"];

#[derive(Debug, Default)]
pub(in crate::run) struct Writers {
    /// Each resource that the subject wrote, as in scenarios, such as `deployments.apps/v1`.
    resources: BTreeMap<String, String>,
    /// The `User-Agent` of the subject's writes since [`Self::begin`], by resource, namespace and name. A creation with
    /// a generated name has no name.
    agents: BTreeMap<(String, String, String), String>,
    full: bool,
}

impl Writers {
    /// Records a request of the subject, with its path.
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

    /// Drops earlier writes, but keeps the resources.
    pub(in crate::run) fn begin(&mut self) {
        self.agents.clear();
        self.full = false;
    }

    /// Adds the writes that another `Writers` value has recorded.
    pub(in crate::run) fn extend(&mut self, more: Self) {
        self.resources.extend(more.resources);
        self.agents.extend(more.agents);
        self.full |= more.full;
    }

    /// All resources that the subject wrote, as in scenarios.
    pub(super) fn spelled(&self) -> impl Iterator<Item = String> {
        self.resources.values().cloned()
    }

    /// The user agent that wrote an object; `None` if the subject did not write it. Above the limit, an unknown object
    /// counts as written by the subject.
    pub(super) fn of(&self, resource: &str, namespace: &str, name: &str) -> Option<&str> {
        let key = |name: &str| (resource.to_owned(), namespace.to_owned(), name.to_owned());
        let agent = self.agents.get(&key(name)).or_else(|| self.agents.get(&key("")));
        agent.map(String::as_str).or(self.full.then_some(""))
    }
}

/// Whether the writes of a resource are not counted.
pub(super) fn is_no_object(resource: &str) -> bool {
    NO_OBJECTS.iter().any(|one| resource == *one || resource.ends_with(&format!(".{one}")))
}

/// The resource of a path, as in scenarios: `/apis/apps/v1/namespaces/n/deployments/a` gives `deployments.apps/v1`.
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
