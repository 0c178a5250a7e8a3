//! What the kinds share that keep pods of a template running.

use serde_json::{Map, Value};

use super::causes::{at_least, unsupported};
use super::print::Row;
use super::{Causes, pod_spec};
use crate::status::Cause;

/// The selector of `ReplicaSet`s, `StatefulSet`s and `DaemonSet`s, and the pods that they make.
pub(super) fn check(value: &Value, kind: &str, causes: &mut Causes) {
    let spec = &value["spec"];
    at_least(value, "/spec/replicas", "spec.replicas", 0, causes);
    let selector = &spec["selector"];
    // The real server has an error for an empty selector, but not for one of daemon sets that is absent.
    if selector.is_null() && kind != "daemonset" {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(Map::is_empty) {
        causes.push(Cause::invalid("spec.selector", "{}", &format!("empty selector is invalid for {kind}")));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels.to_string(), why));
    }
    check_template(&spec["template"]["spec"], "spec.template.spec", causes);
}

/// The pods of a template that is kept running.
pub(super) fn check_template(spec: &Value, at: &str, causes: &mut Causes) {
    pod_spec::check(spec, at, causes);
    let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
    if matches!(policy, "OnFailure" | "Never") {
        causes.push(unsupported(&format!("{at}.restartPolicy"), policy, "\"Always\""));
    }
}

fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, text)| labels.get(key) == Some(text));
    let fits = |expression: &Value| {
        let label = labels.get(expression["key"].as_str().unwrap_or_default());
        let among = || expression["values"].as_array().into_iter().flatten().any(|value| Some(value) == label);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => true,
        }
    };
    equal && selector["matchExpressions"].as_array().into_iter().flatten().all(fits)
}

pub(super) const REPLICAS: &str =
    "Name, Desired:integer, Current:integer, Ready:integer, Age, Containers+, Images+, Selector+";

pub(super) fn replicas(row: &Row<'_>, template: [Value; 3]) -> Vec<Value> {
    let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(|path| row.number(path));
    let mut cells = vec![row.name()];
    cells.extend(counts.map(Value::from));
    cells.push(row.age());
    cells.extend(template);
    cells
}

pub(super) fn ready(row: &Row<'_>) -> Value {
    Value::from(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")))
}
