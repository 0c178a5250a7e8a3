//! Pods: the simulated scheduler assigns nodes, and simulated kubelets write the status.

mod status;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions;
use super::fields::{is_deleting, label, list, name, namespace, number, text, time, uid};
use super::kind::{Key, Kind};
use super::scene::Scene;
use super::write::{Author, Verb};
use status::Stage;

const SCHEDULER: &str = "default-scheduler";

pub(crate) fn look(scene: &mut Scene<'_>, key: &Key, pod: &Value) {
    if text(pod, "/spec/nodeName").is_empty() {
        if !is_deleting(pod) {
            schedule(scene, key, pod);
        }
    } else if is_deleting(pod) {
        end(scene, key, pod);
    } else if !is_over(pod) {
        run(scene, key, pod);
    }
}

/// Assigns a node to a Pod after the Pod's claims have their volumes.
fn schedule(scene: &mut Scene<'_>, key: &Key, pod: &Value) {
    let other = !matches!(text(pod, "/spec/schedulerName"), "" | SCHEDULER);
    if other || !list(pod, "/spec/schedulingGates").is_empty() || !claims_are_bound(scene, pod) {
        return;
    }
    let Some(node) = node_for(scene, pod) else { return };
    let body = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name(pod), "namespace": namespace(pod), "uid": uid(pod)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    scene.write(Author::Scheduler, key.clone(), Verb::Bind, body);
}

fn claims_are_bound(scene: &Scene<'_>, pod: &Value) -> bool {
    list(pod, "/spec/volumes").iter().all(|volume| {
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        let found = || scene.objects.find(Kind::Claim, namespace(pod), claim);
        claim.is_empty() || found().is_some_and(|claim| text(claim, "/status/phase") == "Bound")
    })
}

/// The node that the Pod of a `DaemonSet` names, else a node chosen by the Pod's uid.
fn node_for(scene: &Scene<'_>, pod: &Value) -> Option<String> {
    let nodes: Vec<&str> = scene.objects.of_kind(Kind::Node, None).map(|(key, _)| &*key.name).collect();
    if let Some(wanted) = named_node(pod) {
        return nodes.contains(&wanted).then(|| wanted.to_owned());
    }
    let turn = uid(pod).bytes().fold(0usize, |turn, byte| turn.wrapping_mul(31).wrapping_add(usize::from(byte)));
    nodes.get(turn.checked_rem(nodes.len())?).map(ToString::to_string)
}

/// The node that a Pod's required affinity to `metadata.name` names.
pub(crate) fn named_node(pod: &Value) -> Option<&str> {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let mut fields = list(pod, terms).iter().flat_map(|term| list(term, "/matchFields"));
    fields.find(|field| text(field, "/key") == "metadata.name").map(|field| text(field, "/values/0"))
}

/// Acts as the kubelet of a Pod: containers are created, run, become ready, and end.
fn run(scene: &mut Scene<'_>, key: &Key, pod: &Value) {
    let after = scene.config.ready_after;
    let is_new = text(pod, "/status/startTime").is_empty();
    let stage = if is_new {
        // The clock starts with the kubelet's first status.
        scene.clocks.restart(uid(pod), "ready");
        scene.waited(pod, "ready", after);
        Stage::Creating
    } else {
        stage(scene, pod)
    };
    let Some(status) = status::of(scene, pod, stage) else { return };
    let by = Author::Kubelet(text(pod, "/spec/nodeName").to_owned());
    scene.write(by, key.clone(), Verb::PatchStatus, json!({"metadata": {"uid": uid(pod)}, "status": status}));
}

fn stage(scene: &mut Scene<'_>, pod: &Value) -> Stage {
    let after = scene.config.ready_after;
    let probed = list(pod, "/spec/containers").iter().any(|container| container["readinessProbe"].is_object());
    let (root, root_uid) = workload(scene, pod);
    if scene.is_down(pod, (&root, &root_uid), "ready") {
        let up = text(pod, "/status/phase") == "Running" || scene.waited(pod, "ready", after);
        return if up { Stage::NotReady } else { Stage::Creating };
    }
    let ready = scene.waited(pod, "ready", after);
    if !ready {
        let was_up = text(pod, "/status/phase") == "Running";
        let half = after.checked_div(2).unwrap_or_default();
        let up = was_up || probed && scene.waited(pod, "ready", half);
        return if up { Stage::NotReady } else { Stage::Creating };
    }
    if runs_for(scene, pod).is_some_and(|long| scene.waited(pod, "over", long)) {
        return Stage::Succeeded;
    }
    Stage::Ready
}

