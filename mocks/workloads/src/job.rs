//! Jobs: create Pods that run until they end, and count them.

mod indexes;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::conditions;
use super::fields::{annotation, is_deleting, list, name, namespace, number, put, seconds, text, time, uid};
use super::kind::{Key, Kind};
use super::pod;
use super::scene::Scene;
use super::template;
use super::write::{Author, Verb};

const BY: &str = "job-controller";
/// The finalizer that a Pod of a Job has until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const REACHED: (&str, &str) = ("CompletionsReached", "Reached expected number of succeeded pods");
const TIMES: [&str; 2] = ["lastProbeTime", "lastTransitionTime"];

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, job: &Value) {
    // Another controller manages it.
    if !matches!(text(job, "/spec/managedBy"), "" | "kubernetes.io/job-controller") {
        return;
    }
    if is_finished(&job["status"]) {
        return expire(scene, job);
    }
    let pods = scene.objects.owned(job, Kind::Pod);
    release(scene, job, &pods);
    if is_deleting(job) {
        return;
    }
    let mut status = counted(scene, job, &pods);
    let suspended = job["spec"]["suspend"] == json!(true);
    suspend(scene, &mut status, suspended);
    let active: Vec<&Arc<Value>> = pods.iter().filter(|pod| pod::is_active(pod)).collect();
    let succeeded = number(&status, "/succeeded") + uncounted(&status).len().try_into().unwrap_or(i64::MAX);
    if is_reached(job, succeeded, active.len()) && uncounted(&status).is_empty() {
        finish(scene, &mut status);
    } else {
        let is = i64::try_from(active.len()).unwrap_or(i64::MAX);
        let wanted = if suspended { 0 } else { wanted(job, succeeded) };
        for pod in active.iter().rev().take(usize::try_from(is - wanted).unwrap_or(0)) {
            scene.delete(BY, Kind::Pod, pod);
        }
        indexes::make(scene, job, &pods, wanted - is);
    }
    scene.status(BY, key.clone(), job, status);
}

/// Removes the finalizer [`TRACKING`] from counted Pods, and from all Pods of a Job that is being deleted.
fn release(scene: &mut Scene<'_>, job: &Value, pods: &[Arc<Value>]) {
    let counted = uncounted(&job["status"]);
    for pod in pods.iter().filter(|pod| is_tracked(pod)) {
        if is_deleting(job) || counted.contains(uid(pod)) || is_deleting(pod) && pod::is_over(pod) {
            let key = Key::new(Kind::Pod, namespace(pod), name(pod));
            let body = json!({"metadata": {"uid": uid(pod), "$deleteFromPrimitiveList/finalizers": [TRACKING]}});
            scene.write(Author::Controller(BY), key, Verb::Patch, body);
        }
    }
}

fn is_tracked(pod: &Value) -> bool {
    list(pod, "/metadata/finalizers").iter().any(|finalizer| finalizer == TRACKING)
}

fn uncounted(status: &Value) -> BTreeSet<&str> {
    list(status, "/uncountedTerminatedPods/succeeded").iter().filter_map(Value::as_str).collect()
}

/// The status of a Job with its counts. An ended Pod is first listed in the status, then its finalizer is removed, then
/// the Pod is counted.
fn counted(scene: &Scene<'_>, job: &Value, pods: &[Arc<Value>]) -> Value {
    let old = &job["status"];
    let mut status = old.clone();
    let known = uncounted(old);
    let tracked: BTreeSet<&str> = pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod)).collect();
    let free = known.difference(&tracked).count();
    let mut waiting: Vec<&str> = known.intersection(&tracked).copied().collect();
    let ended = pods.iter().filter(|pod| text(pod, "/status/phase") == "Succeeded" && is_tracked(pod));
    waiting.extend(ended.map(|pod| uid(pod)).filter(|ended| !known.contains(ended)));
    status["uncountedTerminatedPods"] = if waiting.is_empty() { json!({}) } else { json!({"succeeded": waiting}) };
    let active = pods.iter().filter(|pod| pod::is_active(pod));
    let terminating = pods.iter().filter(|pod| is_deleting(pod) && !pod::is_over(pod)).count();
    let (ready, running) = (active.clone().filter(|pod| pod::is_ready(pod)).count(), active.count());
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    status["ready"] = json!(ready);
    status["terminating"] = json!(terminating);
    if status["startTime"].is_null() && job["spec"]["suspend"] != json!(true) {
        status["startTime"] = seconds(scene.now);
    }
    indexes::note(job, pods, &mut status);
    if let Some(fields) = status.as_object_mut() {
        put(fields, "succeeded", number(old, "/succeeded") + count(free));
        put(fields, "active", count(running));
        if fields.get("startTime").is_some_and(Value::is_null) {
            fields.remove("startTime");
        }
    }
    status
}

