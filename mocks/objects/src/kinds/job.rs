//! `Job`: runs pods until enough of them have succeeded.

mod check;
mod policies;

use serde_json::{Map, Value, json};

use super::print::{Cells, Row, age};
use super::{Causes, Kind, pod_spec};
use crate::fields::{self, set};
use crate::status::Cause;

pub(super) const JOB: Kind = Kind {
    about: "Runs pods until enough of them have ended well.",
    selectable: &[("status.successful", &["/status/succeeded"])],
    selectable_unset: &[("status.successful", "0")],
    cells: CELLS,
    defaults,
    named,
    check: check::check,
    check_new: check::check_new,
    check_update,
    orphans: true,
    ..Kind::of("jobs.batch")
};

pub(super) use check::check_spec;

/// Labels that identify the pods of a job: the present label, and the label that Kubernetes used before 1.27.
const OF_JOB: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];

const NAME_OF_JOB: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

fn defaults(value: &mut Value) {
    if value["spec"]["completions"].is_null() && value["spec"]["parallelism"].is_null() {
        set(value, &["spec"], "completions", json!(1));
    }
    set(value, &["spec"], "parallelism", json!(1));
    // If failures are counted by index, the limit for the whole job does not apply.
    let limit = if value["spec"]["backoffLimitPerIndex"].is_null() { 6 } else { i32::MAX };
    set(value, &["spec"], "backoffLimit", json!(limit));
    set(value, &["spec"], "completionMode", json!("NonIndexed"));
    set(value, &["spec"], "manualSelector", json!(false));
    set(value, &["spec"], "suspend", json!(false));
    let replaced = if value["spec"]["podFailurePolicy"].is_object() { "Failed" } else { "TerminatingOrFailed" };
    set(value, &["spec"], "podReplacementPolicy", json!(replaced));
    fill_policy(value, "/spec");
    pod_spec::fill_template(value, "/spec/template");
    // A job without labels gets those of its pods.
    if has_no_labels(value) {
        labels_of_pods(value);
    }
}

/// Sets the default status `True` of the conditions in a policy.
pub(super) fn fill_policy(value: &mut Value, at: &str) {
    let policy = value.pointer_mut(&format!("{at}/podFailurePolicy")).filter(|policy| policy.is_object());
    let Some(policy) = policy else { return };
    // The real server's type always shows it.
    set(policy, &[], "rules", Value::Null);
    fields::each(policy, "rules", |rule| {
        fields::each(rule, "onPodConditions", |condition| set(condition, &[], "status", json!("True")));
    });
}

/// Writes the job's uid into the selector of a job and into the labels of the job's pods, unless `manualSelector` is
/// set.
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

/// Refuses changes to the template, the completion fields and the failure policies of a job.
fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    let indexed = spec["completionMode"] == "Indexed";
    // Job queues (Kueue, JobSet) decide where pods run while the job waits.
    let waits = before["suspend"] == json!(true) && old["status"]["startTime"].is_null();
    let of_pods = |spec: &Value| if waits { unscheduled(&spec["template"]) } else { spec["template"].clone() };
    let mut keep = |key: &str, same: bool| {
        if !same {
            causes.push(Cause::invalid(&format!("spec.{key}"), &spec[key].to_string(), "field is immutable"));
        }
    };
    keep("completions", indexed || spec["completions"] == before["completions"]);
    keep("selector", spec["selector"] == before["selector"]);
    keep("template", of_pods(spec) == of_pods(before));
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        keep(key, spec[key] == before[key]);
    }
    let completions = &spec["completions"];
    let other = *completions != before["completions"] && !completions.is_null();
    if indexed && other && *completions != spec["parallelism"] {
        let why = "can only be modified in tandem with spec.parallelism";
        causes.push(Cause::invalid("spec.completions", &completions.to_string(), why));
    }
}

