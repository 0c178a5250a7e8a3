//! Tests of the patch formats, and generators of random JSON values.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Manager, Patch, server_side, track};
use crate::catalogue::Catalogue;

mod lists;

pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]|name|containers|spec|\\$patch", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

const MEDIA: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-c]|0|-|spec|name", 0..4)
        .prop_map(|parts| parts.iter().flat_map(|part| ["/", part]).collect())
}

fn operation() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (kinds, pointer(), pointer(), json())
        .prop_map(|(op, from, path, value)| json!({"op": op, "from": from, "path": path, "value": value}))
}

fn by(name: &str) -> Manager<'_> {
    Manager { name, force: true, api_version: "v1", subresource: "", now: jiff::Timestamp::UNIX_EPOCH }
}

proptest! {
    /// Decoding random bytes as a patch of any format ends with a patch or an error.
    #[test]
    fn decoding_never_panics(media in prop::sample::select(MEDIA.to_vec()), raw in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Patch::decode(media, &Bytes::from(raw), true);
    }

    /// Decoding text that resembles YAML or JSON ends with a patch or an error; such text reaches more code than random
    /// bytes.
    #[test]
    fn decoding_text_never_panics(media in prop::sample::select(MEDIA.to_vec()), raw in "[\\[\\]{}:,&*!|>\"'\\- \\na-c0-9]{0,64}") {
        let _ = Patch::decode(media, &Bytes::from(raw), true);
    }

    /// A JSON patch that fails leaves the object unchanged.
    #[test]
    fn a_json_patch_is_all_or_nothing(before in json(), operations in prop::collection::vec(operation(), 0..8)) {
        let catalogue = Catalogue::builtin();
        let pods = catalogue.by_full_name("pods").unwrap();
        let bytes = Bytes::from(serde_json::to_vec(&operations).unwrap());
        if let Ok((patch, _)) = Patch::decode(MEDIA[0], &bytes, true) {
            let mut after = before.clone();
            if patch.apply(&mut after, pods).is_err() {
                prop_assert_eq!(after, before);
            }
        }
    }

    /// Applied fields are present, and applying them again changes nothing, even if other clients write in between.
    #[test]
    fn applying_twice_is_applying_once(live in object(), other in object(), intent in object()) {
        let catalogue = Catalogue::builtin();
        let pods = catalogue.by_full_name("pods").unwrap();
        let mut value = live;
        track(&mut value, None, &by("creator"), pods);
        let old = value.clone();
        let fields = value["metadata"].take();
        value = other;
        value["metadata"] = fields;
        track(&mut value, Some(&old), &by("updater"), pods);
        if server_side(&mut value, &intent, &by("applier"), pods).is_ok() {
            let once = value.clone();
            prop_assert!(server_side(&mut value, &intent, &by("applier"), pods).is_ok());
            prop_assert_eq!(&value, &once);
        }
    }

    /// Tracking owners gives the same result for the same two objects, and changes only `managedFields`.
    #[test]
    fn tracking_touches_nothing_else(old in object(), new in object()) {
        let catalogue = Catalogue::builtin();
        let pods = catalogue.by_full_name("pods").unwrap();
        let mut before = old;
        track(&mut before, None, &by("creator"), pods);
        let mut after = new.clone();
        track(&mut after, Some(&before), &by("updater"), pods);
        let strip = |value: &Value| {
            let mut value = value.clone();
            crate::object::metadata(&mut value).remove("managedFields");
            value
        };
        prop_assert_eq!(strip(&after), strip(&new));
        let mut unchanged = after.clone();
        track(&mut unchanged, Some(&after), &by("third"), pods);
        prop_assert_eq!(unchanged, after);
    }
}

/// Long lists are applied and tracked in time proportional to their length. With a linear search for each item, this
/// test would take more than half a minute.
#[test]
fn a_long_list_is_applied_and_tracked_item_by_item() {
    const ITEMS: u64 = 3000;
    let catalogue = Catalogue::builtin();
    let services = catalogue.by_full_name("services").unwrap();
    let ports = |range: &mut dyn Iterator<Item = u64>, name: &str| {
        Value::from(range.map(|port| json!({"port": port, "name": format!("{name}-{port}")})).collect::<Vec<_>>())
    };
    let intent = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"ports": ports(&mut (0..ITEMS), "old")}});
    track(&mut value, None, &by("creator"), services);
    // In reverse order, so that no item is at the index where a search would begin.
    server_side(&mut value, &intent(ports(&mut (0..ITEMS).rev(), "new")), &by("applier"), services).unwrap();
    assert_eq!(value["spec"]["ports"], ports(&mut (0..ITEMS), "new"), "each in its old place");
    let before = value.clone();
    let even = |port: &u64| port.is_multiple_of(2);
    server_side(&mut value, &intent(ports(&mut (0..ITEMS).filter(even), "new")), &by("applier"), services).unwrap();
    let left = (0..ITEMS).map(|port| {
        if even(&port) { json!({"port": port, "name": format!("new-{port}")}) } else { json!({"port": port}) }
    });
    assert_eq!(value["spec"]["ports"], Value::from(left.collect::<Vec<_>>()), "the creator owns the keys");
    value = before.clone();
    value["spec"]["ports"] = ports(&mut (5..ITEMS).rev(), "new");
    track(&mut value, Some(&before), &by("editor"), services);
    let managers = value["metadata"]["managedFields"].as_array().unwrap();
    let of = |name: &str| {
        managers.iter().find(|entry| entry["manager"] == name).map(|entry| &entry["fieldsV1"]["f:spec"]["f:ports"])
    };
    assert!(
        of("creator").is_some_and(|ports| ports.get("k:{\"port\":5,\"protocol\":\"TCP\"}").is_some()),
        "the others were not touched"
    );
    assert!(
        of("creator").is_some_and(|ports| ports.get("k:{\"port\":4,\"protocol\":\"TCP\"}").is_none()),
        "it is gone"
    );
}

