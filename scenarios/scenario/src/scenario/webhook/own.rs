//! Reads a project's own webhook configurations from its manifests, and compares them with the writes of a run.
//!
//! This module also finds webhooks that no write of the run would match. The crate `scenarios` registers the webhooks
//! in the control plane.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::scenario::reach::Ground;

const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// One webhook configuration as the project's file contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Whether the configuration is a `MutatingWebhookConfiguration`.
    pub mutating: bool,
    pub object: Value,
}

/// One webhook of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Hook<'a> {
    /// Whether the webhook may change objects.
    pub mutating: bool,
    raw: &'a Value,
}

/// The writes of a run to one resource, to be compared with webhooks' rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The section of the scenario that writes, for messages: `churn`.
    pub by: &'static str,
    pub group: String,
    pub version: String,
    pub plural: String,
    /// The operations: `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<&'static str>,
    /// The labels of the written objects' namespaces; `None` for objects without a namespace.
    pub namespace: Option<BTreeMap<String, String>>,
}

/// Reads the webhook configurations in a file or a folder; other objects are ignored.
pub fn read(ground: &Ground, path: &Path) -> Result<Vec<Configuration>, String> {
    let manifests = crate::scenario::manifests::read(ground, &[path.to_owned()]);
    let manifests = manifests.map_err(|text| text.replacen("controlPlane.manifests", "install: {webhooks: …}", 1))?;
    let mut found = Vec::new();
    for manifest in manifests {
        let mutating = match manifest.object["kind"].as_str() {
            Some(MUTATING) => true,
            Some(VALIDATING) => false,
            _ => continue,
        };
        found.push(Configuration { mutating, object: manifest.object });
    }
    if found.iter().all(|configuration| configuration.hooks().next().is_none()) {
        return Err(format!(
            "`install: {{webhooks: {}}}`: there is no webhook in it: name the manifest with the {MUTATING} or the {VALIDATING}",
            path.display()
        ));
    }
    Ok(found)
}

impl Configuration {
    pub fn hooks(&self) -> impl Iterator<Item = Hook<'_>> {
        let hooks = self.object["webhooks"].as_array().into_iter().flatten();
        hooks.map(|raw| Hook { mutating: self.mutating, raw })
    }
}

impl<'a> Hook<'a> {
    /// Wraps the JSON of a webhook in a configuration.
    pub fn of(mutating: bool, raw: &'a Value) -> Self {
        Self { mutating, raw }
    }

    /// The name of the webhook; empty if it has none.
    pub fn name(&self) -> &'a str {
        self.raw["name"].as_str().unwrap_or_default()
    }

    /// The path of the webhook, from its service or its URL.
    pub fn path(&self) -> String {
        let client = &self.raw["clientConfig"];
        let of_url = || {
            let (_, rest) = client["url"].as_str()?.split_once("://")?;
            rest.find('/').map(|at| &rest[at..])
        };
        let path = client["service"]["path"].as_str().or_else(of_url).unwrap_or("/");
        if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
    }

    /// Whether the webhook's rules cover an operation on a resource, not counting subresources.
    pub fn covers(&self, operation: &str, group: &str, version: &str, plural: &str) -> bool {
        let has = |rule: &Value, key: &str, wanted: &[&str]| {
            let list = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            list.into_iter().any(|item| item == "*" || wanted.contains(&item))
        };
        // It also reviews the same objects in another version, unless it requires an exact match.
        let is_exact = self.raw["matchPolicy"] == "Exact";
        self.raw["rules"].as_array().into_iter().flatten().any(|rule| {
            has(rule, "operations", &[operation])
                && has(rule, "apiGroups", &[group])
                && (!is_exact || has(rule, "apiVersions", &[version]))
                && has(rule, "resources", &[plural, "*/*", &format!("{plural}/*")])
        })
    }

    /// The reason why the webhook would review no write of a run, as far as the scenario file shows.
    pub fn unmatched(&self, written: &[Written]) -> Option<String> {
        let covered: Vec<&Written> = written
            .iter()
            .filter(|one| {
                one.operations.iter().any(|operation| self.covers(operation, &one.group, &one.version, &one.plural))
            })
            .collect();
        if covered.is_empty() {
            let each: Vec<String> = written.iter().map(Written::text).collect();
            let each = if each.is_empty() { "nothing is written".to_owned() } else { each.join(", ") };
            return Some(format!("its rules ({}) match no written object: {each}", self.rules()));
        }
        let selector = &self.raw["namespaceSelector"];
        let missing = covered.iter().map(|one| one.namespace.as_ref().and_then(|labels| unselected(selector, labels)));
        let missing: Option<Vec<String>> = missing.collect();
        let (first, one) = (missing?.into_iter().next()?, covered.first()?);
        Some(format!("its namespaceSelector wants {first}, and the namespaces of the {} are not so", one.by))
    }

    /// The webhook's rules as text, for messages.
    fn rules(&self) -> String {
        let list = |rule: &Value, key: &str| {
            let items = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            items.collect::<Vec<_>>().join("|")
        };
        let rules = self.raw["rules"].as_array().into_iter().flatten();
        let rule = |rule: &Value| {
            let (group, resources) = (list(rule, "apiGroups"), list(rule, "resources"));
            let dot = if group.is_empty() { "" } else { "." };
            format!("{} {resources}{dot}{group}", list(rule, "operations"))
        };
        let all: Vec<String> = rules.map(rule).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }
}

