//! Sequences of requests with definitions of custom resources, and with objects of newly defined kinds.

use serde_json::{Value, json};

use crate::generator::special;
use crate::sequence::{Sequence, Step};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "{ns}.example.com";

pub fn all() -> Vec<Sequence> {
    let one = |name: &str, steps: Vec<Step>| Sequence { name: name.to_owned(), steps };
    vec![
        one("a definition and its objects", life()),
        one("definitions that are wrong", wrong()),
        one("two versions", versions()),
        one("a definition that changes under its watches", replaced()),
        one("lists of custom resources in server-side apply", applied()),
        one("applied custom resources that are not of their type", mistyped()),
        one("a field that is an integer or a text", loose()),
        one("a status with a default", status_default()),
    ]
}

fn path() -> String {
    format!("/apis/{GROUP}/v1/namespaces/{{ns}}/widgets")
}

#[expect(clippy::needless_pass_by_value, reason = "callers build the value in place")]
fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn life() -> Vec<Step> {
    let path = path();
    vec![
        Step::get(&path[..]),
        Step::post(format!("{DEFINITIONS}?dryRun=All"), special::definition(GROUP)),
        Step::post(DEFINITIONS, special::definition(GROUP)),
        Step::post(DEFINITIONS, special::definition(GROUP)),
        Step::new("UNTIL 200", &path[..]),
        Step::post(&path[..], widget("a", json!({"image": "a:1", "odd": 1, "entries": [{"name": "x", "odd": 1}]}))),
        Step::post(&path[..], widget("b", json!({}))),
        Step::post(&path[..], widget("b", json!({"image": "a:1", "replicas": 50, "mode": "none"}))),
        Step::post(&path[..], json!({"metadata": {"name": "bare"}, "spec": {"image": "a"}})),
        Step::get(format!("{path}/a")).accepting("application/json;as=Table;g=meta.k8s.io;v=v1"),
        Step::patch(format!("{path}/a"), "merge-patch", json!({"status": {"phase": "Lost"}, "spec": {"replicas": 2}})),
        Step::patch(
            format!("{path}/a/status"),
            "merge-patch",
            json!({"status": {"phase": "Kept", "odd": 1}, "spec": {"replicas": 3}}),
        ),
        Step::patch(format!("{path}/a/status"), "merge-patch", json!({"status": {"phase": 5}})),
        Step::patch(format!("{path}/a"), "strategic-merge-patch", json!({"spec": {"replicas": 4}})),
        Step::get(format!("{path}/a/scale")),
        Step::patch(format!("{path}/a/scale"), "merge-patch", json!({"spec": {"replicas": 6}})),
        Step::patch(format!("{path}/a/scale"), "merge-patch", json!({"spec": {"replicas": 60}})),
        Step::get(format!("{path}/a")),
        Step::get(format!("{path}?fieldSelector=spec.image%3Da:1")),
        Step::get(format!("{path}?fieldSelector=metadata.name%3Da")),
        Step::get(format!("/apis/{GROUP}/v1")),
        Step::delete(format!("{path}/a")),
        Step::delete(&path[..]),
    ]
}

fn wrong() -> Vec<Step> {
    let with = |change: fn(&mut Value)| {
        let mut definition = special::definition(GROUP);
        change(&mut definition);
        Step::post(DEFINITIONS, definition)
    };
    vec![
        with(|d| d["metadata"]["name"] = json!("other.example.com")),
        with(|d| d["spec"]["scope"] = json!("Galaxy")),
        with(|d| d["spec"]["versions"][0]["storage"] = json!(false)),
        with(|d| d["spec"]["versions"] = json!([])),
        with(|d| d["spec"]["versions"][0]["schema"] = Value::Null),
        with(|d| d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = json!("array")),
        with(|d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["odd"] =
                json!({});
        }),
        with(|d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["odd"] =
                json!({"type": "strange"});
        }),
        with(|d| d["spec"]["names"]["plural"] = json!("Widgets")),
        with(|d| d["spec"]["names"]["kind"] = json!("")),
        with(|d| d["spec"]["group"] = json!("nodots")),
    ]
}