/// Many items of a long list that a manager no longer applies are removed in one pass. Removing the items one by one
/// took seconds.
#[test]
fn a_long_list_is_taken_away_at_once() {
    const ITEMS: u64 = 10_000;
    let catalogue = Catalogue::builtin();
    let services = catalogue.by_full_name("services").unwrap();
    let intent = |range: &mut dyn Iterator<Item = u64>| {
        let ports: Vec<Value> = range.map(|port| json!({"port": port, "name": format!("n{port}")})).collect();
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports, "type": "ClusterIP"}})
    };
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}});
    server_side(&mut value, &intent(&mut (0..ITEMS)), &by("one"), services).unwrap();
    server_side(&mut value, &intent(&mut [5, 9_000].into_iter()), &by("two"), services).unwrap();
    let mut looked_at = value.clone();
    server_side(&mut looked_at, &intent(&mut (7..9)), &by("one"), services).unwrap();
    let names = |value: &Value| -> Vec<Value> {
        value["spec"]["ports"].as_array().unwrap().iter().map(|port| port["name"].clone()).collect()
    };
    assert_eq!(names(&looked_at), ["n5", "n7", "n8", "n9000"], "in their old order, with what the other one wants");
    let none = json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}});
    server_side(&mut looked_at, &none, &by("one"), services).unwrap();
    server_side(&mut looked_at, &none, &by("two"), services).unwrap();
    assert_eq!(looked_at["spec"], json!({"type": "ClusterIP"}), "an empty list goes as well");
}

/// A list item whose key is an object is rejected. Fuzzing found that fields inside such a key got owners, and that
/// each apply moved the item.
#[test]
fn an_item_is_known_by_a_plain_value_only() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("pods").unwrap();
    let before = json!({"metadata": {"name": "a", "uid": "u"}});
    for ports in [
        json!([{"containerPort": {"containerPort": "0"}}, {"containerPort": 1}]),
        json!([1]),
        json!([{"name": "a"}, {"name": "b"}]),
        json!([{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]),
    ] {
        let mut value = before.clone();
        let intent = json!({"spec": {"containers": [{"name": "c", "ports": ports}]}});
        let refused = server_side(&mut value, &intent, &by("one"), pods);
        assert_eq!(refused.unwrap_err().code, 500, "{ports}");
        let spec = value.get("spec");
        assert_eq!(spec, None, "nothing was changed");
    }
}

#[test]
fn an_item_stays_for_who_owns_its_key() {
    let catalogue = Catalogue::builtin();
    let pods = catalogue.by_full_name("pods").unwrap();
    let mut value = json!({"metadata": {"name": "a", "uid": "u"}});
    let with = |containers: Value| json!({"spec": {"containers": containers}});
    server_side(&mut value, &with(json!([{"name": "a"}])), &by("one"), pods).unwrap();
    server_side(&mut value, &with(json!([{"name": "a", "image": "i"}])), &by("two"), pods).unwrap();
    server_side(&mut value, &with(json!([{"name": "b", "image": "i"}])), &by("two"), pods).unwrap();
    assert_eq!(value["spec"]["containers"], json!([{"name": "a"}, {"name": "b", "image": "i"}]));
    server_side(&mut value, &with(json!([{"name": "b"}])), &by("one"), pods).unwrap();
    assert_eq!(value["spec"]["containers"], json!([{"name": "b", "image": "i"}]), "now nobody wants it");
}

/// A random small object with a `spec`.
fn object() -> impl Strategy<Value = Value> {
    (json(), json()).prop_map(|(spec, labels)| {
        json!({"metadata": {"name": "a", "uid": "u", "labels": labels}, "spec": {"containers": spec, "b": {"c": 1}}})
    })
}
