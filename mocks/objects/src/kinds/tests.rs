use serde_json::json;

use crate::catalogue::Catalogue;
use crate::{defaults, object};

/// The fields that are wrong with an object as a client sends it.
fn wrong(full_name: &str, mut value: serde_json::Value) -> Vec<String> {
    let catalogue = Catalogue::builtin();
    let resource = catalogue.by_full_name(full_name).unwrap();
    defaults::apply(&mut value, resource, jiff::Timestamp::UNIX_EPOCH);
    object::check_content(&value, None, resource).into_iter().map(|cause| cause.field).collect()
}

/// Kinds that the server of the comparison does not serve in this version; the others are compared with it.
#[test]
fn kinds_that_came_later() {
    let pod = |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
    let cron = |schedule: &str, policy: &str| json!({"spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": pod(policy)}}}});
    for schedule in ["*/5 * * * *", "@hourly", "0 0 1,15 * mon-fri", "@every 1h"] {
        assert_eq!(wrong("cronjobs.batch", cron(schedule, "Never")), Vec::<String>::new(), "{schedule}");
    }
    for schedule in ["x", "* * * *", "@often", "* * * * $"] {
        assert_eq!(wrong("cronjobs.batch", cron(schedule, "Never")), ["spec.schedule"], "{schedule}");
    }
    let always = wrong("cronjobs.batch", cron("@daily", "Always"));
    assert_eq!(always, ["spec.jobTemplate.spec.template.spec.restartPolicy"]);
    let budget = |spec| wrong("poddisruptionbudgets.policy", json!({"spec": spec}));
    assert_eq!(budget(json!({"minAvailable": 1, "maxUnavailable": 1})), ["spec"]);
    assert_eq!(budget(json!({"minAvailable": "half"})), ["spec.minAvailable"]);
    assert_eq!(budget(json!({"maxUnavailable": "101%"})), ["spec.maxUnavailable"]);
    assert_eq!(budget(json!({"maxUnavailable": "100%"})), Vec::<String>::new());
}

#[test]
fn expressions_select_labels_too() {
    let set = |operator: &str, values: serde_json::Value| {
        let selector = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        wrong("replicasets.apps", json!({"spec": {"selector": selector, "template": template}}))
    };
    assert_eq!(set("In", json!(["b", "c"])), Vec::<String>::new());
    assert_eq!(set("Exists", json!([])), Vec::<String>::new());
    assert_eq!(set("NotIn", json!(["b"])), ["spec.template.metadata.labels"]);
    assert_eq!(set("DoesNotExist", json!([])), ["spec.template.metadata.labels"]);
}
