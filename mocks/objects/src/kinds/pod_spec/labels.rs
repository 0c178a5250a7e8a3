//! Selectors of a new pod that refer to its own labels: `matchLabelKeys` and `mismatchLabelKeys`.
//!
//! Adds the values of the pod's labels to the pod's selectors (KEP-3633, KEP-3243).

use serde_json::{Value, json};

use crate::fields::each;

/// Adds a condition for each label in `matchLabelKeys` and `mismatchLabelKeys` to the selector in the same term.
pub(in crate::kinds) fn write(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = pod.get_mut("spec") else { return };
    each(spec, "topologySpreadConstraints", |one| ask(one, "matchLabelKeys", "In", &labels));
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut(kind)) else { continue };
        let both = |term: &mut Value| {
            ask(term, "matchLabelKeys", "In", &labels);
            ask(term, "mismatchLabelKeys", "NotIn", &labels);
        };
        each(terms, "preferredDuringSchedulingIgnoredDuringExecution", |wish| {
            if let Some(term) = wish.get_mut("podAffinityTerm") {
                both(term);
            }
        });
        each(terms, "requiredDuringSchedulingIgnoredDuringExecution", both);
    }
}

fn ask(term: &mut Value, keys: &str, operator: &str, labels: &Value) {
    let keys: Vec<String> =
        term[keys].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
    for key in keys {
        let Some(value) = labels[&key].as_str() else { continue };
        let expression = json!({"key": key, "operator": operator, "values": [value]});
        let all = selector.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.push(expression);
        }
    }
}
