//! What the kinds that make pods have without being asked ("Kubernetes API reference", Workload Resources).

use serde_json::{Map, Value, json};

use super::{each, pod, set};
use crate::object;

/// How the pods of a job are known: the labels, and their names before Kubernetes 1.27.
const OF_JOB: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_OF_JOB: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// The pod template at `/spec/template`, or deeper for a cron job.
fn template(value: &mut Value, at: &str) {
    pod::spec(value.pointer_mut(&format!("{at}/spec")));
    // The real server's type has a creation time there that nobody sets, and shows it.
    if let Some(template) = value.pointer_mut(at) {
        set(template, &["metadata"], "creationTimestamp", Value::Null);
    }
}

pub(super) fn deployment(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec"], "progressDeadlineSeconds", json!(600));
    set(value, &["spec", "strategy"], "type", json!("RollingUpdate"));
    if value.pointer("/spec/strategy/type").is_some_and(|kind| kind == "RollingUpdate") {
        for key in ["maxSurge", "maxUnavailable"] {
            set(value, &["spec", "strategy", "rollingUpdate"], key, json!("25%"));
        }
    }
    template(value, "/spec/template");
}

pub(super) fn stateful_set(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "podManagementPolicy", json!("OrderedReady"));
    // The real server's type always shows it.
    set(value, &["spec"], "serviceName", json!(""));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec", "updateStrategy"], "type", json!("RollingUpdate"));
    if value["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
        set(value, &["spec", "updateStrategy", "rollingUpdate"], "partition", json!(0));
    }
    for key in ["whenDeleted", "whenScaled"] {
        set(value, &["spec", "persistentVolumeClaimRetentionPolicy"], key, json!("Retain"));
    }
    template(value, "/spec/template");
    if let Some(spec) = value.get_mut("spec") {
        each(spec, "volumeClaimTemplates", |claim| {
            set(claim, &[], "apiVersion", json!("v1"));
            set(claim, &[], "kind", json!("PersistentVolumeClaim"));
            set(claim, &["metadata"], "creationTimestamp", Value::Null);
            super::storage::claim(claim);
            set(claim, &["status"], "phase", json!("Pending"));
        });
    }
}

pub(super) fn replica_set(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    template(value, "/spec/template");
}

pub(super) fn replication_controller(value: &mut Value) {
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels @ Value::Object(_)) = labels {
        set(value, &["spec"], "selector", labels.clone());
        set(value, &["metadata"], "labels", labels);
    }
    replica_set(value);
}

pub(super) fn daemon_set(value: &mut Value) {
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    set(value, &["spec", "updateStrategy"], "type", json!("RollingUpdate"));
    if value["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
        set(value, &["spec", "updateStrategy", "rollingUpdate"], "maxSurge", json!(0));
        set(value, &["spec", "updateStrategy", "rollingUpdate"], "maxUnavailable", json!(1));
    }
    template(value, "/spec/template");
    set(value, &["metadata", "annotations"], object::TEMPLATE_GENERATION, json!("1"));
}

/// A new job also gets the selector of its pods, unless it brings its own.
pub(super) fn job(value: &mut Value) {
    if value["spec"]["completions"].is_null() && value["spec"]["parallelism"].is_null() {
        set(value, &["spec"], "completions", json!(1));
    }
    set(value, &["spec"], "parallelism", json!(1));
    set(value, &["spec"], "backoffLimit", json!(6));
    set(value, &["spec"], "completionMode", json!("NonIndexed"));
    set(value, &["spec"], "manualSelector", json!(false));
    set(value, &["spec"], "suspend", json!(false));
    let replaced = if value["spec"]["podFailurePolicy"].is_object() { "Failed" } else { "TerminatingOrFailed" };
    set(value, &["spec"], "podReplacementPolicy", json!(replaced));
    template(value, "/spec/template");
    // A job without labels has those of its pods.
    if has_no_labels(value) {
        labels_of_pods(value);
    }
}

/// A job that was given no selector selects its pods by its uid, which they are labelled with.
pub(super) fn selected_job(value: &mut Value) {
    if value["spec"]["manualSelector"] == json!(true) {
        return;
    }
    let shared = Some(&value["metadata"]["labels"]) == value.pointer("/spec/template/metadata/labels");
    let shared = shared || has_no_labels(value);
    selected(value);
    if shared {
        labels_of_pods(value);
    }
}

fn has_no_labels(value: &Value) -> bool {
    value["metadata"]["labels"].as_object().is_none_or(Map::is_empty)
}

fn labels_of_pods(value: &mut Value) {
    let labels = value.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
    if let Some(labels) = labels {
        object::metadata(value).insert("labels".to_owned(), labels);
    }
}

fn selected(value: &mut Value) {
    let (uid, name) = (object::meta(value, "uid").to_owned(), object::meta(value, "name").to_owned());
    for (keys, text) in [(OF_JOB, &uid), (NAME_OF_JOB, &name)] {
        for key in keys {
            set(value, &["spec", "template", "metadata", "labels"], key, json!(text));
        }
    }
    set(value, &["spec", "selector", "matchLabels"], OF_JOB[0], json!(uid));
}

pub(super) fn cron_job(value: &mut Value) {
    set(value, &["spec"], "concurrencyPolicy", json!("Allow"));
    set(value, &["spec"], "suspend", json!(false));
    set(value, &["spec"], "successfulJobsHistoryLimit", json!(3));
    set(value, &["spec"], "failedJobsHistoryLimit", json!(1));
    set(value, &["spec", "jobTemplate", "metadata"], "creationTimestamp", Value::Null);
    template(value, "/spec/jobTemplate/spec/template");
}

pub(super) fn pod_template(value: &mut Value) {
    template(value, "/template");
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn a_job_knows_its_pods_and_keeps_its_own_selector() {
        let job = |manual: bool| {
            let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": manual,
                "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}});
            super::super::apply(
                &mut job,
                Catalogue::builtin().by_full_name("jobs.batch").unwrap(),
                Timestamp::UNIX_EPOCH,
            );
            job
        };
        let of_uid = "batch.kubernetes.io~1controller-uid";
        let labelled = job(false);
        assert_eq!(labelled.pointer(&format!("/spec/selector/matchLabels/{of_uid}")), Some(&json!("u")));
        assert_eq!(labelled.pointer(&format!("/spec/template/metadata/labels/{of_uid}")), Some(&json!("u")));
        assert_eq!(labelled["metadata"]["labels"]["job-name"], "j");
        let own = job(true);
        assert_eq!(own["spec"]["selector"], json!({"matchLabels": {"a": "b"}}));
        assert_eq!(own["metadata"]["labels"], json!({"a": "b"}));
    }
}
