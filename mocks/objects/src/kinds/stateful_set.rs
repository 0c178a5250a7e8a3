//! `StatefulSet`: keeps pods with fixed names, each with its own storage.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mock_cel::formats::label;
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::Cells;
use super::selectors::{self, Selected};
use super::{Causes, Kind, Names, pod_spec, workload};
use crate::fields::{each, set};

pub(super) const STATEFUL_SET: Kind = Kind {
    about: "Keeps pods with fixed names and storage of their own.",
    cells: CELLS,
    defaults,
    names: Names::Label,
    check,
    check_new,
    check_update,
    ..Kind::of("statefulsets.apps")
};

fn defaults(value: &mut Value) {
    set(value, &["spec"], "replicas", json!(1));
    set(value, &["spec"], "podManagementPolicy", json!("OrderedReady"));
    // The real server's type always shows it.
    set(value, &["spec"], "serviceName", json!(""));
    set(value, &["spec"], "revisionHistoryLimit", json!(10));
    if value["spec"]["updateStrategy"]["type"].is_null() {
        set(value, &["spec", "updateStrategy"], "type", json!("RollingUpdate"));
        set(value, &["spec", "updateStrategy"], "rollingUpdate", json!({}));
    }
    if value["spec"]["updateStrategy"]["rollingUpdate"].is_object() {
        let rolling = &mut value["spec"]["updateStrategy"]["rollingUpdate"];
        // A server with this feature off removes it.
        rolling.as_object_mut().map(|rolling| rolling.remove("maxUnavailable"));
        if value["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
            set(value, &["spec", "updateStrategy", "rollingUpdate"], "partition", json!(0));
        }
    }
    if let Some(ordinals) = value.pointer_mut("/spec/ordinals") {
        set(ordinals, &[], "start", json!(0));
    }
    for key in ["whenDeleted", "whenScaled"] {
        set(value, &["spec", "persistentVolumeClaimRetentionPolicy"], key, json!("Retain"));
    }
    pod_spec::fill_template(value, "/spec/template");
    if let Some(spec) = value.get_mut("spec") {
        each(spec, "volumeClaimTemplates", |claim| {
            // Written over what a client sent, as by a real server.
            if let Some(claim) = claim.as_object_mut() {
                claim.insert("apiVersion".to_owned(), json!("v1"));
                claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
            }
            set(claim, &[], "metadata", json!({}));
            pod_spec::claim::fill(claim);
            set(claim, &["status"], "phase", json!("Pending"));
        });
    }
}

/// Fields of the specification that an update may change.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    if let Some(policy) =
        spec["podManagementPolicy"].as_str().filter(|policy| !["OrderedReady", "Parallel"].contains(policy))
    {
        causes.invalid_text(at.field("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    strategy(&spec["updateStrategy"], causes);
    let retention = at.field("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let policy = &spec["persistentVolumeClaimRetentionPolicy"][key];
        causes.one_of(policy, retention.field(key), &["Retain", "Delete"]);
    }
    workload::check_counts(spec, &["replicas", "minReadySeconds"], causes);
    causes.not_negative(at.field("ordinals.start"), spec["ordinals"]["start"].as_i64());
    workload::check_selector(spec, "statefulset", causes);
    let template = &spec["template"];
    match selectors::selects(&spec["selector"], &template["metadata"]["labels"]) {
        Selected::Broken => causes.invalid(at.field("selector"), &spec["selector"], ""),
        selected => {
            if selected == Selected::Others {
                workload::others(template, causes);
            }
            pod_spec::check_template(&with_claims(spec), at.field("template"), causes);
            // A real server checks the template's annotations twice, so some causes appear twice.
            pod_spec::check_annotations(template, at.field("template"), causes);
        }
    }
    workload::check_lasting(template, "StatefulSet", causes);
}

/// The pod template with a volume for each claim in `volumeClaimTemplates`. Host name and subdomain are removed,
/// because the controller sets them later.
fn with_claims(spec: &Value) -> Cow<'_, Value> {
    let (template, claims) = (&spec["template"], spec["volumeClaimTemplates"].as_array());
    let of_pod = &template["spec"];
    if claims.is_none_or(Vec::is_empty) && of_pod["subdomain"].is_null() && of_pod["hostname"].is_null() {
        return Cow::Borrowed(template);
    }
    let mut template = template.clone();
    if !template["spec"].is_object() {
        template = json!({"metadata": template["metadata"], "spec": {}});
    }
    let Some(pod) = template["spec"].as_object_mut() else { return Cow::Owned(template) };
    pod.remove("subdomain");
    pod.remove("hostname");
    let (mut volumes, mut claimed) = (Vec::new(), BTreeSet::new());
    for claim in claims.into_iter().flatten() {
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        if claimed.insert(name) {
            volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        }
    }
    let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_claimed = |volume: &Value| volume["name"].as_str().is_some_and(|name| claimed.contains(name));
    volumes.extend(own.into_iter().filter(|volume| !is_claimed(volume)));
    pod.insert("volumes".to_owned(), Value::from(volumes));
    Cow::Owned(template)
}

fn strategy(strategy: &Value, causes: &mut Causes) {
    let at = workload::SPEC.field("updateStrategy");
    let rolling = at.field("rollingUpdate");
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" if strategy["rollingUpdate"].is_object() => {
            causes.invalid(rolling, &strategy["rollingUpdate"], "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            causes.not_negative(rolling.field("partition"), strategy["rollingUpdate"]["partition"].as_i64());
        }
        _ => causes.invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'"),
    }
}

/// Checks that apply only to new objects: an existing object may have these errors, and updates of it must still
/// succeed.
fn check_new(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], workload::SPEC);
    let list = at.field("volumeClaimTemplates");
    for (index, claim) in spec["volumeClaimTemplates"].as_array().into_iter().flatten().enumerate() {
        pod_spec::claim::check(&claim["spec"], list.item(index).field("spec"), causes);
    }
    let service = spec["serviceName"].as_str().unwrap_or_default();
    if !service.is_empty() {
        causes.faults(at.field("serviceName"), service, label(service));
    }
}

fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let kept = |value: &Value| {
        let mut spec = value["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|key, _| !CHANGEABLE.contains(&key.as_str()));
        }
        spec
    };
    if kept(new) != kept(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                   'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        causes.forbidden(At::from("spec"), why);
    }
}

const CELLS: Cells = |row| {
    let [containers, images, _] = row.template();
    vec![row.name(), workload::ready(row), row.age(), containers, images]
};
