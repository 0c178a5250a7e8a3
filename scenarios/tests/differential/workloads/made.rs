//! The workload objects that both servers get, and the later changes of these objects.

use serde_json::{Value, json};

/// For each object: kind, name, label `app` of the Pods, and the spec without selector and template.
const OBJECTS: &str = "
- {kind: Service, name: web, app: web, spec: {}}
- {kind: Service, name: db, app: db, spec: {clusterIP: None}}
- {kind: Service, name: empty, app: nobody, spec: {}}
- {kind: Service, name: sick, app: sick, spec: {}}
- {kind: Deployment, name: web, app: web, spec: {replicas: 3}}
- {kind: Deployment, name: none, app: none, spec: {replicas: 0}}
- {kind: Deployment, name: sick, app: sick, spec: {replicas: 2, progressDeadlineSeconds: 5}}
- {kind: Deployment, name: anew, app: anew, spec: {replicas: 2, minReadySeconds: 1, strategy: {type: Recreate}}}
- {kind: ReplicaSet, name: set, app: set, spec: {replicas: 2}}
- {kind: StatefulSet, name: db, app: db, spec: {replicas: 2, serviceName: db, volumeClaimTemplates: [
    {metadata: {name: data, labels: {of: claim}}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]}}
- {kind: StatefulSet, name: par, app: par, spec: {replicas: 3, serviceName: par, podManagementPolicy: Parallel, ordinals: {start: 1},
    updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}}}
- {kind: DaemonSet, name: agent, app: agent, spec: {}}
- {kind: Job, name: work, app: work, spec: {completions: 3, parallelism: 2}}
- {kind: Job, name: numbered, app: work, spec: {completions: 3, parallelism: 2, completionMode: Indexed}}
- {kind: Job, name: queue, app: work, spec: {parallelism: 2}}
- {kind: Job, name: waits, app: work, spec: {suspend: true}}
";

/// The changes of the workload objects, in several steps: kind, name, and a patch of the spec. In a patch, `image`
/// stands for the image in the Pod template.
const STEPS: &str = "
- step: another template
  patches:
    - {kind: Deployment, name: web, image: 'image:2'}
    - {kind: Deployment, name: anew, image: 'image:2'}
    - {kind: Deployment, name: sick, image: 'image:2'}
    - {kind: StatefulSet, name: db, image: 'image:2'}
    - {kind: StatefulSet, name: par, image: 'image:2'}
    - {kind: DaemonSet, name: agent, image: 'image:2'}
    - {kind: Job, name: waits, spec: {suspend: false}}
- step: more of them
  patches:
    - {kind: Deployment, name: web, spec: {replicas: 5}}
    - {kind: StatefulSet, name: db, spec: {replicas: 3}}
    - {kind: StatefulSet, name: par, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}
    - {kind: ReplicaSet, name: set, spec: {replicas: 4}}
- step: the first template again
  patches: [{kind: Deployment, name: web, image: 'image:1'}]
- step: fewer of them
  patches: [{kind: Deployment, name: web, spec: {replicas: 1}}, {kind: StatefulSet, name: db, spec: {replicas: 1}}]
- step: paused
  patches: [{kind: Deployment, name: web, spec: {paused: true}}]
";

fn read(text: &str) -> Vec<Value> {
    serde_saphyr::from_str(text).unwrap()
}

/// The path of a kind's collection, and the kind's API version.
fn place(kind: &str) -> (String, &'static str) {
    let (root, version, plural) = match kind {
        "Service" => ("api", "v1", "services"),
        "Job" => ("apis", "batch/v1", "jobs"),
        "Deployment" => ("apis", "apps/v1", "deployments"),
        "ReplicaSet" => ("apis", "apps/v1", "replicasets"),
        "StatefulSet" => ("apis", "apps/v1", "statefulsets"),
        _ => ("apis", "apps/v1", "daemonsets"),
    };
    (format!("/{root}/{version}/namespaces/default/{plural}"), version)
}

fn template(app: &str, kind: &str) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"app": app}, "annotations": {"example.com/note": "of a template"}},
        "spec": {"containers": [{"name": "c", "image": "image:1", "ports": [{"name": "web", "containerPort": 8080}]}]},
    });
    if kind == "Job" {
        template["spec"]["restartPolicy"] = json!("Never");
    }
    if app == "sick" {
        template["spec"]["readinessGates"] = json!([{"conditionType": "example.com/never"}]);
    }
    template
}

/// All created objects, each with the path of its collection.
pub fn objects() -> Vec<(String, Value)> {
    let object = |row: Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let (path, version) = place(text("kind"));
        let mut spec = row["spec"].clone();
        if text("kind") == "Service" {
            spec["selector"] = json!({"app": text("app")});
            spec["ports"] = json!([{"name": "http", "port": 80, "targetPort": "web"}]);
        } else {
            spec["template"] = template(text("app"), text("kind"));
            if text("kind") != "Job" {
                spec["selector"] = json!({"matchLabels": {"app": text("app")}});
            }
        }
        let meta =
            json!({"name": text("name"), "labels": {"own": text("name")}, "annotations": {"example.com/own": "yes"}});
        (path, json!({"apiVersion": version, "kind": text("kind"), "metadata": meta, "spec": spec}))
    };
    read(OBJECTS).into_iter().map(object).collect()
}

/// All steps of changes, each with the patches and the path of each patched object.
pub fn steps() -> Vec<(String, Vec<(String, Value)>)> {
    let patch = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let path = format!("{}/{}", place(text("kind")).0, text("name"));
        let spec = match row["image"].as_str() {
            Some(image) => json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}),
            None => row["spec"].clone(),
        };
        (path, json!({"spec": spec}))
    };
    let step = |row: Value| {
        let patches = row["patches"].as_array().into_iter().flatten().map(patch).collect();
        (row["step"].as_str().unwrap_or_default().to_owned(), patches)
    };
    read(STEPS).into_iter().map(step).collect()
}
