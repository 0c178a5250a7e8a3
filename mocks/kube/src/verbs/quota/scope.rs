//! Which objects a quota counts: its scopes ("Resource Quotas", quota scopes).
//!
//! Pure. Only pods have scopes; a quota with one counts nothing else.

use serde_json::Value;

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Quota;
use mock_objects::selector::{from_label_selector, labels_match};

/// Whether the object is in all scopes of the quota.
pub(super) fn includes(quota: &Value, resource: &Resource, value: &Value) -> bool {
    let spec = &quota["spec"];
    let plain = spec["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let selected = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let is_pod = resource.rules.quota == Quota::Pods;
    plain.into_iter().all(|scope| is_pod && is_in(scope, "Exists", &Value::Null, value))
        && selected.into_iter().all(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            is_pod && is_in(text("scopeName"), text("operator"), &one["values"], value)
        })
}

fn is_in(scope: &str, operator: &str, values: &Value, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    let best_effort = pod["status"]["qosClass"] == "BestEffort";
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => has_class(operator, values, spec["priorityClassName"].as_str().unwrap_or_default()),
        "CrossNamespacePodAffinity" => looks_elsewhere(&spec["affinity"]),
        _ => false,
    }
}

fn has_class(operator: &str, values: &Value, class: &str) -> bool {
    let selector = serde_json::json!({"matchExpressions": [{"key": "class", "operator": operator, "values": values}]});
    let class = Some(class).filter(|class| !class.is_empty());
    from_label_selector(&selector).is_ok_and(|wanted| labels_match(&wanted, |_| class))
}

/// Whether a pod wants to be near pods of other namespaces, or far from them.
fn looks_elsewhere(affinity: &Value) -> bool {
    let elsewhere = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|list| !list.is_empty()) || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |key: &str| affinity[*kind][key].as_array().into_iter().flatten();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(elsewhere)
            || terms("preferredDuringSchedulingIgnoredDuringExecution").any(|term| elsewhere(&term["podAffinityTerm"]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use mock_objects::catalogue::Catalogue;

    fn counts(spec: &Value, full_name: &str, value: &Value) -> bool {
        includes(&json!({"spec": spec}), Catalogue::builtin().by_full_name(full_name).unwrap(), value)
    }

    #[test]
    fn who_is_in_a_scope() {
        let pod = json!({"spec": {"activeDeadlineSeconds": 5, "priorityClassName": "high"}, "status": {"qosClass": "Burstable"}});
        let scope = |scope: &str| counts(&json!({"scopes": [scope]}), "pods", &pod);
        assert!(scope("Terminating") && scope("NotBestEffort") && scope("PriorityClass"));
        assert!(
            !scope("NotTerminating") && !scope("BestEffort") && !scope("CrossNamespacePodAffinity") && !scope("Odd")
        );
        assert!(!counts(&json!({"scopes": ["Terminating", "BestEffort"]}), "pods", &pod), "all of them");
        assert!(!counts(&json!({"scopes": ["Terminating"]}), "services", &pod), "only pods have scopes");
        assert!(counts(&json!({}), "services", &json!({})));
        let class = |operator: &str, values: Value| {
            let one = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            counts(&json!({"scopeSelector": {"matchExpressions": [one]}}), "pods", &pod)
        };
        assert!(class("In", json!(["high"])) && class("Exists", json!(null)) && class("NotIn", json!(["low"])));
        assert!(!class("In", json!(["low"])) && !class("DoesNotExist", json!(null)));
    }

    #[test]
    fn who_looks_into_other_namespaces() {
        let scope = json!({"scopes": ["CrossNamespacePodAffinity"]});
        let term = |term: Value| {
            json!({"spec": {"affinity": {"podAntiAffinity":
            {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}}}})
        };
        assert!(counts(&scope, "pods", &term(json!({"namespaces": ["other"]}))));
        assert!(counts(&scope, "pods", &term(json!({"namespaceSelector": {}}))));
        assert!(!counts(&scope, "pods", &term(json!({"topologyKey": "zone"}))));
    }
}
