//! Matches webhooks with requests, and finds the current address of each webhook.

use std::sync::Arc;

use mock_objects::catalogue::{Catalogue, Resource};
use mock_objects::kinds::Meaning;
use mock_objects::selector::labels_match;
use mock_store::Version;
use serde_json::Value;

use super::form::Form;
use super::{Attempt, label, namespace_of, subject_of};
use crate::call::Call;
use crate::cluster::Cluster;
use crate::reach::Nowhere;
use crate::webhooks::{Hook, Hooks, MatchPolicy, Matches, Rule, Target};

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// All webhook configurations, sorted by name; `true` marks mutating ones, `false` validating ones.
pub(super) fn configurations(cluster: &Cluster, catalogue: &Catalogue) -> Vec<(bool, Arc<Version>)> {
    let mut found = Vec::new();
    for (full_name, mutating) in [(MUTATING, true), (VALIDATING, false)] {
        let Some(resource) = catalogue.by_full_name(full_name) else { continue };
        let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
        found.extend(page.into_iter().flat_map(|page| page.items).map(|version| (mutating, version)));
    }
    found
}

impl Hooks {
    /// Whether webhooks may see the request. Webhooks never see requests for webhook configurations, so that users can
    /// repair a broken webhook.
    pub(super) fn see(&self, call: &Call) -> bool {
        let nobody = self.mutating.is_empty() && self.validating.is_empty();
        !nobody && !is_exempt(&call.resource)
    }
}

/// Whether no webhook and no policy sees requests for a resource, because its objects are webhook configurations or
/// policies.
pub(super) fn is_exempt(resource: &Resource) -> bool {
    &*resource.group == "admissionregistration.k8s.io"
}

impl Matches {
    /// Returns the version and API in which the webhook or policy sees the object; `None` if the request does not
    /// match. The rules are checked first, then the namespace's labels, then the labels of the object or of its old
    /// state.
    pub(super) fn form(&self, attempt: &Attempt<'_>, object: &Value) -> Option<Form> {
        let form = self.matching_form(attempt)?;
        let selected = self.namespace_matches(attempt, object)
            && (self.objects.is_empty()
                || labels_match(&self.objects, |key| label(object, key))
                || attempt.old.is_some_and(|old| labels_match(&self.objects, |key| label(old, key))));
        selected.then_some(form)
    }

    /// The first version and API of the object that a rule of the webhook matches; those of the request are tried
    /// first.
    fn matching_form(&self, attempt: &Attempt<'_>) -> Option<Form> {
        let any = |rules: &[Rule], form: &Form| rules.iter().any(|rule| rule.matches(attempt, form));
        let matches =
            |form: &Form| !any(&self.excluded, form) && self.rules.as_ref().is_none_or(|rules| any(rules, form));
        let asked = Form::of_path(attempt.call);
        if matches(&asked) {
            return Some(asked);
        }
        if self.policy == MatchPolicy::Exact {
            return None;
        }
        Form::equivalents(attempt.call).into_iter().find(matches)
    }

    fn namespace_matches(&self, attempt: &Attempt<'_>, object: &Value) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        let Some(name) = namespace_of(attempt, object) else { return true };
        if attempt.call.resource.rules.meaning == Meaning::Namespace {
            let subject = subject_of(attempt, object);
            return labels_match(&self.namespaces, |key| label(subject, key));
        }
        let cluster = attempt.call.cluster();
        let catalogue = cluster.catalogue();
        let namespace = catalogue.by_full_name("namespaces").and_then(|resource| cluster.get(resource, "", name));
        namespace.is_some_and(|version| labels_match(&self.namespaces, |key| version.label(key)))
    }
}

impl Hook {
    /// The address to which the server connects now to call the webhook.
    pub(super) fn target(&self, cluster: &Cluster) -> Result<Target, Nowhere> {
        self.place.target(cluster, self.ca_pem.clone())
    }
}

impl Rule {
    fn matches(&self, attempt: &Attempt<'_>, form: &Form) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        // A namespace counts as cluster-scoped in rules, as in the real server.
        let scope = match self.scope.as_str() {
            "Namespaced" => form.resource.namespaced,
            "Cluster" => !form.resource.namespaced,
            _ => true,
        };
        scope
            && (self.names.is_empty() || self.names.iter().any(|name| name == attempt.name))
            && any(&self.operations, attempt.operation.as_str())
            && any(&self.groups, &form.resource.group)
            && any(&self.versions, &form.version)
            && self.resources.iter().any(|item| resource_matches(item, attempt, form))
    }
}

/// Whether the resource in a rule matches the request's resource: `pods`, `pods/status`, `pods/*`, `*`, `*/scale` or
/// `*/*`.
fn resource_matches(item: &str, attempt: &Attempt<'_>, form: &Form) -> bool {
    let (resource, sub) = item.split_once('/').map_or((item, None), |(resource, sub)| (resource, Some(sub)));
    let sub_matches = match (sub, attempt.call.target.subresource.as_deref()) {
        (None, None) | (Some("*"), _) => true,
        (Some(wanted), Some(is)) => wanted == is,
        _ => false,
    };
    sub_matches && (resource == "*" || resource == &*form.resource.plural)
}
