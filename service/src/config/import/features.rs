//! The translation of Connaisseur's switches, and of the values around its policy.

use serde_json::{Map, Value, json};

/// Translates `application.features` and the log level.
pub fn translate(
    application: &Value,
    config: &mut Map<String, Value>,
    policy: &mut Map<String, Value>,
    left: &mut Vec<String>,
) {
    let features = application.get("features").unwrap_or(&Value::Null);
    let flag = |key: &str, default: bool| features.get(key).and_then(Value::as_bool).unwrap_or(default);
    // If this is off in Connaisseur, an image is judged again at every update.
    if !flag("automaticUnchangedApproval", false) {
        policy.insert("recheck".into(), json!("always"));
    }
    let pods_only = features.get("resourceValidationMode").and_then(Value::as_str) == Some("podsOnly");
    if pods_only {
        policy.insert("resources".into(), json!("podsOnly"));
    } else if flag("automaticChildApproval", true) {
        policy.insert("automaticChildApproval".into(), json!(true));
        left.push(
            "automaticChildApproval reads the owners of objects: the service account needs `get` on replicasets, deployments, \
             statefulsets, daemonsets, jobs, cronjobs and replicationcontrollers."
                .to_owned(),
        );
    }
    if flag("detectionMode", false) {
        policy.insert("detection".into(), json!(true));
    }
    if let Some(seconds) = features.pointer("/cache/expirySeconds").and_then(Value::as_u64) {
        policy.insert("cache".into(), json!({"ttl": format!("{seconds}s")}));
    }
    if features.pointer("/cache/cacheErrors").and_then(Value::as_bool) == Some(false) {
        left.push(
            "features.cache.cacheErrors: false was left out: a definite refusal is remembered for at most 10 s, and an undecided image \
             never."
                .to_owned(),
        );
    }
    if let Some(mode) = features.pointer("/namespacedValidation/mode").and_then(Value::as_str) {
        let (operator, what) = if mode == "validate" { ("In", "take part") } else { ("NotIn", "do not") };
        left.push(format!(
            "features.namespacedValidation.mode: {mode} is for the webhook's namespaceSelector: {{matchExpressions: [{{key: \
             securesystemsengineering.connaisseur/webhook, operator: {operator}, values: [{mode}]}}]}}; namespaces that carry it \
             {what}. `policy.namespaces` says the same by name."
        ));
    }
    let level = application.get("logLevel").and_then(Value::as_str).unwrap_or("info");
    let level = match level {
        "warning" | "warn" => "warn",
        "debug" | "trace" | "error" => level,
        _ => "info",
    };
    config.insert("log".into(), json!({"level": level}));
}

/// Notes on values outside the application.
pub fn around(values: &Value, left: &mut Vec<String>) {
    let policy = values.pointer("/kubernetes/webhook/failurePolicy").and_then(Value::as_str);
    if let Some(policy) = policy {
        left.push(format!("kubernetes.webhook.failurePolicy: {policy} belongs into webhook.yaml."));
    }
    if values.pointer("/kubernetes/redis").is_some() {
        left.push("kubernetes.redis was left out: verdicts are remembered in memory.".to_owned());
    }
    if values.pointer("/kubernetes/deployment").is_some() {
        left.push("kubernetes.deployment was left out: see kind/manifests/deployment.yaml.".to_owned());
    }
}
