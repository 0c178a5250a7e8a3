//! Objects whose deletion hangs after the drain. Lists the churned objects and the subject's children, and reports the
//! finalizers of each object that should be deleted.
//!
//! Owns the lists of objects, and decides to which client each finalizer belongs. The harness's own finalizers
//! (`churn.finalizers`) are not blamed on the subject. The judge decides whether a finalizer of the subject blocks too
//! long.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadgen::churn::Api;
use reports::record::{HUNG_MAX, Hanging, PutOn, StuckFinalizer};
use serde_json::Value;

use super::end_state::all_churned;
use super::end_state::list::{Item, list};
use super::failing::Failing;
use super::field_managers;
use crate::clock::{Clock, millis};
use crate::scenario::Scenario;

/// Finalizers that Kubernetes itself adds and removes.
const OF_KUBERNETES: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes"];
/// Prefixes of further finalizers of Kubernetes, such as `kubernetes.io/pvc-protection`.
const OF_ITS_PARTS: [&str; 2] = ["kubernetes.io/", "batch.kubernetes.io/"];

/// Finalizers whose owners are known before the run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Owners {
    harness: BTreeSet<String>,
    templates: BTreeSet<String>,
}

/// Lists the objects whose deletion hangs. `None` if the run has no churn, or the subject only answers reviews.
pub(super) async fn read(scenario: &Scenario, api: &Api, clock: &Clock, failing: &Failing) -> Option<Hanging> {
    let mut resources = all_churned(scenario);
    if resources.is_empty() || scenario.subject.watches_nothing() {
        return None;
    }
    for kind in scenario.subject.children.iter() {
        if let (Some((name, _)), Some(path)) =
            (loadgen::churn::names(&kind.resource), loadgen::churn::collection_path(&kind.resource))
        {
            resources.push((name, path));
        }
    }
    let owners = Owners::of(scenario);
    let mut hanging = Hanging { refused: failing.refused(), ..Hanging::default() };
    for (resource, path) in resources {
        match list(api, &path, false).await {
            Ok(items) => owners.sort(&resource, &items, SystemTime::now(), failing, &mut hanging),
            Err(error) => drop(hanging.unread.get_or_insert(format!("{error:#}"))),
        }
        hanging.resources.push(resource);
    }
    hanging
        .held
        .sort_by(|a, b| b.for_ms.cmp(&a.for_ms).then_with(|| (&a.resource, &a.object).cmp(&(&b.resource, &b.object))));
    hanging.more = hanging.held.len().saturating_sub(HUNG_MAX) as u64;
    hanging.held.truncate(HUNG_MAX);
    hanging.read_ms = clock.now_ms();
    Some(hanging)
}

impl Owners {
    fn of(scenario: &Scenario) -> Self {
        let harness = scenario.churn.iter().filter_map(|churn| churn.finalizers.as_ref());
        let templates = scenario.churn.iter().flat_map(|churn| {
            churn.template.iter().chain(churn.templates.iter().filter_map(|sample| sample.object.as_ref()))
        });
        let named = |template: &Value| {
            let all = template.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
            all.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        Self {
            harness: harness.map(|finalizers| finalizers.name.clone()).collect(),
            templates: templates.flat_map(named).collect(),
        }
    }

    /// Adds the finalizers of listed objects whose deletion was requested to `hanging`.
    fn sort(&self, resource: &str, items: &[Item], now: SystemTime, failing: &Failing, hanging: &mut Hanging) {
        hanging.objects += items.len() as u64;
        for item in items {
            let meta = &item.object["metadata"];
            let Some(asked) = meta["deletionTimestamp"].as_str() else { continue };
            let for_ms = since(asked, now).map_or(0, millis);
            let finalizers = meta["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for finalizer in finalizers.filter(|finalizer| !self.harness.contains(*finalizer)) {
                hanging.held.push(StuckFinalizer {
                    resource: resource.to_owned(),
                    object: item.place(),
                    finalizer: finalizer.to_owned(),
                    by: self.by(finalizer),
                    manager: field_managers::owner_of_value(&item.object, "/metadata/finalizers", finalizer)
                        .map(|manager| manager.shown()),
                    for_ms,
                    refusals: failing.of(resource, &item.namespace, &item.name),
                });
            }
        }
    }

    fn by(&self, finalizer: &str) -> PutOn {
        let of_kubernetes =
            OF_KUBERNETES.contains(&finalizer) || OF_ITS_PARTS.iter().any(|part| finalizer.starts_with(part));
        match () {
            () if of_kubernetes => PutOn::ControlPlane,
            () if self.templates.contains(finalizer) => PutOn::Scenario,
            () => PutOn::Subject,
        }
    }
}

/// Time since the deletion timestamp. `None` if the timestamp is in the future, as for a Pod within its grace period.
fn since(asked: &str, now: SystemTime) -> Option<Duration> {
    let asked: jiff::Timestamp = asked.parse().ok()?;
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(asked.as_millisecond()).ok()?))?;
    now.duration_since(at).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(name: &str, finalizers: &[&str], asked: Option<&str>) -> Item {
        let owned =
            json!([{"manager": "manager", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"a.com/own\"": {}}}}}]);
        let meta = json!({
            "namespace": "n", "name": name, "uid": name, "resourceVersion": "1", "finalizers": finalizers,
            "deletionTimestamp": asked, "managedFields": owned
        });
        Item::of(json!({ "metadata": meta })).unwrap()
    }

    #[test]
    fn each_finalizer_of_an_object_that_should_be_gone_is_told_with_its_owner() {
        let owners = Owners {
            harness: BTreeSet::from(["longhaul.dev/hold".to_owned()]),
            templates: BTreeSet::from(["b.com/template".to_owned()]),
        };
        let all =
            ["a.com/own", "longhaul.dev/hold", "b.com/template", "foregroundDeletion", "kubernetes.io/pvc-protection"];
        let items = [item("gone", &all, Some("2026-01-02T00:00:00Z")), item("there", &["a.com/own"], None)];
        let now = UNIX_EPOCH + Duration::from_secs(1_767_312_000 + 42);
        let mut hanging = Hanging::default();
        owners.sort("caches.example.com", &items, now, &Failing::default(), &mut hanging);
        assert_eq!(hanging.objects, 2);
        let told: Vec<_> = hanging.held.iter().map(|held| (held.finalizer.as_str(), held.by, held.for_ms)).collect();
        assert_eq!(
            told,
            [
                ("a.com/own", PutOn::Subject, 42_000),
                ("b.com/template", PutOn::Scenario, 42_000),
                ("foregroundDeletion", PutOn::ControlPlane, 42_000),
                ("kubernetes.io/pvc-protection", PutOn::ControlPlane, 42_000),
            ]
        );
        assert_eq!((hanging.held[0].object.as_str(), hanging.held[0].manager.as_deref()), ("n/gone", Some("manager")));
    }

    #[test]
    fn a_time_to_come_is_no_time_ago() {
        let now = UNIX_EPOCH + Duration::from_secs(1_767_312_001);
        assert_eq!(since("2026-01-02T00:00:30Z", now), None);
        assert_eq!(since("2026-01-01T23:59:31Z", now), Some(Duration::from_secs(30)));
        assert_eq!(since("no time", now), None);
    }
}
