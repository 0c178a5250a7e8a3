//! Tests of the walk: every kind, and properties over arbitrary JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Found, walk};

fn sites(object: &Value) -> Vec<(String, String)> {
    let found = walk(&object.to_string()).unwrap();
    found.sites.into_iter().map(|site| (site.pointer, site.image)).collect()
}

fn pod_spec() -> Value {
    json!({
        "containers": [{"name": "a", "image": "a:1"}, {"name": "no image"}, {"name": "b", "image": "b:1"}],
        "initContainers": [{"image": "i:1"}],
        "ephemeralContainers": [{"image": "e:1"}],
        "volumes": [{"name": "x", "emptyDir": {}}, {"name": "v", "image": {"reference": "v:1", "pullPolicy": "Always"}}],
        "nodeSelector": {"image": "not an image"},
    })
}

#[test]
fn every_listed_kind_at_its_path() {
    let template = || json!({"metadata": {}, "spec": pod_spec()});
    for (kind, object, prefix) in [
        ("Pod", json!({"spec": pod_spec()}), "/spec"),
        ("PodTemplate", json!({"template": template()}), "/template/spec"),
        (
            "Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, ContainerSource",
            json!({"spec": {"template": template()}}),
            "/spec/template/spec",
        ),
        (
            "CronJob",
            json!({"spec": {"jobTemplate": {"spec": {"template": template()}}}}),
            "/spec/jobTemplate/spec/template/spec",
        ),
    ] {
        let mut found = sites(&object);
        found.sort();
        let expected: Vec<_> = [
            ("/containers/0/image", "a:1"),
            ("/containers/2/image", "b:1"),
            ("/ephemeralContainers/0/image", "e:1"),
            ("/initContainers/0/image", "i:1"),
            ("/volumes/1/image/reference", "v:1"),
        ]
        .map(|(path, image)| (format!("{prefix}{path}"), image.to_owned()))
        .into();
        assert_eq!(found, expected, "{kind}");
    }
}

#[test]
fn what_looks_alike_elsewhere_is_left_alone() {
    let object = json!({
        "spec": {"image": "x", "template": {"containers": [{"image": "x"}]}, "containers": {"image": "x"}},
        "status": {"containers": [{"image": "x"}]},
        "data": {"spec": {"containers": [{"image": "x"}]}},
        "containers": [{"image": "x"}],
    });
    assert_eq!(sites(&object), []);
    assert_eq!(sites(&json!({"spec": {"containers": [{"image": ""}, {"image": null}, {"image": 7}, "text"]}})), []);
}

#[test]
fn deletion_is_seen_and_escaped_text_is_read() {
    let found = walk(
        r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"image":"a\u003a1"}]}}"#,
    );
    let found = found.unwrap();
    assert!(found.deleting);
    assert_eq!(found.sites[0].image, "a:1");
    assert!(!walk(r#"{"metadata":{"deletionTimestamp":null}}"#).unwrap().deleting);
    assert_eq!(walk("null").unwrap(), Found::default());
    assert!(walk("{} trailing").is_err() && walk("{").is_err());
}

#[test]
fn too_many_images_are_an_error_not_a_cut() {
    let containers: Vec<_> = (0..501).map(|n| json!({"image": format!("a:{n}")})).collect();
    let error = walk(&json!({"spec": {"containers": containers}}).to_string()).unwrap_err();
    assert!(error.to_string().contains("more than 500 images"), "{error}");
}

fn json_value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "spec",
        "template",
        "jobTemplate",
        "containers",
        "initContainers",
        "volumes",
        "image",
        "reference",
        "metadata",
        "other",
    ]);
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-z]{0,3}".prop_map(Value::from)];
    leaf.prop_recursive(7, 60, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    /// On any JSON the walk ends without error, and each pointer it names leads to the very string it reports.
    #[test]
    fn pointers_are_true(object in json_value()) {
        for (pointer, image) in sites(&object) {
            prop_assert_eq!(object.pointer(&pointer).and_then(Value::as_str), Some(image.as_str()));
        }
    }
}
