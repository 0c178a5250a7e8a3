//! Sequences of requests with objects of every built-in kind: defaults, tables for kubectl, and refusals.

use serde_json::{Value, json};

use crate::sequence::{Sequence, Step};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

pub fn all() -> Vec<Sequence> {
    let kinds = [workloads(), jobs(), network(), storage(), rights(), cluster()];
    kinds.into_iter().flatten().map(|(path, kind, bodies)| sequence(path, kind, bodies)).collect()
}

/// `(collection, kind, bodies)`. A `+` before a collection marks a namespaced kind.
type Case = (&'static str, &'static str, Vec<Value>);

fn sequence(path: &str, kind: &str, bodies: Vec<Value>) -> Sequence {
    let (api, plural) = path.rsplit_once('/').unwrap_or_default();
    let namespaced = api.strip_prefix('+');
    let path = match namespaced {
        Some(api) => format!("/{api}/namespaces/{{ns}}/{plural}"),
        None => format!("/{api}/{plural}"),
    };
    let version = api.trim_start_matches('+').trim_start_matches("apis/").trim_start_matches("api/").to_owned();
    let mut steps = Vec::new();
    for (index, mut body) in bodies.into_iter().enumerate() {
        let name = if namespaced.is_some() { format!("n{index}") } else { format!("{{ns}}-{index}") };
        body["apiVersion"] = Value::from(version.as_str());
        body["kind"] = Value::from(kind);
        body["metadata"]["name"] = Value::from(name.as_str());
        let one = format!("{path}/{name}");
        let label = json!({"metadata": {"labels": {"k": "v"}}});
        steps.push(Step::post(&path[..], body));
        steps.push(Step::get(&one[..]).accepting(TABLE));
        steps.push(Step::patch(&one[..], "merge-patch", label));
        steps.push(Step::delete(&one[..]));
    }
    Sequence { name: format!("objects of {kind}"), steps }
}

