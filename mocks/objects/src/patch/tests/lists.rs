//! Tests of server-side apply for built-in types: merging lists and selectors, and removing fields that no manager
//! applies any more.

use serde_json::{Value, json};

use super::{Manager, by, server_side, track};
use crate::catalogue::Catalogue;

/// The object after each manager in `intents` has applied its object, one after the other.
fn applied(full_name: &str, intents: &[(&str, Value)]) -> Value {
    let catalogue = Catalogue::builtin();
    let resource = catalogue.by_full_name(full_name).unwrap();
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}});
    for (manager, intent) in intents {
        server_side(&mut value, intent, &by(manager), resource).unwrap();
    }
    value
}

#[test]
fn items_of_two_managers_stand_beside_each_other() {
    let owner = |uid: &str| json!({"metadata": {"ownerReferences": [{"uid": uid, "name": uid}]}});
    let owned = applied("pods", &[("one", owner("x")), ("two", owner("y"))]);
    assert_eq!(owned["metadata"]["ownerReferences"], json!([{"uid": "x", "name": "x"}, {"uid": "y", "name": "y"}]));
    let tainted = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
    let node = applied("nodes", &[("one", tainted("x")), ("two", tainted("y"))]);
    let keys: Vec<&Value> = node["spec"]["taints"].as_array().unwrap().iter().map(|taint| &taint["key"]).collect();
    assert_eq!(keys, ["y"], "taints are one value");
}

/// `kubectl apply --server-side` may change fields that `kubectl apply` set and that no client changed since. Fields
/// that another manager changed later are conflicts. Managers other than `kubectl` may change none of the fields that
/// `kubectl apply` set.
#[test]
fn the_note_of_a_client_side_apply_settles_conflicts() {
    let catalogue = Catalogue::builtin();
    let resource = catalogue.by_full_name("configmaps").unwrap();
    let noted =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "1"}});
    let note = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1", "y": "1"},
                          "metadata": {"name": "a", "uid": "u", "annotations": {note: noted.to_string()}}});
    let before = Manager { force: false, ..by("kubectl-client-side-apply") };
    track(&mut live, None, &before, resource);
    let wanted = |x: &str, y: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": x, "y": y}});
    let other = server_side(&mut live.clone(), &wanted("2", "2"), &Manager { force: false, ..by("tool") }, resource);
    assert_eq!(other.unwrap_err().code.as_u16(), 409);

    let kubectl = Manager { force: false, ..by("kubectl") };
    let mut moved = live.clone();
    server_side(&mut moved, &wanted("2", "2"), &kubectl, resource).unwrap();
    assert_eq!(moved["data"], json!({"x": "2", "y": "2"}));
    let note_now = moved["metadata"]["annotations"][note].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(note_now).unwrap(), wanted("2", "2"));

    live["data"]["y"] = json!("of somebody else");
    let refused = server_side(&mut live, &wanted("2", "2"), &kubectl, resource).unwrap_err();
    assert!(refused.message.contains("with 1 conflict") && refused.message.ends_with(".data.y"), "{}", refused.message);
}

#[test]
fn a_selector_is_replaced_as_a_whole() {
    let selecting = |key: &str| json!({"spec": {"selector": {"matchLabels": {key: "v"}}}});
    let value = applied("deployments.apps", &[("one", selecting("a")), ("two", selecting("b"))]);
    assert_eq!(value["spec"]["selector"], json!({"matchLabels": {"b": "v"}}), "half of each would mean something else");
}

/// A manager that applies an empty object does not remove fields of other managers in it.
#[test]
fn an_empty_object_takes_nothing_away() {
    let labels = json!({"metadata": {"labels": {"a": "1"}}});
    let value = applied("pods", &[("one", labels.clone()), ("two", json!({"metadata": {"labels": {}}}))]);
    assert_eq!(value["metadata"]["labels"], labels["metadata"]["labels"]);
}

