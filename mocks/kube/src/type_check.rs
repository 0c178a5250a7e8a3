//! The type check of `ValidatingAdmissionPolicy`s: warnings in the status for expressions that do not fit the types of
//! the matched objects (Kubernetes documentation, "Validating Admission Policy", "Type checking").
//!
//! Owns the choice of types and the status, which a controller of a real cluster writes. The crate `mock_cel` checks
//! expressions.

use std::collections::BTreeSet;
use std::sync::Arc;

use mock_cel::{Decl, Typed};
use mock_objects::catalogue::Catalogue;
use mock_objects::declared;
use mock_store::Expect;
use serde_json::{Value, json};

use super::cluster::Cluster;

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
/// Maximum number of types from one rule. If a rule reaches this number, later rules are ignored.
const TYPES_MAX: usize = 10;

/// Checks every policy that changed since its last check.
pub(crate) fn refresh(cluster: &Cluster) {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(POLICIES) else { return };
    let page = cluster.read(|store| store.list(resource.id, None, store.revision(), None, usize::MAX, |_| true));
    for version in page.map(|page| page.items).unwrap_or_default() {
        let mut policy = version.value();
        let generation = policy["metadata"]["generation"].as_i64().unwrap_or(0);
        if policy["status"]["observedGeneration"].as_i64().unwrap_or(0) >= generation {
            continue;
        }
        let warnings = check(&catalogue, &policy);
        let checked = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
        let status = policy.as_object_mut().map(|fields| fields.entry("status").or_insert_with(|| json!({})));
        if let Some(status) = status.and_then(Value::as_object_mut) {
            status.insert("observedGeneration".to_owned(), generation.into());
            status.insert("typeChecking".to_owned(), checked);
        }
        // If another write came first, the next call checks the policy.
        let _ = cluster.put(resource, Expect::Revision(version.revision), policy);
    }
}

/// Returns a warning for each expression that does not fit a matched type.
fn check(catalogue: &Catalogue, policy: &Value) -> Vec<Value> {
    let spec = &policy["spec"];
    let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let kind = &spec["paramKind"];
    let params = of_kind(catalogue, &text(kind, "apiVersion"), &text(kind, "kind"));
    let mut types = Vec::new();
    for (group, version, kind) in matched(catalogue, spec) {
        let api_version = mock_objects::builtin::api_version(&group, &version);
        let Some(object) = of_kind(catalogue, &api_version, &kind) else { continue };
        let mut typed = Typed::new(&object, params.as_ref());
        for variable in spec["variables"].as_array().into_iter().flatten() {
            typed.define(&text(variable, "name"), &text(variable, "expression"));
        }
        types.push((format!("{api_version}, Kind={kind}"), typed));
    }
    let mut warnings = Vec::new();
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for key in ["expression", "messageExpression"] {
            let source = validation[key].as_str().filter(|source| !source.is_empty());
            let found = source.into_iter().flat_map(|source| {
                types.iter().filter_map(move |(kind, typed)| Some(format!("{kind}: {}\n", typed.issues(source)?)))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                let field = format!("spec.validations[{index}].{key}");
                warnings.push(json!({"fieldRef": field, "warning": found.join("\n")}));
            }
        }
    }
    warnings
}

fn of_kind(catalogue: &Catalogue, api_version: &str, kind: &str) -> Option<Arc<Decl>> {
    declared::of(catalogue.by_kind(api_version, kind)?, api_version)
}

/// `(group, version, kind)` of the types that the rules match, sorted. A rule with a wildcard for its group or version
/// adds no type.
fn matched(catalogue: &Catalogue, spec: &Value) -> BTreeSet<(String, String, String)> {
    let mut found = BTreeSet::new();
    for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let list = |key: &str| -> BTreeSet<&str> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (list("apiGroups"), list("apiVersions"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let mut count = 0;
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |version| (*group, *version))) {
            for plural in list("resources").into_iter().filter(|plural| !plural.contains(['*', '/'])) {
                let Some(resource) = catalogue.by_path(group, version, plural) else { continue };
                found.insert((group.to_owned(), version.to_owned(), resource.kind.to_string()));
                count += 1;
                if count == TYPES_MAX {
                    return found;
                }
            }
        }
    }
    found
}
