//! `Deployment`: keeps a number of equal pods running and replaces them step by step.

use serde_json::{Value, json};

use super::causes::{at_least, unsupported};
use super::print::Printer;
use super::{Causes, Generation, Kind, pod_spec, workload};
use crate::fields::set;
use crate::status::Cause;

pub(super) const DEPLOYMENT: Kind = Kind {
    short_names: &["deploy"],
    categories: &["all"],
    about: "Keeps a number of equal pods running and replaces them step by step when their template changes.",
    status: true,
    scale: true,
    messages: &[
        "Deployment 1:metadata:ObjectMeta 2:spec:DeploymentSpec 3:status:DeploymentStatus",
        "DeploymentSpec 1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec \
         4:strategy:DeploymentStrategy 5:minReadySeconds:i 6:revisionHistoryLimit:i? 7:paused:b \
         9:progressDeadlineSeconds:i?",
        "DeploymentStrategy 1:type:s 2:rollingUpdate:RollingUpdateDeployment",
        "RollingUpdateDeployment 1:maxUnavailable:O? 2:maxSurge:O?",
        "DeploymentStatus 1:observedGeneration:i 2:replicas:i 3:updatedReplicas:i 4:availableReplicas:i \
         5:unavailableReplicas:i 6:conditions:[DeploymentCondition] 7:readyReplicas:i 8:collisionCount:i? \
         9:terminatingReplicas:i?",
        "DeploymentCondition 1:type:s! 2:status:s! 4:reason:s 5:message:s 6:lastUpdateTime:T 7:lastTransitionTime:T",
    ],
    published_merges: &[
        ("DeploymentSpec", "strategy", "retainKeys", ""),
        ("DeploymentStatus", "conditions", "merge", "type"),
    ],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({}),
    condition_times: &["lastUpdateTime", "lastTransitionTime"],
    check,
    fixed: &["/spec/selector"],
    // Annotations are copied to its ReplicaSets, so they count as well.
    generation: Generation::SpecAndAnnotations,
    status_metadata: &["annotations", "finalizers"],
    ..Kind::namespaced("apps", &["v1"], "deployments", "Deployment")
};

fn defaults(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec"], "progressDeadlineSeconds", json!(600));
    set(value, &["spec", "strategy"], "type", json!("RollingUpdate"));
    if value.pointer("/spec/strategy/type").is_some_and(|kind| kind == "RollingUpdate") {
        for key in ["maxSurge", "maxUnavailable"] {
            set(value, &["spec", "strategy", "rollingUpdate"], key, json!("25%"));
        }
    }
    pod_spec::fill_template(value, "/spec/template");
}

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    at_least(value, "/spec/replicas", "spec.replicas", 0, causes);
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        causes.push(Cause::invalid("spec.selector", "{}", "empty selector is invalid for deployment"));
    }
    let mut wanted = selector["matchLabels"].as_object().into_iter().flatten();
    if selector.is_null() || wanted.any(|(key, text)| labels.get(key) != Some(text)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels.to_string(), why));
    }
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"].get("rollingUpdate").is_some_and(Value::is_object) {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
    }
    pod_spec::check(&spec["template"]["spec"], "spec.template.spec", causes);
    let policy = spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if policy != "Always" && matches!(policy, "OnFailure" | "Never") {
        causes.push(unsupported("spec.template.spec.restartPolicy", policy, "\"Always\""));
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Ready, Up-to-date, Available, Age, Containers+, Images+, Selector+",
    cells: |row| {
        let mut cells = vec![
            row.name(),
            workload::ready(row),
            row.number("/status/updatedReplicas").into(),
            row.number("/status/availableReplicas").into(),
            row.age(),
        ];
        cells.extend(row.template());
        cells
    },
};