/// A copy of a template without scheduling fields, labels and annotations.
fn unscheduled(template: &Value) -> Value {
    let mut template = template.clone();
    let mut keep = |path: &str, keep: &dyn Fn(&str, &Value) -> bool| {
        if let Some(object) = template.pointer_mut(path).and_then(Value::as_object_mut) {
            object.retain(|key, value| keep(key, value));
        }
    };
    keep("/metadata", &|key, _| !["labels", "annotations"].contains(&key));
    keep("/spec/affinity", &|key, _| key != "nodeAffinity");
    keep("/spec", &|key, value| {
        let empty = key == "affinity" && *value == json!({});
        !empty && !["nodeSelector", "tolerations", "schedulingGates"].contains(&key)
    });
    keep("", &|key, value| key != "metadata" || *value != json!({}));
    template
}

const CELLS: Cells = |row| {
    let done = row.number("/status/succeeded");
    let completions = match (row.at("/spec/completions"), row.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, together) if together > 1 => format!("{done}/1 of {together}"),
        (None, _) => format!("{done}/1"),
    };
    let mut cells = vec![row.name(), status(row).into(), completions.into(), how_long(row).into(), row.age()];
    cells.extend(row.template());
    cells
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

    /// While a job is suspended, updates may change the scheduling fields of its template, as in
    /// `ValidateJobSpecUpdate` of Kubernetes 1.34.
    #[test]
    fn where_its_pods_run_may_change_while_a_job_waits() {
        let job = |suspend: bool, started: bool| {
            let status = if started { json!({"startTime": "2026-01-01T00:00:00Z"}) } else { json!({}) };
            json!({"spec": {"suspend": suspend, "completions": 1, "parallelism": 1, "completionMode": "NonIndexed",
                "template": {"spec": {"containers": [{"name": "c"}]}}}, "status": status})
        };
        let said = |old: &Value, change: &dyn Fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new["spec"]);
            let mut causes = Vec::new();
            check_update(&new, old, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        let move_pods = |spec: &mut Value| {
            let template = &mut spec["template"];
            template["metadata"] = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}});
            template["spec"]["nodeSelector"] = json!({"zone": "a"});
            template["spec"]["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
            template["spec"]["schedulingGates"] = json!([{"name": "g"}]);
            template["spec"]["affinity"] = json!({"nodeAffinity": {}});
        };
        let (waits, nothing) = (job(true, false), Vec::<String>::new());
        assert_eq!(said(&waits, &move_pods), nothing);
        // Also in the update that starts the job, and in the one that suspends it again.
        assert_eq!(
            said(&waits, &|spec| {
                spec["suspend"] = json!(false);
                move_pods(spec);
            }),
            nothing
        );
        let mut moved = waits.clone();
        move_pods(&mut moved["spec"]);
        assert_eq!(said(&moved, &|spec| spec["template"] = waits["spec"]["template"].clone()), nothing);
        assert_eq!(said(&job(false, false), &move_pods), ["spec.template"]);
        assert_eq!(said(&job(true, true), &move_pods), ["spec.template"]);
        let other_image = |spec: &mut Value| spec["template"]["spec"]["containers"] = json!([]);
        assert_eq!(said(&waits, &other_image), ["spec.template"]);
        assert_eq!(
            said(&waits, &|spec| spec["template"]["spec"]["affinity"] = json!({"podAffinity": {}})),
            ["spec.template"]
        );

        assert_eq!(said(&waits, &|spec| spec["completions"] = json!(2)), ["spec.completions"]);
        assert_eq!(said(&waits, &|spec| spec["managedBy"] = json!("example.com/x")), ["spec.managedBy"]);
        let mut indexed = waits.clone();
        indexed["spec"]["completionMode"] = json!("Indexed");
        assert_eq!(said(&indexed, &|spec| spec["completions"] = json!(2)), ["spec.completions"]);
        let both = |spec: &mut Value| (spec["completions"], spec["parallelism"]) = (json!(2), json!(2));
        assert_eq!(said(&indexed, &both), nothing);
    }
}
