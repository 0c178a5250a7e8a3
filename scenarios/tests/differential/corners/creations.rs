//! Sequences of requests with creations that store nothing, and with server-side apply of objects that do not exist.

use serde_json::{Value, json};

use crate::generator::Kind;
use crate::sequence::{Sequence, Step};

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![
        one("questions that are none", reviews()),
        one("bindings in their older form", bindings()),
        one("an apply of what is not there", applies()),
        one("preconditions of deletions", preconditions()),
    ]
}

/// Requests for access reviews that the servers refuse. Accepted access reviews are left out, because rights differ
/// between the servers.
fn reviews() -> Vec<Step> {
    let (access, who) = ("/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1");
    let (any, own) = (format!("{access}/subjectaccessreviews"), format!("{access}/selfsubjectaccessreviews"));
    let local = format!("{access}/namespaces/{{ns}}/localsubjectaccessreviews");
    let tokens = format!("{who}/tokenreviews");
    let (get, path) =
        (json!({"namespace": "{ns}", "verb": "get", "resource": "pods"}), json!({"path": "/", "verb": "get"}));
    let ask = |path: &str, spec: Value| Step::post(path, json!({"spec": spec}));
    let inside = |spec: Value| Step::post(&local[..], json!({"metadata": {"namespace": "{ns}"}, "spec": spec}));
    vec![
        ask(&any, json!({})),
        ask(&any, json!({"resourceAttributes": get})),
        ask(&any, json!({"user": 5})),
        ask(&any, json!({"user": "u", "resourceAttributes": get, "nonResourceAttributes": path})),
        Step::post(&any[..], json!({"metadata": {"name": "x"}, "spec": {"user": "u", "resourceAttributes": get}})),
        Step::post(
            &any[..],
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"user": "u", "resourceAttributes": get}}),
        ),
        Step::post(&any[..], json!({"kind": "Pod", "apiVersion": "v1"})),
        ask(&own, json!({})),
        ask(&own, json!({"resourceAttributes": get, "nonResourceAttributes": path})),
        inside(json!({"user": "u", "nonResourceAttributes": path})),
        inside(json!({"user": "u", "resourceAttributes": {"namespace": "elsewhere", "verb": "get"}})),
        inside(json!({"resourceAttributes": get})),
        ask(&format!("{access}/selfsubjectrulesreviews"), json!({})),
        ask(&tokens, json!({})),
        Step::get(&any[..]),
        Step::delete(&any[..]),
        Step::get(format!("{any}/x")),
        Step::put(format!("{any}/x"), json!({})),
        ask(&format!("{any}/x"), json!({"user": "u", "resourceAttributes": get})),
        ask(&format!("{access}/localsubjectaccessreviews"), json!({"user": "u", "resourceAttributes": get})),
    ]
}

fn bindings() -> Vec<Step> {
    let (pods, bindings) = (Kind::Pod.path(), "/api/v1/namespaces/{ns}/bindings");
    let binding = |name: &str| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
    let with = |key: &str, value: Value| {
        let mut binding = binding("b");
        binding[key] = value;
        Step::post(bindings, binding)
    };
    vec![
        Step::post(&pods[..], Kind::Pod.object("a", 0)),
        Step::post(&pods[..], Kind::Pod.object("b", 0)),
        Step::post(format!("{bindings}?dryRun=All"), binding("a")),
        Step::get(format!("{pods}/a")),
        Step::post(bindings, binding("a")),
        Step::get(format!("{pods}/a")),
        Step::post(bindings, binding("a")),
        Step::post(bindings, binding("none")),
        with("target", json!({})),
        with("target", json!({"kind": "Pod", "name": "n1"})),
        with("metadata", json!({})),
        with("kind", json!("Pod")),
        with("metadata", json!({"name": "b", "annotations": {"why": "test"}})),
        Step::get(format!("{pods}/b")),
        Step::get(bindings),
        Step::delete(bindings),
        Step::get(format!("{bindings}/a")),
        Step::post(format!("{bindings}/a"), binding("a")),
        Step::post("/api/v1/bindings", binding("a")),
    ]
}

fn applies() -> Vec<Step> {
    let mut steps = Vec::new();
    for (kind, fields) in [(Kind::ConfigMap, ["resourceVersion", "uid"]), (Kind::Widget, ["uid", "resourceVersion"])] {
        for field in fields {
            let mut object = kind.object("a", 0);
            object["metadata"][field] = json!("1");
            let path = format!("{}/a", kind.path());
            steps.push(Step::apply(format!("{path}?fieldManager=one"), object));
            steps.push(Step::get(&path[..]));
            steps.push(Step::delete(path));
        }
    }
    steps
}

fn preconditions() -> Vec<Step> {
    let options =
        |preconditions: Value| json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
    let mut steps = Vec::new();
    for kind in [Kind::ConfigMap, Kind::Pod, Kind::Widget] {
        let (path, one) = (kind.path(), format!("{}/a", kind.path()));
        steps.push(Step::post(&path[..], kind.object("a", 0)));
        for wrong in [json!({"uid": "x"}), json!({"resourceVersion": "1"}), json!({"uid": "x", "resourceVersion": "1"})]
        {
            steps.push(Step::delete(&one[..]).with_body(options(wrong.clone())));
            steps.push(Step::delete(format!("{one}?dryRun=All")).with_body(options(wrong.clone())));
            steps.push(Step::delete(&path[..]).with_body(options(wrong)));
        }
        steps.push(Step::get(one));
    }
    let (pods, mut bound) = (Kind::Pod.path(), Kind::Pod.object("b", 0));
    bound["spec"]["nodeName"] = json!("n1");
    steps.push(Step::post(&pods[..], bound));
    for wrong in [json!({"uid": "x"}), json!({"resourceVersion": "1"})] {
        let eviction = json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "b"},
            "deleteOptions": options(wrong)});
        steps.push(Step::post(format!("{pods}/b/eviction"), eviction));
    }
    steps.push(Step::get(format!("{pods}/b")));
    steps
}