/// How long the containers of a Pod run until they succeed; `None` means for ever. In a real cluster, the program in
/// the container decides when it ends, and even a server may have `restartPolicy: Never`. Without a configured time,
/// therefore only Pods of Jobs end.
fn runs_for(scene: &Scene<'_>, pod: &Value) -> Option<SignedDuration> {
    if matches!(text(pod, "/spec/restartPolicy"), "" | "Always") {
        return None;
    }
    let is_of_job = scene.objects.controller(pod).is_some_and(|(owner, _)| owner.kind == Kind::Job);
    if is_of_job { Some(scene.config.ready_after) } else { scene.config.ends_after }
}

/// Ends a Pod that is being deleted: after `ready_after` or its grace period, whichever is shorter.
fn end(scene: &mut Scene<'_>, key: &Key, pod: &Value) {
    let grace = SignedDuration::from_secs(number(pod, "/metadata/deletionGracePeriodSeconds").max(0));
    if !scene.waited(pod, "end", scene.config.ready_after.min(grace)) {
        return;
    }
    if !list(pod, "/metadata/finalizers").is_empty() && is_over(pod) {
        return;
    }
    let by = Author::Kubelet(text(pod, "/spec/nodeName").to_owned());
    if !list(pod, "/metadata/finalizers").is_empty() {
        // Its finalizers keep it, and their controllers read how it ended.
        if let Some(status) = status::of(scene, pod, Stage::Succeeded) {
            scene.write(by, key.clone(), Verb::PatchStatus, json!({"metadata": {"uid": uid(pod)}, "status": status}));
        }
        return;
    }
    let body = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": {"uid": uid(pod)},
    });
    scene.write(by, key.clone(), Verb::Delete, body);
}

/// The workload that a Pod belongs to: the topmost controller in its chain of owners.
fn workload(scene: &Scene<'_>, pod: &Value) -> (Key, String) {
    let mut at = (Key::new(Kind::Pod, namespace(pod), name(pod)), uid(pod).to_owned());
    let mut value = scene.objects.controller(pod);
    // A Pod, its ReplicaSet, its Deployment: longer chains are cycles.
    for _ in 0..3 {
        let Some((key, owner)) = value else { break };
        at = (key, uid(&owner).to_owned());
        value = scene.objects.controller(&owner);
    }
    at
}

pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Whether the Pod counts for its owner: it has not ended and is not being deleted.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !is_deleting(pod)
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    conditions::is_true(&pod["status"], "Ready")
}

/// Whether the Pod has been ready for `least_s` seconds. If the Pod is ready for a shorter time, also returns the time
/// at which it becomes available.
pub(crate) fn available(pod: &Value, least_s: i64, now: Timestamp) -> (bool, Option<Timestamp>) {
    if !is_ready(pod) {
        return (false, None);
    }
    if least_s == 0 {
        return (true, None);
    }
    let ready = conditions::find(&pod["status"], "Ready");
    let Some(since) = ready.and_then(|condition| time(condition, "/lastTransitionTime")) else { return (false, None) };
    let due = since.checked_add(SignedDuration::from_secs(least_s)).unwrap_or(Timestamp::MAX);
    if due <= now { (true, None) } else { (false, Some(due)) }
}

/// Counts ready and available Pods. The Pods' owner is processed again when a further Pod becomes available.
pub(crate) fn count<'p>(scene: &mut Scene<'_>, pods: impl Iterator<Item = &'p Value>, least_s: i64) -> (i64, i64) {
    let (mut ready, mut ripe) = (0, 0);
    for pod in pods {
        ready += i64::from(is_ready(pod));
        let (is_available, due) = available(pod, least_s, scene.now);
        ripe += i64::from(is_available);
        if let Some(due) = due {
            scene.again(due);
        }
    }
    (ready, ripe)
}

/// The rank by which surplus Pods are deleted: the Pod with the least progress first; of Pods with equal progress, the
/// youngest.
pub(crate) fn rank(pod: &Value) -> (bool, u8, bool, std::cmp::Reverse<String>, String) {
    let phase = match text(pod, "/status/phase") {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let made = text(pod, "/metadata/creationTimestamp").to_owned();
    (!text(pod, "/spec/nodeName").is_empty(), phase, is_ready(pod), std::cmp::Reverse(made), name(pod).to_owned())
}

/// Whether a Pod was made from the template with this hash.
pub(crate) fn has_hash(pod: &Value, key: &str, hash: &str) -> bool {
    label(pod, key) == hash
}
