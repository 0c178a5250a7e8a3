//! `DaemonSet`s: one Pod on each matching node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::fields::{annotation, is_deleting, label, list, map, name, number, put, share, text};
use super::kind::{Key, Kind};
use super::pod;
use super::revisions::{self, Keeper};
use super::scene::Scene;
use super::template::{self, set};

const KEEPER: Keeper = Keeper { by: "daemon-set-controller", kind: Kind::DaemonSet, label: HASH };
const HASH: &str = "controller-revision-hash";
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// Taints that Pods of a `DaemonSet` tolerate in addition to their own tolerations.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The Pods of one `DaemonSet` by node name, oldest first.
type OfNode = BTreeMap<String, Vec<Arc<Value>>>;

pub(super) fn look(scene: &mut Scene<'_>, key: &Key, set: &Value) {
    let Some(present) = revisions::present(scene, &KEEPER, set) else { return };
    let hash = label(&present, HASH).to_owned();
    let wanted: BTreeSet<String> = scene
        .objects
        .of_kind(Kind::Node, None)
        .filter(|(_, node)| runs_on(set, node))
        .map(|(key, _)| key.name.to_string())
        .collect();
    let mut pods = OfNode::new();
    let mut owned = scene.objects.owned(set, Kind::Pod);
    owned.sort_by_key(|pod| text(pod, "/metadata/creationTimestamp").to_owned());
    for pod in owned {
        let node = match text(&pod, "/spec/nodeName") {
            "" => pod::named_node(&pod).unwrap_or_default(),
            bound => bound,
        };
        pods.entry(node.to_owned()).or_default().push(pod);
    }
    if !is_deleting(set) {
        keep(scene, set, &wanted, &pods, &hash);
        roll(scene, set, &wanted, &pods, &hash);
    }
    let mut used: BTreeSet<&str> = BTreeSet::from([name(&present)]);
    let revisions = revisions::of(scene, set);
    let in_use =
        |revision: &&Arc<Value>| pods.values().flatten().any(|pod| pod::has_hash(pod, HASH, label(revision, HASH)));
    used.extend(revisions.iter().filter(in_use).map(|revision| name(revision)));
    revisions::clean(scene, &KEEPER, set, &used);
    let status = status(scene, set, &wanted, &pods, &hash);
    scene.status(KEEPER.by, key.clone(), set, status);
}

/// Creates missing Pods, and deletes Pods that have ended or run on nodes that the `DaemonSet` does not select.
fn keep(scene: &mut Scene<'_>, set: &Value, wanted: &BTreeSet<String>, pods: &OfNode, hash: &str) {
    for (node, there) in pods {
        let mut stays = wanted.contains(node);
        for pod in there.iter().filter(|pod| !is_deleting(pod)) {
            if pod::is_over(pod) || !stays {
                scene.delete(KEEPER.by, Kind::Pod, pod);
            } else {
                // The first one stays.
                stays = false;
            }
        }
    }
    for node in wanted.iter().filter(|node| pods.get(*node).is_none_or(Vec::is_empty)) {
        scene.create(KEEPER.by, Kind::Pod, body(set, node, hash));
    }
}

/// Deletes Pods of older templates, at most as many as `maxUnavailable` allows, so that they are made anew.
fn roll(scene: &mut Scene<'_>, set: &Value, wanted: &BTreeSet<String>, pods: &OfNode, hash: &str) {
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return;
    }
    let nodes = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    let most = share(&set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], nodes, true).max(1);
    let least_s = number(set, "/spec/minReadySeconds");
    let is_up = |pod: &Arc<Value>| !is_deleting(pod) && pod::available(pod, least_s, scene.now).0;
    let down = |node: &&String| !pods.get(*node).is_some_and(|there| there.iter().any(is_up));
    let mut room = most - i64::try_from(wanted.iter().filter(down).count()).unwrap_or(i64::MAX);
    let old = pods.iter().filter(|(node, _)| wanted.contains(*node)).flat_map(|(_, there)| there);
    let old: Vec<&Arc<Value>> = old.filter(|pod| !pod::has_hash(pod, HASH, hash) && pod::is_active(pod)).collect();
    let ups: Vec<bool> = old.iter().map(|pod| is_up(pod)).collect();
    for (pod, up) in old.into_iter().zip(ups) {
        if up && room <= 0 {
            continue;
        }
        room -= i64::from(up);
        scene.delete(KEEPER.by, Kind::Pod, pod);
    }
}

