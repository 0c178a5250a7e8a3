//! Pod specs as users write them: containers with probes, environment, resources and volumes; no defaults. Pure: no
//! I/O.
//!
//! The specs only have to look real in form and size, because no kubelet runs them.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::seed;

/// Words that are combined into names in objects: environment variables, labels, volumes.
const WORDS: [&str; 16] = [
    "cart", "ledger", "search", "mail", "gateway", "session", "export", "index", "billing", "catalog", "notify",
    "ingest", "render", "audit", "quota", "relay",
];

pub(super) fn word(rng: &mut ChaCha8Rng) -> &'static str {
    WORDS[rng.random_range(0..WORDS.len())]
}

/// The shortest pod spec that a user writes: a name, an image and one more word for each container.
pub(super) fn lean(images: &[String]) -> Value {
    let containers = images
        .iter()
        .enumerate()
        .map(|(i, image)| json!({"name": format!("app-{i}"), "image": image, "args": ["serve"]}));
    json!({"containers": containers.collect::<Vec<_>>()})
}

/// A pod spec with one container for each image. The last of three images, and sometimes of two, is an init container.
/// Some init containers run as sidecars.
pub(super) fn spec(rng: &mut ChaCha8Rng, images: &[String]) -> Value {
    let with_init = images.len() > 2 || (images.len() > 1 && rng.random_bool(0.5));
    let (containers, init) = images.split_at(images.len() - usize::from(with_init));
    let mut list = vec![main(rng, &containers[0])];
    for (i, image) in containers.iter().enumerate().skip(1) {
        list.push(sidecar(rng, i, image));
    }
    let name = word(rng);
    let mut spec = json!({
        "containers": list,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": name,
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "config", "configMap": {"name": format!("{name}-config")}},
            {"name": "credentials", "secret": {"secretName": format!("{name}-credentials"), "optional": true}}
        ]
    });
    if let [image] = init {
        spec["initContainers"] = json!([init_container(rng, image)]);
    }
    surroundings(rng, name, &mut spec);
    spec
}

/// Adds fields that only some specs have: node selection, pull secrets, grace period.
fn surroundings(rng: &mut ChaCha8Rng, name: &str, spec: &mut Value) {
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": name}});
    if rng.random_bool(0.4) {
        spec["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}}
        ]}});
    }
    if rng.random_bool(0.3) {
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector
        }]);
    }
    if rng.random_bool(0.3) {
        spec["imagePullSecrets"] = json!([{"name": "registry-credentials"}]);
    }
    if rng.random_bool(0.3) {
        spec["nodeSelector"] = json!({"kubernetes.io/os": "linux", "node.example.com/pool": word(rng)});
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Equal", "value": name, "effect": "NoSchedule"}]);
    }
    if rng.random_bool(0.2) {
        spec["hostAliases"] = json!([{"ip": "10.0.3.7", "hostnames": ["legacy.example.com"]}]);
    }
    if rng.random_bool(0.3) {
        spec["terminationGracePeriodSeconds"] = json!(rng.random_range(5..120));
    }
}

/// The main container of the Pod.
fn main(rng: &mut ChaCha8Rng, image: &str) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "initialDelaySeconds": 5});
    let mut env = vec![
        json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        json!({"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}}),
    ];
    for i in 0..rng.random_range(1..10) {
        let name = format!("{}_URL_{i}", word(rng).to_uppercase());
        let value = format!("{}://{}.internal:8080/{}", word(rng), word(rng), seed::suffix(rng, 12));
        env.push(json!({"name": name, "value": value}));
    }
    let mut container = json!({
        "name": "app",
        "image": image,
        "args": ["--listen", ":8080", "--log-format=json"],
        "env": env,
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": {"cpu": format!("{}m", rng.random_range(1..8) * 50), "memory": "64Mi"},
            "limits": {"memory": format!("{}Mi", rng.random_range(1..8) * 128)}
        },
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true},
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "config", "mountPath": "/etc/app", "readOnly": true},
            {"name": "credentials", "mountPath": "/etc/credentials", "readOnly": true}
        ]
    });
    if rng.random_bool(0.3) {
        container["envFrom"] = json!([{"configMapRef": {"name": format!("{}-env", word(rng))}}]);
    }
    if rng.random_bool(0.3) {
        container["lifecycle"] = json!({"preStop": {"exec": {"command": ["/bin/sleep", "5"]}}});
    }
    container
}

/// A container beside the main container; it is simpler than the main container.
pub(super) fn sidecar(rng: &mut ChaCha8Rng, index: usize, image: &str) -> Value {
    let port = 9000 + index;
    json!({
        "name": format!("{}-{index}", word(rng)),
        "image": image,
        "args": [format!("--listen=:{port}"), "--upstream=http://127.0.0.1:8080"],
        "ports": [{"containerPort": port}],
        "livenessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 20},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]
    })
}

fn init_container(rng: &mut ChaCha8Rng, image: &str) -> Value {
    let mut container = json!({
        "name": "prepare",
        "image": image,
        "command": ["/bin/prepare", "--wait"],
        "env": [{"name": "TARGET", "value": format!("{}.internal", word(rng))}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]
    });
    // Runs as long as the Pod does (Kubernetes 1.29 and later).
    if rng.random_bool(0.3) {
        container["restartPolicy"] = json!("Always");
    }
    container
}

pub(super) fn volume(rng: &mut ChaCha8Rng, number: usize) -> (Value, Value) {
    let name = format!("{}-{number}", word(rng));
    let source = match rng.random_range(0..3) {
        0 => json!({"name": name, "configMap": {"name": format!("{name}-files")}}),
        1 => json!({"name": name, "secret": {"secretName": format!("{name}-keys")}}),
        _ => json!({"name": name, "persistentVolumeClaim": {"claimName": format!("{name}-data")}}),
    };
    (source, json!({"name": name, "mountPath": format!("/srv/{name}"), "readOnly": true}))
}

/// An ephemeral container as `kubectl debug` adds it.
pub(super) fn debugger(rng: &mut ChaCha8Rng, image: &str, target: &str) -> Value {
    json!({
        "name": format!("debugger-{}", seed::suffix(rng, 5)),
        "image": image,
        "stdin": true,
        "tty": true,
        "targetContainerName": target
    })
}