fn pods(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

/// A Pod template with every field in which the server sets defaults.
fn rich(labels: &Value) -> Value {
    let container = json!({
        "name": "c", "image": "i", "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"tcpSocket": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": "p"}}}, "resources": {"limits": {"cpu": "1"}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        "volumeMounts": [{"name": "s", "mountPath": "/s"}],
    });
    let volumes = json!([
        {"name": "s", "secret": {"secretName": "x"}},
        {"name": "c", "configMap": {"name": "x"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
        {"name": "d", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "e", "emptyDir": {}},
        {"name": "i", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage.kube.sys1.xyz", "lun": 0}},
        {"name": "r", "rbd": {"monitors": ["a"], "image": "i"}},
        {"name": "a", "azureDisk": {"diskName": "d", "diskURI": "https://x"}},
        {"name": "o", "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "x"}, "volumeName": "v"}},
    ]);
    let spec = json!({"hostNetwork": true, "initContainers": [{"name": "i", "image": "x:latest"}],
                      "containers": [container], "volumes": volumes, "serviceAccountName": "sa"});
    json!({"metadata": {"labels": labels}, "spec": spec})
}

fn workloads() -> Vec<Case> {
    let (labels, selector) = (json!({"a": "b"}), json!({"matchLabels": {"a": "b"}}));
    let of = |template: Value| json!({"spec": {"selector": selector, "template": template}});
    let other = json!({"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": pods(&labels)}});
    let mut stateful = of(rich(&labels));
    stateful["spec"]["serviceName"] = json!("s");
    stateful["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "v"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    let mut on_delete = of(pods(&labels));
    on_delete["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    let expressions = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "a"]}]});
    let by_expression = json!({"spec": {"selector": expressions, "template": pods(&labels)}});
    let amounts = |limits: Value, requests: Value| {
        let mut template = pods(&labels);
        template["spec"]["containers"][0]["resources"] = json!({"limits": limits, "requests": requests});
        of(template)
    };
    let too_little = amounts(json!({"cpu": "-1"}), json!({"memory": "-1Mi"}));
    let too_much = amounts(json!({"memory": "1Gi"}), json!({"memory": "1025Mi"}));
    vec![
        ("+apis/apps/v1/statefulsets", "StatefulSet", vec![stateful, on_delete.clone(), other.clone()]),
        ("+apis/apps/v1/daemonsets", "DaemonSet", vec![of(rich(&labels)), on_delete, other.clone()]),
        ("+apis/apps/v1/replicasets", "ReplicaSet", vec![of(pods(&labels)), by_expression.clone(), other.clone()]),
        ("+apis/apps/v1/deployments", "Deployment", vec![of(rich(&labels)), by_expression, too_little, too_much]),
        (
            "+api/v1/replicationcontrollers",
            "ReplicationController",
            vec![
                json!({"spec": {"template": pods(&labels)}}),
                json!({"spec": {"selector": {"x": "y"}, "template": pods(&labels)}}),
            ],
        ),
        ("+api/v1/podtemplates", "PodTemplate", vec![json!({"template": rich(&labels)})]),
        (
            "+apis/apps/v1/controllerrevisions",
            "ControllerRevision",
            vec![json!({"data": {"a": 1}, "revision": 1}), json!({"revision": -1})],
        ),
    ]
}

fn jobs() -> Vec<Case> {
    let once = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let bodies = vec![
        json!({"spec": {"template": once}}),
        json!({"spec": {"completions": 3, "template": once}}),
        json!({"spec": {"parallelism": 3, "template": once}}),
        json!({"spec": {"template": pods(&json!({"a": "b"}))}}),
        json!({"spec": {"backoffLimit": -1, "template": once}}),
    ];
    let often = |schedule: &str, template: &Value| json!({"spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}});
    let schedules =
        ["*/5 * * * *", "@hourly", "0 0 1,15 * mon-fri", "@every 1h", "x", "* * * *", "@often", "* * * * $"];
    let mut often_bodies: Vec<Value> = schedules.iter().map(|schedule| often(schedule, &once)).collect();
    often_bodies.push(often("@daily", &pods(&json!({"a": "b"}))));
    vec![("+apis/batch/v1/jobs", "Job", bodies), ("+apis/batch/v1/cronjobs", "CronJob", often_bodies)]
}

fn network() -> Vec<Case> {
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let rule = |path: Value| json!({"spec": {"rules": [{"host": "a.b", "http": {"paths": [path]}}]}});
    let services = vec![
        json!({"spec": {"ports": [{"port": 80}]}}),
        json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "name": "a", "targetPort": "http"}, {"port": 81, "name": "b", "protocol": "UDP"}]}}),
        json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}}),
        json!({"spec": {"type": "ExternalName", "externalName": "a.b"}}),
        json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]}}),
        json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "sessionAffinity": "ClientIP", "ports": [{"port": 80}]}}),
        json!({"spec": {}}),
        json!({"spec": {"type": "Odd", "ports": [{"port": 0}]}}),
        json!({"spec": {"clusterIP": "1.2.3.4", "ports": [{"port": 80}]}}),
        json!({"spec": {"ports": [{"port": 80}, {"port": 80}]}}),
    ];
    let ingresses = vec![
        rule(json!({"path": "/", "pathType": "Prefix", "backend": backend})),
        json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"name": "http"}}}, "tls": [{"hosts": ["a.b"], "secretName": "x"}], "ingressClassName": "c"}}),
        json!({"spec": {}}),
        rule(json!({"path": "x", "pathType": "Prefix", "backend": backend})),
        rule(json!({"path": "/x", "backend": backend})),
    ];
    let four: Vec<Value> = (1..=4).map(|n| json!({"ip": format!("1.2.3.{n}")})).collect();
    let endpoints = vec![json!({}), json!({"subsets": [{"addresses": four, "ports": [{"port": 80}]}]})];
    let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]});
    vec![
        ("+api/v1/services", "Service", services),
        ("+apis/discovery.k8s.io/v1/endpointslices", "EndpointSlice", vec![slice]),
        ("+api/v1/endpoints", "Endpoints", endpoints),
        ("+apis/networking.k8s.io/v1/ingresses", "Ingress", ingresses),
        (
            "apis/networking.k8s.io/v1/ingressclasses",
            "IngressClass",
            vec![json!({"spec": {"controller": "a.b/c"}}), json!({"spec": {}})],
        ),
    ]
}

