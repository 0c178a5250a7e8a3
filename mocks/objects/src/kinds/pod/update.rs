//! The allowed changes of an existing pod ("Pod update and replacement").

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::at::At;
use super::super::causes::Refuse;
use crate::status::Cause;

/// Refuses forbidden changes in an update.
pub(super) fn check(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let at = At::from("spec");
    let count = |pod: &Value, list: &str| pod["spec"][list].as_array().map_or(0, Vec::len);
    for list in ["containers", "initContainers"] {
        if count(new, list) != count(old, list) {
            return causes.forbidden(at.field(list), "pod updates may not add or remove containers");
        }
    }
    let deadline = at.field("activeDeadlineSeconds");
    match (new["spec"]["activeDeadlineSeconds"].as_i64(), old["spec"]["activeDeadlineSeconds"].as_i64()) {
        (Some(now), Some(before)) if now > before => {
            return causes.invalid(deadline, &now, "must be less than or equal to previous value");
        }
        (None, Some(_)) => causes.invalid(deadline, "null", "must not update from a positive integer to nil value"),
        _ => {}
    }
    if loses_a_toleration(new, old) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden(at.field("tolerations"), why);
    }
    gates(new, old, at.field("schedulingGates"), causes);
    if spec_differs(new, old) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                   existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        causes.forbidden(at, why);
    }
}

/// Refuses new scheduling gates.
fn gates(new: &Value, old: &Value, list: At<'_>, causes: &mut Vec<Cause>) {
    let all = |pod: &Value| -> Vec<String> {
        let gates = pod["spec"]["schedulingGates"].as_array().into_iter().flatten();
        gates.map(|gate| gate["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let before: BTreeSet<String> = all(old).into_iter().collect();
    for (index, gate) in all(new).into_iter().enumerate().filter(|(_, gate)| !before.contains(gate)) {
        let why = format!("only deletion is allowed, but found new scheduling gate '{gate}'");
        causes.forbidden(list.item(index).field("name"), &why);
    }
}

/// Whether a toleration is missing, ignoring its seconds.
fn loses_a_toleration(new: &Value, old: &Value) -> bool {
    let all = |pod: &Value| -> Vec<Value> {
        let mut list = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        for toleration in list.iter_mut().filter_map(Value::as_object_mut) {
            toleration.remove("tolerationSeconds");
        }
        list
    };
    let now = all(new);
    all(old).iter().any(|toleration| !now.contains(toleration))
}

fn spec_differs(new: &Value, old: &Value) -> bool {
    let frozen = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
                fields.remove(key);
            }
            for list in ["containers", "initContainers"] {
                for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(container) = container.as_object_mut() {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    frozen(new) != frozen(old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_may_end_earlier_and_wait_for_less() {
        let pod = |spec: Value| {
            let mut pod = json!({"spec": {"containers": [{"name": "c", "image": "a"}]}});
            pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            pod
        };
        let said = |old: Value, new: Value| {
            let mut causes = Vec::new();
            check(&pod(new), &pod(old), &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        let nothing = Vec::<String>::new();
        let until = |seconds: i64| json!({"activeDeadlineSeconds": seconds});
        assert_eq!(said(json!({}), until(5)), nothing);
        assert_eq!(said(until(5), until(4)), nothing);
        assert_eq!(said(until(4), until(5)), ["spec.activeDeadlineSeconds"]);
        assert_eq!(said(until(4), json!({})), ["spec.activeDeadlineSeconds"]);
        let gates = |names: &[&str]| json!({"schedulingGates": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
        assert_eq!(said(gates(&["a", "b"]), gates(&["b"])), nothing);
        assert_eq!(said(gates(&["a"]), gates(&["a", "b"])), ["spec.schedulingGates[1].name"]);
        assert_eq!(said(json!({}), json!({"hostname": "h"})), ["spec"]);
    }
}