fn body(of: &Value, node: &str, hash: &str) -> Value {
    let mut pod = template::pod(of, Kind::DaemonSet, &of["spec"]["template"]);
    pod["metadata"]["generateName"] = Value::from(format!("{}-", name(of)));
    set(&mut pod, "labels", HASH, hash);
    let generation = annotation(of, GENERATION);
    if !generation.is_empty() {
        set(&mut pod, "labels", "pod-template-generation", generation);
    }
    let here = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": here});
    let mut tolerations = list(&pod, "/spec/tolerations").to_vec();
    let more = TOLERATED.iter().map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
    for toleration in more {
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    if pod["spec"]["hostNetwork"] == json!(true) {
        let unavailable = "node.kubernetes.io/network-unavailable";
        tolerations.push(json!({"key": unavailable, "operator": "Exists", "effect": "NoSchedule"}));
    }
    pod["spec"]["tolerations"] = Value::from(tolerations);
    pod
}

/// Whether the `DaemonSet` selects a node and tolerates its taints.
fn runs_on(set: &Value, node: &Value) -> bool {
    let spec = &set["spec"]["template"]["spec"];
    let labels = &node["metadata"]["labels"];
    let selected = map(spec, "/nodeSelector").iter().all(|(key, value)| labels.get(key) == Some(value));
    let own = |taint: &Value| TOLERATED.contains(&(text(taint, "/key"), text(taint, "/effect")));
    let tolerated = |taint: &&Value| {
        own(taint)
            || text(taint, "/effect") == "PreferNoSchedule"
            || list(spec, "/tolerations").iter().any(|toleration| tolerates(toleration, taint))
    };
    selected && list(node, "/spec/taints").iter().all(|taint| tolerated(&taint))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
    let exists = text(toleration, "/operator") == "Exists";
    (key.is_empty() && exists || key == text(taint, "/key"))
        && (effect.is_empty() || effect == text(taint, "/effect"))
        && (exists || text(toleration, "/value") == text(taint, "/value"))
}

fn status(scene: &mut Scene<'_>, set: &Value, wanted: &BTreeSet<String>, pods: &OfNode, hash: &str) -> Value {
    let least = number(set, "/spec/minReadySeconds");
    let there: Vec<&Value> = pods
        .iter()
        .filter(|(node, _)| wanted.contains(*node))
        .filter_map(|(_, pods)| pods.iter().find(|pod| !pod::is_over(pod)))
        .map(|pod| &**pod)
        .collect();
    let astray = pods.iter().filter(|(node, there)| !wanted.contains(*node) && !there.is_empty()).count();
    let (ready, ripe) = pod::count(scene, there.iter().copied(), least);
    let updated = there.iter().filter(|pod| pod::has_hash(pod, HASH, hash)).count();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let desired = count(wanted.len());
    let mut status = Map::new();
    for key in ["collisionCount", "conditions"] {
        if let Some(known) = set["status"].get(key) {
            status.insert(key.to_owned(), known.clone());
        }
    }
    for (key, number) in [
        ("currentNumberScheduled", count(there.len())),
        ("desiredNumberScheduled", desired),
        ("numberMisscheduled", count(astray)),
        ("numberReady", ready),
    ] {
        status.insert(key.to_owned(), json!(number));
    }
    put(&mut status, "observedGeneration", number(set, "/metadata/generation"));
    put(&mut status, "updatedNumberScheduled", count(updated));
    put(&mut status, "numberAvailable", ripe);
    put(&mut status, "numberUnavailable", desired - ripe);
    Value::Object(status)
}