/// A manager that applied an empty object and now applies a field in it removes no fields of other managers.
#[test]
fn wanting_more_of_an_object_is_no_removal() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("pods").unwrap();
    let mut value = json!({"metadata": {"name": "a", "uid": "u", "labels": {"b": "2"}}});
    for labels in [json!({}), json!({"a": "1"})] {
        server_side(&mut value, &json!({"metadata": {"labels": labels}}), &by("one"), pods).unwrap();
    }
    assert_eq!(value["metadata"]["labels"], json!({"a": "1", "b": "2"}));
}

/// Ordinary writes make one entry for each manager and version of the API, with the time of the last write. An empty
/// selector in a new object gets no owner.
#[test]
fn entries_of_ordinary_writes() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("deployments.apps").unwrap();
    let mut value = json!({"metadata": {"name": "a"}, "spec": {"a": 1, "selector": {}}});
    track(&mut value, None, &by("one"), pods);
    let fields = |value: &Value, at: usize| value["metadata"]["managedFields"][at]["fieldsV1"]["f:spec"].clone();
    assert_eq!(fields(&value, 0), json!({"f:a": {}}));
    let later = Manager { now: "2026-01-02T03:04:05Z".parse().unwrap(), ..by("one") };
    let mut write = |key: &str, by: &Manager<'_>| {
        let old = value.clone();
        value["spec"][key] = json!(2);
        track(&mut value, Some(&old), by, pods);
        value["metadata"]["managedFields"].clone()
    };
    let entries = write("b", &later);
    assert_eq!((entries.as_array().unwrap().len(), &entries[0]["time"]), (1, &json!("2026-01-02T03:04:05Z")));
    let entries = write("c", &Manager { api_version: "v2", ..later });
    assert_eq!((&entries[0]["apiVersion"], &entries[1]["apiVersion"]), (&json!("v1"), &json!("v2")));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:c": {}}}));
}

/// If a client wrote a list with two items of the same key, server-side apply changes the first item.
#[test]
fn of_two_items_with_one_key_the_first_is_changed() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("pods").unwrap();
    let twice = json!([{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]);
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"containers": twice}});
    let intent = json!({"spec": {"containers": [{"name": "a", "image": "3"}]}});
    server_side(&mut value, &intent, &by("one"), pods).unwrap();
    assert_eq!(value["spec"]["containers"], json!([{"name": "a", "image": "3"}, {"name": "a", "image": "2"}]));
}

/// One apply can remove an item of a list and a field in another item of that list.
#[test]
fn what_goes_in_a_list_and_below_it_goes_at_once() {
    let port = |port: u16| json!({"containerPort": port, "protocol": "TCP"});
    let containers = |list: Value| json!({"spec": {"containers": list}});
    let before = containers(json!([{"name": "a"}, {"name": "b", "ports": [port(1), port(2)]}, {"name": "c"}]));
    let after = containers(json!([{"name": "b", "ports": [port(2)]}]));
    let value = applied("pods", &[("one", before), ("one", after.clone())]);
    assert_eq!(value["spec"], after["spec"]);
}

/// Applying the same object again writes nothing: the entry keeps its time, also if the manager owns whole items.
#[test]
fn the_same_again_leaves_the_time_of_the_entry() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("pods").unwrap();
    let intent = json!({"spec": {"containers": [{"name": "a", "image": "i"}]}});
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}});
    let later = Manager { now: "2026-01-02T03:04:05Z".parse().unwrap(), ..by("one") };
    server_side(&mut value, &intent, &by("one"), pods).unwrap();
    let once = value.clone();
    server_side(&mut value, &intent, &later, pods).unwrap();
    assert_eq!(value, once);
    let more = json!({"spec": {"containers": [{"name": "a", "image": "j"}]}});
    server_side(&mut value, &more, &later, pods).unwrap();
    assert_eq!(value["metadata"]["managedFields"][0]["time"], json!("2026-01-02T03:04:05Z"));
}
