//! Manifests as users and controllers write them, and the objects that the API server makes of them. Pure: no I/O.

use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::grow::Growth;
use super::{Identity, Kind, Owner, defaults, fields, plain};

pub(in crate::admission) const CLIENT_SIDE: &str = "kubectl-client-side-apply";
pub(in crate::admission) const CONTROLLER: &str = "kube-controller-manager";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Debug)]
pub(in crate::admission) struct Draft<'a> {
    pub kind: Kind,
    pub identity: &'a Identity,
    /// A pod template as a user writes it; `Null` for kinds without a template.
    pub template: &'a Value,
    pub replicas: u32,
}

impl Draft<'_> {
    /// The object as a webhook gets it when it is created. `rng` decides names and random contents; equal `rng`s give
    /// equal objects.
    pub(in crate::admission) fn requested(&self, growth: &Growth, mut rng: ChaCha8Rng) -> Value {
        let mut object = self.manifest(growth, &mut rng);
        let manager = self.manager(growth);
        if manager == CLIENT_SIDE {
            if object["metadata"]["annotations"].is_null() {
                object["metadata"]["annotations"] = json!({});
            }
            let applied = format!("{object}\n");
            object["metadata"]["annotations"][LAST_APPLIED] = json!(applied);
        }
        defaults::fill(self.kind, &mut object);
        let entry = fields::entry(manager, self.kind, &object);
        object["metadata"]["creationTimestamp"] = Value::Null;
        object["metadata"]["managedFields"] = json!([entry]);
        if self.kind == Kind::Pod {
            defaults::plugins(&mut object, &mut rng);
        }
        if let Some(status) = defaults::status(self.kind) {
            object["status"] = status;
        }
        object
    }

    pub(in crate::admission) fn manager(&self, growth: &Growth) -> &'static str {
        match (&self.identity.owner, growth.applies()) {
            (Some(_), _) => CONTROLLER,
            (None, true) => CLIENT_SIDE,
            (None, false) => fields::SERVER_SIDE,
        }
    }

    pub(in crate::admission) fn manifest(&self, growth: &Growth, rng: &mut ChaCha8Rng) -> Value {
        let Self { kind, identity, replicas, .. } = self;
        let mut template = self.template.clone();
        if !template.is_null() {
            growth.pod_spec(&mut template["spec"], rng);
        }
        let metadata = self.metadata();
        let mut labels = plain::selector(identity);
        if *kind == Kind::ReplicaSet && identity.owner.is_some() {
            // With this label each ReplicaSet of a Deployment has Pods of its own.
            labels["pod-template-hash"] = json!(identity.hash);
            template["metadata"]["labels"]["pod-template-hash"] = json!(identity.hash);
        }
        let selector = json!({"matchLabels": labels});
        let spec = match kind {
            Kind::Pod => {
                let mut pod = self.pod(&template);
                pod["metadata"] = pod_metadata(metadata, &pod["metadata"]);
                return pod;
            }
            Kind::Deployment | Kind::ReplicaSet => {
                json!({"replicas": replicas, "selector": selector, "template": template})
            }
            Kind::ReplicationController => {
                json!({"replicas": replicas, "selector": labels, "template": template})
            }
            Kind::StatefulSet => json!({
                "replicas": replicas, "selector": selector, "template": template, "serviceName": identity.name,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}
                }}]
            }),
            Kind::DaemonSet => json!({"selector": selector, "template": template}),
            Kind::Job => {
                template["spec"]["restartPolicy"] = json!("OnFailure");
                json!({"backoffLimit": 4, "ttlSecondsAfterFinished": 3600, "template": template})
            }
            Kind::CronJob => {
                template["spec"]["restartPolicy"] = json!("OnFailure");
                json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": template}}})
            }
            Kind::Worker => json!({
                "queue": identity.app, "concurrency": replicas, "template": template,
                "scaling": {"minReplicas": 1, "maxReplicas": 20, "metric": {"name": "queue_depth", "target": "100"}}
            }),
            plain => return plain::manifest(*plain, identity, &metadata, growth, rng),
        };
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": spec})
    }

    /// A Pod of the template, created by a user or by a controller.
    fn pod(&self, template: &Value) -> Value {
        let mut pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
        match self.identity.owner.as_ref().map(|owner| owner.kind) {
            Some(Kind::StatefulSet) => {
                pod["spec"]["hostname"] = json!(self.identity.name);
                pod["spec"]["subdomain"] = json!(self.identity.app);
            }
            Some(Kind::Job) => pod["spec"]["restartPolicy"] = json!("OnFailure"),
            _ => {}
        }
        pod
    }

    fn metadata(&self) -> Value {
        let Self { kind, identity, replicas, .. } = self;
        let mut metadata = json!({"name": identity.name});
        if kind.is_namespaced() {
            metadata["namespace"] = json!(identity.namespace);
        }
        if let Some(prefix) = &identity.generate_name {
            metadata["generateName"] = json!(prefix);
            metadata["name"].take();
            metadata = without_nulls(metadata);
        }
        let Some(Owner { kind: owner, name, uid }) = &identity.owner else {
            metadata["labels"] = json!({
                "app.kubernetes.io/name": identity.app, "app.kubernetes.io/part-of": "shop",
                "app.kubernetes.io/managed-by": "kustomize", "app.kubernetes.io/version": "1.4.2"
            });
            metadata["annotations"] =
                json!({"example.com/owner": "payments", "example.com/runbook": "https://wiki.example.com/payments"});
            return metadata;
        };
        metadata["ownerReferences"] = json!([{
            "apiVersion": owner.api_version(), "kind": owner.name(), "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true
        }]);
        let mut labels = plain::selector(identity);
        match kind {
            Kind::ReplicaSet => {
                metadata["annotations"] = json!({
                    "deployment.kubernetes.io/desired-replicas": replicas.to_string(),
                    "deployment.kubernetes.io/max-replicas": (replicas + 1).to_string(),
                    "deployment.kubernetes.io/revision": "1"
                });
            }
            Kind::Job => {
                metadata["annotations"] = json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": super::CREATED});
            }
            _ => {}
        }
        match owner {
            Kind::Deployment | Kind::ReplicaSet if !identity.hash.is_empty() => {
                labels["pod-template-hash"] = json!(identity.hash);
            }
            Kind::DaemonSet => {
                labels["controller-revision-hash"] = json!(identity.hash);
                labels["pod-template-generation"] = json!("1");
            }
            Kind::StatefulSet => {
                labels["controller-revision-hash"] = json!(format!("{}-{}", identity.app, identity.hash));
                labels["statefulset.kubernetes.io/pod-name"] = json!(identity.name);
            }
            Kind::Job => {
                labels["batch.kubernetes.io/controller-uid"] = json!(uid);
                labels["batch.kubernetes.io/job-name"] = json!(name);
            }
            _ => {}
        }
        metadata["labels"] = labels;
        metadata
    }
}

/// A pod template as a user writes it.
pub(in crate::admission) fn template(app: &str, spec: &Value) -> Value {
    json!({
        "metadata": {
            "labels": {"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}
        },
        "spec": spec
    })
}

/// The metadata of a Pod: its own labels and annotations and those of its template.
fn pod_metadata(mut own: Value, template: &Value) -> Value {
    for key in ["labels", "annotations"] {
        let Some(more) = template[key].as_object() else { continue };
        if own[key].is_null() {
            own[key] = json!({});
        }
        let Some(members) = own[key].as_object_mut() else { continue };
        for (key, value) in more {
            members.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    own
}

fn without_nulls(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}
