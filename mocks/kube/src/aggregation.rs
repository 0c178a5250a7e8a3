//! Aggregated cluster roles: `aggregationRule` ("Using RBAC Authorization", aggregated `ClusterRoles`).
//!
//! Writes the rules of aggregated roles, as a controller of a real cluster does. The task of the module `janitor` runs
//! this code.

use mock_objects::catalogue::Resource;
use mock_store::{Expect, Version};
use serde_json::Value;

use super::cluster::Cluster;

/// Rewrites the rules of every aggregated role that are out of date.
pub(crate) fn refresh(cluster: &Cluster, resource: &Resource) {
    let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
    let Ok(page) = page else { return };
    for version in &page.items {
        let mut role = version.value();
        let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array).cloned();
        let Some(selectors) = selectors else { continue };
        let mut rules: Vec<Value> = Vec::new();
        let others = page.items.iter().filter(|other| other.identity != version.identity);
        for other in others.filter(|other| selectors.iter().any(|selector| selects(selector, other))) {
            for rule in other.value()["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        let rules = Value::Array(rules);
        if role["rules"] != rules {
            role["rules"] = rules;
            // Losing a race is fine: the janitor also sees the winner's commit.
            let _ = cluster.put(resource, Expect::Revision(version.revision), role);
        }
    }
}

fn selects(selector: &Value, version: &Version) -> bool {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let fits = |expression: &Value| {
        let key = expression["key"].as_str().unwrap_or_default();
        let is = version.label(key);
        let named = || {
            let values = expression["values"].as_array().into_iter().flatten();
            is.is_some_and(|is| values.filter_map(Value::as_str).any(|value| value == is))
        };
        match expression["operator"].as_str() {
            Some("In") => named(),
            Some("NotIn") => !named(),
            Some("Exists") => is.is_some(),
            Some("DoesNotExist") => is.is_none(),
            _ => false,
        }
    };
    labels.into_iter().all(|(key, value)| version.label(key) == value.as_str())
        && selector["matchExpressions"].as_array().into_iter().flatten().all(fits)
}
