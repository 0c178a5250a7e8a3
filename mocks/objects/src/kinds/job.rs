//! `Job`: runs pods until enough of them have ended well.

use serde_json::{Map, Value, json};

use super::causes::at_least;
use super::print::{Printer, Row, age};
use super::{Causes, Kind, pod_spec};
use crate::fields::{self, set};
use crate::status::Cause;

pub(super) const JOB: Kind = Kind {
    categories: &["all"],
    about: "Runs pods until enough of them have ended well.",
    status: true,
    messages: &[
        "Job 1:metadata:ObjectMeta 2:spec:JobSpec 3:status:JobStatus",
        "JobSpec 1:parallelism:i? 2:completions:i? 3:activeDeadlineSeconds:i? 4:selector:LabelSelector \
         5:manualSelector:b? 6:template:PodTemplateSpec 7:backoffLimit:i? 8:ttlSecondsAfterFinished:i? \
         9:completionMode:s? 10:suspend:b? 11:podFailurePolicy:PodFailurePolicy 12:backoffLimitPerIndex:i? \
         13:maxFailedIndexes:i? 14:podReplacementPolicy:s? 15:managedBy:s? 16:successPolicy:SuccessPolicy",
        "JobStatus 1:conditions:[JobCondition] 2:startTime:T 3:completionTime:T 4:active:i 5:succeeded:i 6:failed:i \
         7:completedIndexes:s 8:uncountedTerminatedPods:UncountedTerminatedPods 9:ready:i? 10:failedIndexes:s? \
         11:terminating:i?",
        "JobCondition 1:type:s! 2:status:s! 3:lastProbeTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s",
        "PodFailurePolicy 1:rules:[PodFailurePolicyRule]",
        "PodFailurePolicyRule 1:action:s! 2:onExitCodes:PodFailurePolicyOnExitCodesRequirement \
         3:onPodConditions:[PodFailurePolicyOnPodConditionsPattern]",
        "PodFailurePolicyOnExitCodesRequirement 1:containerName:s? 2:operator:s! 3:values:[i]",
        "PodFailurePolicyOnPodConditionsPattern 1:type:s! 2:status:s!",
        "SuccessPolicy 1:rules:[SuccessPolicyRule]",
        "SuccessPolicyRule 1:succeededIndexes:s? 2:succeededCount:i?",
        "UncountedTerminatedPods 1:succeeded:[s] 2:failed:[s]",
    ],
    published_merges: &[("JobStatus", "conditions", "merge", "type")],
    selectable: &[("status.successful", &["/status/succeeded"])],
    selectable_unset: &[("status.successful", "0")],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({}),
    named,
    check: |value, causes| check_at(value, "/spec", causes),
    fixed: &["/spec/selector", "/spec/template"],
    orphans: true,
    ..Kind::namespaced("batch", &["v1"], "jobs", "Job")
};

/// How the pods of a job are known: the labels, and their names before Kubernetes 1.27.
const OF_JOB: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];

const NAME_OF_JOB: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// A new job also gets the selector of its pods, unless it brings its own.
fn defaults(value: &mut Value) {
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
    pod_spec::fill_template(value, "/spec/template");
    // A job without labels has those of its pods.
    if has_no_labels(value) {
        labels_of_pods(value);
    }
}

/// A job that was given no selector selects its pods by its uid, which they are labelled with.
fn named(value: &mut Value) {
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
        fields::metadata(value).insert("labels".to_owned(), labels);
    }
}

fn selected(value: &mut Value) {
    let (uid, name) = (fields::meta(value, "uid").to_owned(), fields::meta(value, "name").to_owned());
    for (keys, text) in [(OF_JOB, &uid), (NAME_OF_JOB, &name)] {
        for key in keys {
            set(value, &["spec", "template", "metadata", "labels"], key, json!(text));
        }
    }
    set(value, &["spec", "selector", "matchLabels"], OF_JOB[0], json!(uid));
}

pub(super) fn check_at(value: &Value, at: &str, causes: &mut Causes) {
    let Some(spec) = value.pointer(at) else { return };
    let field = at.trim_start_matches('/').replace('/', ".");
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        at_least(value, &format!("{at}/{key}"), &format!("{field}.{key}"), 0, causes);
    }
    let template = &spec["template"]["spec"];
    pod_spec::check(template, &format!("{field}.template.spec"), causes);
    if template["restartPolicy"].as_str().unwrap_or("Always") == "Always" {
        let why = "valid values: \"OnFailure\", \"Never\"";
        causes.push(Cause::required(&format!("{field}.template.spec.restartPolicy"), why));
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Status, Completions, Duration, Age, Containers+, Images+, Selector+",
    cells: |row| {
        let done = row.number("/status/succeeded");
        let completions = match (row.at("/spec/completions"), row.number("/spec/parallelism")) {
            (Some(wanted), _) => format!("{done}/{wanted}"),
            (None, together) if together > 1 => format!("{done}/1 of {together}"),
            (None, _) => format!("{done}/1"),
        };
        let mut cells = vec![row.name(), status(row).into(), completions.into(), how_long(row).into(), row.age()];
        cells.extend(row.template());
        cells
    },
};

fn status(row: &Row<'_>) -> &'static str {
    let is = |kind: &str| row.is_true(kind);
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if row.is_deleting() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn how_long(row: &Row<'_>) -> String {
    let (start, end) = (row.text("/status/startTime"), row.text("/status/completionTime"));
    match (start, end.parse()) {
        ("", _) => String::new(),
        (start, Ok(end)) => age(start, end),
        (start, Err(_)) => age(start, row.now),
    }
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
            crate::defaults::apply(
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