fn storage() -> Vec<Case> {
    let claim = |class: Value| json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}});
    let volume =
        json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    vec![
        (
            "+api/v1/persistentvolumeclaims",
            "PersistentVolumeClaim",
            vec![claim(Value::Null), claim(json!("x")), json!({"spec": {}})],
        ),
        ("api/v1/persistentvolumes", "PersistentVolume", vec![volume, json!({"spec": {}})]),
        ("apis/storage.k8s.io/v1/storageclasses", "StorageClass", vec![json!({"provisioner": "a.b/c"}), json!({})]),
    ]
}

fn rights() -> Vec<Case> {
    let view = json!({"kind": "ClusterRole", "name": "view"});
    let subjects = json!([{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "default"}, {"kind": "Group", "name": "g"}]);
    let rule = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let urls = json!({"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]});
    vec![
        (
            "+apis/rbac.authorization.k8s.io/v1/roles",
            "Role",
            vec![rule, json!({}), urls.clone(), json!({"rules": [{"resources": ["pods"]}]})],
        ),
        ("apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRole", vec![urls]),
        (
            "+apis/rbac.authorization.k8s.io/v1/rolebindings",
            "RoleBinding",
            vec![
                json!({"roleRef": view, "subjects": subjects}),
                json!({}),
                json!({"roleRef": view, "subjects": [{"kind": "Cat"}]}),
            ],
        ),
        (
            "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "ClusterRoleBinding",
            vec![json!({"roleRef": view, "subjects": subjects})],
        ),
    ]
}

fn cluster() -> Vec<Case> {
    let limits = |limit: Value| json!({"spec": {"limits": [limit]}});
    let budget = |spec: Value| json!({"spec": spec});
    let scaled = |more: Value| {
        let mut spec =
            json!({"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}});
        spec.as_object_mut().expect("written above").extend(more.as_object().cloned().unwrap_or_default());
        json!({"spec": spec})
    };
    let roles = json!({"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x"});
    vec![
        (
            "api/v1/nodes",
            "Node",
            vec![
                json!({}),
                json!({"metadata": {"labels": roles}, "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24"}}),
            ],
        ),
        (
            "+api/v1/limitranges",
            "LimitRange",
            vec![
                limits(json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}})),
                limits(json!({"type": "Container", "max": {"cpu": "1"}})),
                limits(json!({"type": "Pod", "max": {"cpu": "1"}})),
            ],
        ),
        (
            "+apis/policy/v1/poddisruptionbudgets",
            "PodDisruptionBudget",
            vec![
                budget(json!({"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}})),
                budget(json!({"minAvailable": 1, "maxUnavailable": 1})),
                budget(json!({"minAvailable": "half"})),
                budget(json!({"maxUnavailable": "101%"})),
            ],
        ),
        (
            "+apis/autoscaling/v2/horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            vec![
                scaled(json!({})),
                scaled(
                    json!({"minReplicas": 2, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}, "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                        {"type": "Pods", "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    ]}),
                ),
            ],
        ),
        (
            "apis/scheduling.k8s.io/v1/priorityclasses",
            "PriorityClass",
            vec![json!({"value": 10}), json!({"value": 2_000_000_000})],
        ),
        ("apis/node.k8s.io/v1/runtimeclasses", "RuntimeClass", vec![json!({"handler": "h"}), json!({})]),
    ]
}
