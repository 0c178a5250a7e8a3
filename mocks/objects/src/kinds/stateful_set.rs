//! `StatefulSet`: keeps pods with fixed names and storage of their own.

use serde_json::{Value, json};

use super::print::Printer;
use super::{Kind, pod_spec, workload};
use crate::fields::{each, set};

pub(super) const STATEFUL_SET: Kind = Kind {
    short_names: &["sts"],
    categories: &["all"],
    about: "Keeps pods with fixed names and storage of their own.",
    status: true,
    scale: true,
    messages: &[
        "StatefulSet 1:metadata:ObjectMeta 2:spec:StatefulSetSpec 3:status:StatefulSetStatus",
        "StatefulSetSpec 1:replicas:i? 2:selector:LabelSelector 3:template:PodTemplateSpec \
         4:volumeClaimTemplates:[PersistentVolumeClaim] 5:serviceName:s! 6:podManagementPolicy:s \
         7:updateStrategy:StatefulSetUpdateStrategy 8:revisionHistoryLimit:i? 9:minReadySeconds:i \
         10:persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy \
         11:ordinals:StatefulSetOrdinals",
        "StatefulSetUpdateStrategy 1:type:s 2:rollingUpdate:RollingUpdateStatefulSetStrategy",
        "RollingUpdateStatefulSetStrategy 1:partition:i? 2:maxUnavailable:O",
        "StatefulSetStatus 1:observedGeneration:i 2:replicas:i! 3:readyReplicas:i 4:currentReplicas:i \
         5:updatedReplicas:i 6:currentRevision:s 7:updateRevision:s 9:collisionCount:i? \
         10:conditions:[StatefulSetCondition] 11:availableReplicas:i",
        "StatefulSetCondition 1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s",
        "StatefulSetPersistentVolumeClaimRetentionPolicy 1:whenDeleted:s 2:whenScaled:s",
        "StatefulSetOrdinals 1:start:i!",
    ],
    published_merges: &[("StatefulSetStatus", "conditions", "merge", "type")],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({"availableReplicas": 0, "replicas": 0}),
    check: |value, causes| workload::check(value, "statefulset", causes),
    fixed: &["/spec/selector", "/spec/serviceName"],
    ..Kind::namespaced("apps", &["v1"], "statefulsets", "StatefulSet")
};

fn defaults(value: &mut Value) {
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
    pod_spec::fill_template(value, "/spec/template");
    if let Some(spec) = value.get_mut("spec") {
        each(spec, "volumeClaimTemplates", |claim| {
            set(claim, &[], "apiVersion", json!("v1"));
            set(claim, &[], "kind", json!("PersistentVolumeClaim"));
            set(claim, &[], "metadata", json!({}));
            super::persistent_volume_claim::defaults(claim);
            set(claim, &["status"], "phase", json!("Pending"));
        });
    }
}

const PRINTER: Printer = Printer {
    columns: "Name, Ready, Age, Containers+, Images+",
    cells: |row| {
        let [containers, images, _] = row.template();
        vec![row.name(), workload::ready(row), row.age(), containers, images]
    },
};
