//! Tests of mutating admission policies. The expected answers are those of kube-apiserver 1.34.1 with the feature gate
//! and the API version that such policies need.

use super::*;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1beta1";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

async fn world() -> (World, Client) {
    let world = World::with(|config| config.feature_gates = vec!["MutatingAdmissionPolicy".to_owned()]).await;
    let client = world.client(Protocol::Http1, "harness").await;
    (world, client)
}

fn policy(name: &str, mutations: &Value) -> Value {
    let rule = json!({"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                      "resources": ["configmaps", "deployments"]});
    let matches = json!({"resourceRules": [rule], "objectSelector": {"matchLabels": {"m": name}}});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": matches, "reinvocationPolicy": "Never", "mutations": mutations},
    })
}

fn applies(expression: &str) -> Value {
    json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}])
}

fn patches(expression: &str) -> Value {
    json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}])
}

async fn bind(client: &mut Client, name: &str, mutations: Value) {
    let (status, made) = client.post(&format!("{GROUP}/mutatingadmissionpolicies"), &policy(name, &mutations)).await;
    assert_eq!(status, 201, "{made}");
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    let (status, made) = client.post(&format!("{GROUP}/mutatingadmissionpolicybindings"), &binding).await;
    assert_eq!(status, 201, "{made}");
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"m": name}}, "data": {"a": "b"}})
}

fn deployment(name: &str) -> Value {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"m": name}},
           "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
}

#[tokio::test]
async fn policies_change_objects() {
    let (_world, mut client) = world().await;
    let expression = "Object{metadata: Object.metadata{labels: {'x': 'y'}}, data: {'b': string(size(object.data))}}";
    bind(&mut client, "apply", applies(expression)).await;
    let (_, made) = client.post(CONFIG_MAPS, &map("apply")).await;
    assert_eq!(made["metadata"]["labels"], json!({"m": "apply", "x": "y"}), "{made}");
    assert_eq!(made["data"], json!({"a": "b", "b": "1"}));

    let expression = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'd'}]";
    bind(&mut client, "json", patches(expression)).await;
    let (_, made) = client.post(CONFIG_MAPS, &map("json")).await;
    assert_eq!(made["metadata"]["labels"], json!({"m": "json", "a/b": "d"}), "{made}");

    let expression =
        "[JSONPatch{op: 'add', path: '/data/z', value: 'd'}, JSONPatch{op: 'test', path: '/data/z', value: 'e'}]";
    bind(&mut client, "test", patches(expression)).await;
    let (_, made) = client.post(CONFIG_MAPS, &map("test")).await;
    assert_eq!(made["data"], json!({"a": "b"}), "a failed test drops the patch: {made}");

    let containers = "[Object.spec.template.spec.containers{name: 'side', image: 'i:1'}]";
    let expression = format!(
        "Object{{spec: Object.spec{{template: Object.spec.template{{spec: \
         Object.spec.template.spec{{containers: {containers}}}}}}}}}"
    );
    bind(&mut client, "containers", applies(&expression)).await;
    let (_, made) = client.post(DEPLOYMENTS, &deployment("containers")).await;
    let containers = made["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let names: Vec<&str> = containers.iter().map(|container| container["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "side"]);
    assert_eq!(containers[1]["imagePullPolicy"], "IfNotPresent", "the new container has its defaults");
}

#[tokio::test]
async fn a_failed_mutation_refuses_the_object() {
    let (_world, mut client) = world().await;
    let cases = [
        (
            "wrong",
            "Object{spec: Object.spec{template: Object.template{}}}",
            "type mismatch: unexpected type name \"Object.template\", expected \"Object.spec.template\", which matches \
             field name path from root Object type",
        ),
        (
            "error",
            "Object{metadata: Object.metadata{labels: {'x': object.nothing}}}",
            "expression 'Object{metadata: Object.metadata{labels: {'x': object.nothing}}}' resulted in error: no such \
             key: nothing",
        ),
        (
            "unknown",
            "Object{dato: {'x': 'y'}}",
            "error applying patch: failed to convert patch object to typed object: .dato: field not declared in schema",
        ),
    ];
    for (name, expression, why) in cases {
        bind(&mut client, name, applies(expression)).await;
        let (status, refused) = client.post(CONFIG_MAPS, &map(name)).await;
        let why = format!("policy '{name}' with binding '{name}' denied request: {why}");
        assert_eq!((status, &refused["message"], &refused["reason"]), (403, &json!(why), &json!("Invalid")));
        assert_eq!(refused["details"]["causes"], json!([{"message": why}]));
    }
    let whole = "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}";
    bind(&mut client, "atomic", applies(whole)).await;
    let (status, refused) = client.post(DEPLOYMENTS, &deployment("atomic")).await;
    let why = "policy 'atomic' with binding 'atomic' denied request: error applying patch: invalid ApplyConfiguration: may \
               not mutate atomic arrays, maps or structs: .spec.selector";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
}

/// A patch that copies a map into itself many times, which doubles the map each time, is refused.
#[tokio::test]
async fn a_patch_that_doubles_an_object_is_refused() {
    let (_world, mut client) = world().await;
    let copy = |number: usize| format!("JSONPatch{{op: 'copy', from: '/data', path: '/data/x{number}'}}");
    let copies: Vec<String> = (0..40).map(copy).collect();
    bind(&mut client, "double", patches(&format!("[{}]", copies.join(", ")))).await;
    let (status, refused) = client.post(CONFIG_MAPS, &map("double")).await;
    assert_eq!(status, 403, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("the accumulated size increase of copy"), "{refused}");
}

#[tokio::test]
async fn a_wrong_policy_is_refused() {
    let (_world, mut client) = world().await;
    let mutations = json!([
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[1]"}},
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "{}"}},
        {"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/a'}]"}},
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Objects{}"}},
    ]);
    let mut wrong = policy("p", &mutations);
    wrong["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]);
    let (status, refused) = client.post(&format!("{GROUP}/mutatingadmissionpolicies"), &wrong).await;
    assert_eq!(status, 422, "{refused}");
    let causes: Vec<&str> = refused["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["message"].as_str().unwrap())
        .collect();
    let expected = [
        "Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
        "Invalid value: \"[1]\": must evaluate to list(JSONPatch) but got list(int)",
        "Invalid value: \"{}\": must evaluate to Object but got map(dyn, dyn)",
        "Required value: must be specified when patchType is ApplyConfiguration",
        "Invalid value: \"{jsonPatch}\": must not be specified when patchType is ApplyConfiguration",
        "Invalid value: \"Objects{}\": compilation failed: ERROR: <input>:1:8: undeclared reference to 'Objects' (in \
         container '')\n | Objects{}\n | .......^",
    ];
    assert_eq!(causes, expected);
}

#[tokio::test]
async fn without_its_gate_nothing_is_served() {
    let (_world, mut client) = World::alone().await;
    assert_eq!(client.get(&format!("{GROUP}/mutatingadmissionpolicies")).await.0, 404);
    assert_eq!(client.get(GROUP).await.0, 404);
}