fn versions() -> Vec<Step> {
    let mut definition = special::definition(GROUP);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2beta1");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().expect("it is a list").push(second);
    let path = path();
    let other = path.replace("/v1/", "/v2beta1/");
    let mut newer = widget("b", json!({"image": "b:1"}));
    newer["apiVersion"] = json!(format!("{GROUP}/v2beta1"));
    vec![
        Step::post(DEFINITIONS, definition),
        Step::new("UNTIL 200", &path[..]),
        Step::new("UNTIL 200", &other[..]),
        Step::post(&path[..], widget("a", json!({"image": "a:1"}))),
        Step::post(&other[..], newer),
        Step::get(format!("{other}/a")),
        Step::get(&path[..]),
        Step::patch(format!("{other}/a"), "merge-patch", json!({"spec": {"replicas": 2}})),
        Step::put(format!("{path}/b"), widget("b", json!({"image": "b:2"}))),
        Step::get(format!("/apis/{GROUP}/v3/namespaces/{{ns}}/widgets")),
    ]
}

/// Watches of objects whose definition is replaced. Each of these watches ends by itself or with 410.
fn replaced() -> Vec<Step> {
    let path = path();
    let other = path.replace("/v1/", "/v2beta1/");
    let definition = format!("{DEFINITIONS}/widgets.{GROUP}");
    let mut second = special::definition(GROUP)["spec"]["versions"][0].clone();
    second["name"] = json!("v2beta1");
    second["storage"] = json!(false);
    let add = json!([{"op": "add", "path": "/spec/versions/-", "value": second}]);
    let watch = |path: &str, from: &str| {
        Step::new("WATCH", format!("{path}?watch=true&resourceVersion={{{from}}}&timeoutSeconds=300"))
    };
    vec![
        Step::post(DEFINITIONS, special::definition(GROUP)),
        Step::new("UNTIL 200", &path[..]),
        Step::post(&path[..], widget("a", json!({"image": "a:1"}))),
        Step::get(&path[..]),
        watch(&path, "list"),
        Step::patch(&definition[..], "merge-patch", json!({"metadata": {"labels": {"k": "v"}}})),
        Step::post(&path[..], widget("b", json!({"image": "a:1"}))),
        Step::patch(&definition[..], "json-patch", add),
        Step::new("UNTIL 200", &other[..]),
        watch(&path, "old:Widget/a"),
        watch(&other, "old:Widget/a"),
        Step::get(&other[..]),
        Step::patch(&definition[..], "merge-patch", json!({"spec": {"names": {"categories": ["all"]}}})),
    ]
}