impl Written {
    /// The writes to the resource as text, such as `CREATE|UPDATE caches.cache.example.com by churn`.
    fn text(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{} {}{dot}{} by the {}", self.operations.join("|"), self.plural, self.group, self.by)
    }
}

/// The requirement of a selector that a namespace with only these labels does not meet; `None` if the selector matches.
fn unselected(selector: &Value, labels: &BTreeMap<String, String>) -> Option<String> {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    for (key, value) in equal {
        let value = value.as_str().unwrap_or_default();
        if labels.get(key).map(String::as_str) != Some(value) {
            return Some(format!("the label {key}={value}"));
        }
    }
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = one["key"].as_str().unwrap_or_default();
        let values: Vec<&str> = one["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let has = labels.get(key).map(String::as_str);
        let wanted = match one["operator"].as_str() {
            Some("In") => !has.is_some_and(|label| values.contains(&label)),
            Some("NotIn") => has.is_some_and(|label| values.contains(&label)),
            Some("Exists") => has.is_none(),
            Some("DoesNotExist") => has.is_some(),
            _ => false,
        };
        if wanted {
            let operator = one["operator"].as_str().unwrap_or_default();
            return Some(format!("{key} {operator} {}", values.join("|")).trim_end().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(more: &Value) -> Value {
        let mut hook = json!({
            "name": "vcache.kb.io", "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/validate-caches"}},
            "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["cache.example.com"], "apiVersions": ["v1"], "resources": ["caches"]}]
        });
        for (key, value) in more.as_object().unwrap() {
            hook[key] = value.clone();
        }
        hook
    }

    fn written(group: &str, plural: &str, operations: &[&'static str]) -> Written {
        let namespace = Some(BTreeMap::from([("longhaul.dev/churn".to_owned(), "7".to_owned())]));
        Written {
            by: "churn",
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            operations: operations.to_vec(),
            namespace,
        }
    }

    #[test]
    fn who_would_be_asked_is_known_before() {
        let plain = hook(&json!({}));
        let plain = Hook::of(false, &plain);
        assert_eq!((plain.name(), &*plain.path()), ("vcache.kb.io", "/validate-caches"));
        let caches = written("cache.example.com", "caches", &["CREATE"]);
        assert_eq!(plain.unmatched(&[written("", "pods", &["CREATE"]), caches.clone()]), None);
        assert_eq!(
            plain
                .unmatched(&[written("", "pods", &["CREATE"]), written("cache.example.com", "caches", &["DELETE"])])
                .unwrap(),
            "its rules (CREATE|UPDATE caches.cache.example.com) match no written object: CREATE pods by the churn, DELETE \
             caches.cache.example.com by the churn"
        );
        let narrow = hook(&json!({"namespaceSelector": {"matchLabels": {"admission": "enabled"}}}));
        assert_eq!(
            Hook::of(false, &narrow).unmatched(std::slice::from_ref(&caches)).unwrap(),
            "its namespaceSelector wants the label admission=enabled, and the namespaces of the churn are not so"
        );
        let wide = hook(
            &json!({"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}}),
        );
        assert_eq!(Hook::of(false, &wide).unmatched(&[caches]), None);
    }

    #[test]
    fn a_file_without_webhooks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let here = Ground::looked_at(folder.path());
        let file = folder.path().join("service.yaml");
        std::fs::write(&file, "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n").unwrap();
        assert!(read(&here, &file).unwrap_err().contains("there is no webhook in it: name the manifest"));
        let error = read(&here, &folder.path().join("none.yaml")).unwrap_err();
        assert!(error.starts_with("`install: {webhooks: …}`: "), "{error}");
        std::fs::write(
            &file,
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
             ValidatingWebhookConfiguration\nmetadata: {name: v}\nwebhooks: [{name: a.b.c, clientConfig: {url: 'https://x/y'}}]\n",
        )
        .unwrap();
        let read = read(&here, &file).unwrap();
        let hook = read[0].hooks().next().unwrap();
        assert_eq!((read.len(), hook.mutating, &*hook.path()), (1, false, "/y"));
    }
}
