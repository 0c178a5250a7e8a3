//! Pod specs as people write them: containers with probes, environment, resources and volumes. Pure.
//!
//! They only have to look like the real thing in shape and size (1 to 4 KiB); no kubelet ever runs them.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::seed;

/// Fits every name that the objects need: environment variables, labels, volumes.
const WORDS: [&str; 16] = [
    "cart", "ledger", "search", "mail", "gateway", "session", "export", "index", "billing", "catalog", "notify",
    "ingest", "render", "audit", "quota", "relay",
];

/// A word for a name.
pub(super) fn word(rng: &mut ChaCha8Rng) -> &'static str {
    WORDS[rng.random_range(0..WORDS.len())]
}

/// A pod spec with one container for each image. With three images the last is an init container, with two sometimes.
pub(super) fn spec(rng: &mut ChaCha8Rng, images: &[String]) -> Value {
    let with_init = images.len() > 2 || (images.len() > 1 && rng.random_bool(0.5));
    let (containers, init) = images.split_at(images.len() - usize::from(with_init));
    let mut spec = json!({
        "containers": containers.iter().enumerate().map(|(i, image)| container(rng, i, image)).collect::<Vec<_>>(),
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": true,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
            {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "config", "configMap": {"name": format!("{}-config", word(rng)), "defaultMode": 420}},
            {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
            ]}}
        ]
    });
    if let [image] = init {
        spec["initContainers"] = json!([{
            "name": "prepare",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/prepare", "--wait"],
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"
        }]);
    }
    spec
}

/// An ephemeral container as `kubectl debug` adds it.
pub(super) fn debugger(rng: &mut ChaCha8Rng, image: &str) -> Value {
    json!({
        "name": format!("debugger-{}", seed::suffix(rng, 5)),
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "stdin": true,
        "tty": true,
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File"
    })
}

fn container(rng: &mut ChaCha8Rng, index: usize, image: &str) -> Value {
    let port = 8080 + index;
    let probe = |path: &str| {
        json!({
            "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
            "initialDelaySeconds": 5, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3
        })
    };
    let env: Vec<Value> = (0..rng.random_range(0..5))
        .map(|i| {
            let name = format!("{}_{i}", word(rng).to_uppercase());
            json!({"name": name, "value": format!("{}://{}.internal:{port}/{}", word(rng), word(rng), seed::suffix(rng, 12))})
        })
        .collect();
    let mut container = json!({
        "name": if index == 0 { "app".to_owned() } else { format!("sidecar-{index}") },
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen", format!(":{port}"), "--log-format=json"],
        "env": env,
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "livenessProbe": probe("/healthz"),
        "resources": {
            "requests": {"cpu": format!("{}m", rng.random_range(1..8) * 50), "memory": "64Mi"},
            "limits": {"memory": format!("{}Mi", rng.random_range(1..8) * 128)}
        },
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "config", "mountPath": "/etc/app", "readOnly": true},
            {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}
        ]
    });
    // Sidecars are simpler than what they serve.
    if index == 0 {
        container["readinessProbe"] = probe("/readyz");
    }
    container
}