/// The number of Pods of a Job that should run at the same time.
fn wanted(job: &Value, succeeded: i64) -> i64 {
    let together = number(job, "/spec/parallelism");
    match job["spec"]["completions"].as_i64() {
        Some(all) => together.min((all - succeeded).max(0)),
        // The first success ends the job.
        None if succeeded > 0 => 0,
        None => together,
    }
}

fn is_reached(job: &Value, succeeded: i64, active: usize) -> bool {
    match job["spec"]["completions"].as_i64() {
        Some(all) => succeeded >= all,
        None => succeeded > 0 && active == 0,
    }
}

fn finish(scene: &Scene<'_>, status: &mut Value) {
    for kind in ["SuccessCriteriaMet", "Complete"] {
        conditions::set(status, conditions::new(kind, "True", REACHED, &TIMES, scene.now));
    }
    status["completionTime"] = seconds(scene.now);
}

fn suspend(scene: &Scene<'_>, status: &mut Value, suspended: bool) {
    let was = conditions::find(status, "Suspended").map(|known| text(known, "/status") == "True");
    let (status_text, said) = match (suspended, was) {
        (true, None | Some(false)) => ("True", ("JobSuspended", "Job suspended")),
        (false, Some(true)) => ("False", ("JobResumed", "Job resumed")),
        _ => return,
    };
    conditions::set(status, conditions::new("Suspended", status_text, said, &TIMES, scene.now));
    if suspended {
        if let Some(fields) = status.as_object_mut() {
            fields.remove("startTime");
        }
    } else {
        status["startTime"] = seconds(scene.now);
    }
}

fn is_finished(status: &Value) -> bool {
    conditions::is_true(status, "Complete") || conditions::is_true(status, "Failed")
}

/// Deletes a Job after its `ttlSecondsAfterFinished`.
fn expire(scene: &mut Scene<'_>, job: &Value) {
    let Some(kept) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { return };
    let over = conditions::find(&job["status"], "Complete").or_else(|| conditions::find(&job["status"], "Failed"));
    let over = over.and_then(|condition| time(condition, "/lastTransitionTime"));
    let Some(due) = over.and_then(|over| over.checked_add(SignedDuration::from_secs(kept)).ok()) else { return };
    if is_deleting(job) {
        return;
    }
    if due > scene.now {
        return scene.again(due);
    }
    let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"});
    body["preconditions"] = json!({"uid": uid(job)});
    let key = Key::new(Kind::Job, namespace(job), name(job));
    scene.write(Author::Controller("ttl-after-finished-controller"), key, Verb::Delete, body);
}

fn index(pod: &Value) -> Option<i64> {
    annotation(pod, indexes::INDEX).parse().ok()
}

fn new_pod(job: &Value) -> Value {
    let mut body = template::pod(job, Kind::Job, &job["spec"]["template"]);
    body["metadata"]["generateName"] = Value::from(format!("{}-", name(job)));
    let mut finalizers = list(&body, "/metadata/finalizers").to_vec();
    finalizers.push(Value::from(TRACKING));
    body["metadata"]["finalizers"] = Value::from(finalizers);
    body
}