fn applied() -> Vec<Step> {
    let path = crate::generator::Kind::Widget.path();
    let widget = |spec: Value| json!({"apiVersion": "differential.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    let by = |manager: &str, spec: Value| Step::apply(format!("{path}/a?fieldManager={manager}"), widget(spec));
    vec![
        by("one", json!({"image": "a:1", "set": ["x"], "entries": [{"name": "one", "port": 1}], "plain": ["p"]})),
        by("two", json!({"set": ["y"], "entries": [{"name": "two", "note": "n"}]})),
        by("two", json!({"plain": ["q"]})),
        by("two", json!({"entries": [{"name": "one", "port": 2}]})),
        by("two", json!({"entries": [{"name": "one", "note": "mine"}], "set": ["x", "z"]})),
        by("one", json!({"image": "a:1", "entries": [{"name": "one", "port": 1}]})),
        by("two", json!({"set": ["z"]})),
        by("one", json!({"image": "a:1"})),
        by("one", json!({"image": "a:1", "free": {"deep": {"a": 1}}, "labels": {"k": "v"}})),
        by("two", json!({"free": {"deep": {"b": 2}}, "labels": {"l": "w"}})),
        by("one", json!({"image": "a:1", "ports": [{"port": 1, "note": "n"}], "one": {"a": "1"}})),
        by("two", json!({"ports": [{"port": 1, "protocol": "UDP"}, {"port": 2}]})),
        by("two", json!({"one": {"b": "2"}})),
        by("two", json!({"ports": [{"port": 1, "note": "m"}]})),
        by("two", json!({"ports": [{"port": 2, "note": "m"}]})),
        by("one", json!({"image": "a:1"})),
        Step::get(format!("{path}/a")),
    ]
}

fn mistyped() -> Vec<Step> {
    let path = crate::generator::Kind::Widget.path();
    let by = |manager: &str, widget: Value| Step::apply(format!("{path}/a?fieldManager={manager}"), widget);
    let widget = |spec: Value| json!({"apiVersion": "differential.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    let mut odd = widget(json!({"image": "a:1"}));
    odd["odd"] = json!(1);
    let mut odd_metadata = widget(json!({"image": "a:1"}));
    odd_metadata["metadata"]["odd"] = json!(1);
    let mut nameless = widget(json!({"image": "a:1"}));
    nameless["metadata"] = json!({});
    vec![
        by("one", nameless.clone()),
        by("one", odd.clone()),
        by("one", widget(json!({"image": "a:1", "odd": 1}))),
        by("one", widget(json!({"image": "a:1", "labels": {"a": "b"}, "free": {"odd": {"odd": 1}}}))),
        by("one", nameless),
        by("two", odd_metadata),
        by("two", odd),
        by("two", widget(json!({"image": 5}))),
        by("two", widget(json!({"replicas": "five"}))),
        by("two", widget(json!({"labels": ["a"]}))),
        by("two", widget(json!({"labels": {"a": 1}}))),
        by("two", widget(json!({"plain": "a"}))),
        by("two", widget(json!({"plain": [1]}))),
        by("two", widget(json!({"set": ["x", "x"]}))),
        by("two", widget(json!({"entries": [{"name": "x"}, {"name": "x"}]}))),
        by("two", widget(json!({"entries": [{"port": 1}]}))),
        by("two", widget(json!({"entries": [{"name": "x", "odd": 1}]}))),
        by("two", widget(json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}))),
        by("two", widget(json!({"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]}))),
        by("two", widget(json!({"maybe": null, "ratio": 1}))),
        Step::get(format!("{path}/a")),
    ]
}

fn loose() -> Vec<Step> {
    let mut definition = special::definition(GROUP);
    definition["metadata"]["name"] = json!(format!("loose.{GROUP}"));
    definition["spec"]["names"] =
        json!({"plural": "loose", "singular": "loose", "kind": "Loose", "listKind": "LooseList"});
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let properties = definition.pointer_mut(properties).expect("the definition has properties");
    properties["limit"] = json!({"x-kubernetes-int-or-string": true});
    let path = path().replace("widgets", "loose");
    let loose = |spec: Value| json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Loose", "metadata": {"name": "a"}, "spec": spec});
    let merged = |spec: Value| Step::patch(format!("{path}/a"), "merge-patch", json!({"spec": spec}));
    vec![
        Step::post(DEFINITIONS, definition),
        Step::new("UNTIL 200", &path[..]),
        Step::post(&path[..], loose(json!({"image": "a:1", "limit": "50%"}))),
        merged(json!({"limit": 5})),
        merged(json!({"limit": true})),
        merged(json!({"limit": 0.5})),
        Step::get(&path[..]),
        Step::delete(format!("{path}/a")),
        Step::apply(format!("{path}/a?fieldManager=one"), loose(json!({"image": "a:1", "limit": 1, "set": ["x"]}))),
        Step::apply(format!("{path}/a?fieldManager=two"), loose(json!({"set": ["y"]}))),
    ]
}

/// The status that a client sends with a new object is dropped; the default of the definition comes instead.
fn status_default() -> Vec<Step> {
    let mut definition = special::definition(GROUP);
    definition["metadata"]["name"] = json!(format!("states.{GROUP}"));
    definition["spec"]["names"] =
        json!({"plural": "states", "singular": "state", "kind": "State", "listKind": "StateList"});
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["default"] = json!({"phase": "Ready"});
    let path = path().replace("widgets", "states");
    let mut state = widget("a", json!({"image": "a:1"}));
    state["kind"] = json!("State");
    let named = |name: &str| {
        let mut state = state.clone();
        state["metadata"]["name"] = json!(name);
        state
    };
    let mut with_status = named("b");
    with_status["status"] = json!({"phase": "Sent"});
    vec![
        Step::post(DEFINITIONS, definition),
        Step::new("UNTIL 200", &path[..]),
        Step::post(format!("{path}?dryRun=All"), named("a")),
        Step::post(&path[..], named("a")),
        Step::post(&path[..], with_status.clone()),
        Step::get(&path[..]),
        Step::put(format!("{path}/b"), with_status.clone()),
        Step::put(format!("{path}/b/status"), with_status),
        Step::apply(format!("{path}/c?fieldManager=one"), named("c")),
        Step::patch(format!("{path}/b/status"), "merge-patch", json!({"status": null})),
        Step::get(&path[..]),
        Step::patch(format!("{path}/a/status"), "merge-patch", json!({"status": null})),
    ]
}
