//! Tests of validating admission policies, limit ranges and quotas. The expected messages are those of a real server.

use super::*;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn a_policy_refuses_with_its_parameters() {
    let (_world, mut client) = World::alone().await;
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"max": "1"}});
    assert_eq!(client.post(MAPS, &limits).await.0, 201);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "x", "expression": "object.metadata.name != 'free'"}],
            "variables": [{"name": "n", "expression": "size(object.data)"}],
            "validations": [{
                "expression": "variables.n <= int(params.data.max)", "reason": "Forbidden",
                "messageExpression": "'too many: ' + string(variables.n)",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {
            "policyName": "p", "validationActions": ["Deny"],
            "paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"},
        },
    });
    assert_eq!(client.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy).await.0, 201);
    let several = json!({"a": "YQ==", "b": "YQ=="});
    assert_eq!(client.post(SECRETS, &secret("unbound", &several)).await.0, 201);
    assert_eq!(client.post(&format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await.0, 201);
    assert_eq!(client.post(SECRETS, &secret("one", &json!({"a": "YQ=="}))).await.0, 201);
    assert_eq!(client.post(SECRETS, &secret("free", &several)).await.0, 201);
    let (status, refused) = client.post(SECRETS, &secret("two", &several)).await;
    let why =
        "secrets \"two\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too many: 2";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
}

#[tokio::test]
async fn a_condition_that_is_false_decides_and_missing_parameters_refuse() {
    let (_world, mut client) = World::alone().await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "fails", "expression": "object.nothing == 1"},
                {"name": "decides", "expression": "object.metadata.name != 'free'"},
            ],
            "validations": [{"expression": "true"}],
        },
    });
    let binding = |name: &str, parameters: &str, action: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": "p", "validationActions": [action],
                "paramRef": {"name": parameters, "namespace": "default", "parameterNotFoundAction": "Deny"},
            },
        })
    };
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}});
    assert_eq!(client.post(MAPS, &limits).await.0, 201);
    assert_eq!(client.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy).await.0, 201);
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    assert_eq!(client.post(&bindings, &binding("b", "limits", "Deny")).await.0, 201);
    assert_eq!(client.post(SECRETS, &secret("free", &json!({}))).await.0, 201);
    let (status, refused) = client.post(SECRETS, &secret("other", &json!({}))).await;
    assert_eq!(status, 422, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("no such key: nothing"), "{refused}");
    // The binding only audits, but has no parameters.
    assert_eq!(client.post(&bindings, &binding("c", "none", "Audit")).await.0, 201);
    let (status, refused) = client.post(SECRETS, &secret("free-2", &json!({}))).await;
    assert_eq!(status, 422, "{refused}");
}

#[tokio::test]
async fn a_limit_range_gives_defaults_and_bounds() {
    let (_world, mut client) = World::alone().await;
    let limit =
        json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "2"}});
    let range =
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [limit]}});
    assert_eq!(client.post("/api/v1/namespaces/default/limitranges", &range).await.0, 201);
    let pod = |resources: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
    };
    let (status, refused) = client.post(PODS, &pod(json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}))).await;
    let why = "pods \"p\" is forbidden: maximum cpu usage per Container is 2, but limit is 3";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    let (_, made) = client.post(PODS, &pod(json!({}))).await;
    let expected = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}});
    assert_eq!(made["spec"]["containers"][0]["resources"], expected, "{made}");
    let said = "LimitRanger plugin set: cpu request for container c; cpu limit for container c";
    assert_eq!(made["metadata"]["annotations"]["kubernetes.io/limit-ranger"], json!(said));
}

/// The keys and values of the audit annotations are those that a real server writes.
#[tokio::test]
async fn a_policy_annotates_the_request_in_the_audit() {
    let (_world, mut client) = World::alone().await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "true"}, {"expression": "object.metadata.name != 'bad'", "message": "no"}],
            "auditAnnotations": [
                {"key": "name", "valueExpression": "'it is ' + object.metadata.name"},
                {"key": "nothing", "valueExpression": "null"},
            ],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Audit", "Deny"]},
    });
    assert_eq!(client.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy).await.0, 201);
    assert_eq!(client.post(&format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await.0, 201);
    assert_eq!(client.post(SECRETS, &secret("good", &json!({}))).await.0, 201);
    assert_eq!(client.post(SECRETS, &secret("bad", &json!({}))).await.0, 422);
    let (_, seen) = client.get(&format!("/longhaul/requests?path={SECRETS}")).await;
    let annotations: Vec<&Value> = seen["requests"].as_array().unwrap().iter().map(|one| &one["annotations"]).collect();
    let failure = json!([{"message": "no", "policy": "p", "binding": "b", "expressionIndex": 1,
        "validationActions": ["Audit", "Deny"]}]);
    let refused = json!({"p/name": "it is bad",
        "validation.policy.admission.k8s.io/validation_failure": failure.to_string()});
    assert_eq!(annotations, [&refused, &json!({"p/name": "it is good"})], "newest first");
}
