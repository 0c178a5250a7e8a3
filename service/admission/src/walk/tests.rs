//! Tests of the walk: the images of every kind of object, and properties for any JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Error, List, Outline, Pullers, walk};

fn outline(object: &str) -> Result<Outline, Error> {
    walk(object, &mut |_| Ok(()))
}

fn sites(object: &Value) -> Vec<(String, String)> {
    let mut sites = Vec::new();
    let visit = &mut |seen: super::FoundImage<'_>| {
        sites.push((seen.pointer.to_owned(), seen.image.to_owned()));
        Ok(())
    };
    walk(&object.to_string(), visit).unwrap();
    sites
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
    let object = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"im\u0061ge":"a\u003a1"}]}}"#;
    let mut images = Vec::new();
    let visit = &mut |seen: super::FoundImage<'_>| {
        images.push(seen.image.to_owned());
        Ok(())
    };
    assert!(walk(object, visit).unwrap().deleting);
    assert_eq!(images, ["a:1"]);
    assert!(!outline(r#"{"metadata":{"deletionTimestamp":null}}"#).unwrap().deleting);
    assert_eq!(outline("null").unwrap(), Outline::default());
    assert!(outline("{} trailing").is_err() && outline("{").is_err());
}

#[test]
fn each_image_comes_with_its_list_and_name_whatever_the_order_of_the_keys() {
    let object = json!({"spec": {"template": {"spec": pod_spec()}}});
    let mut seen_all = Vec::new();
    let visit = &mut |seen: super::FoundImage<'_>| {
        assert_eq!(seen.spec, "/spec/template/spec");
        seen_all.push((seen.list, seen.name.map(str::to_owned), seen.image.to_owned()));
        Ok(())
    };
    walk(&object.to_string(), visit).unwrap();
    walk(r#"{"spec":{"template":{"spec":{"containers":[{"image":"z:1","name":"z"}]}}}}"#, visit).unwrap();
    let named = |list, name: &str, image: &str| (list, Some(name.to_owned()), image.to_owned());
    for expected in [
        named(List::Containers, "a", "a:1"),
        named(List::Containers, "b", "b:1"),
        (List::InitContainers, None, "i:1".to_owned()),
        (List::EphemeralContainers, None, "e:1".to_owned()),
        named(List::Volumes, "v", "v:1"),
        named(List::Containers, "z", "z:1"),
    ] {
        assert!(seen_all.contains(&expected), "{expected:?} is not in {seen_all:?}");
    }
}

#[test]
fn whose_credentials_are_used_is_seen() {
    let names = |count: usize| (0..count).map(|n| json!({"name": format!("s{n}")})).collect::<Vec<_>>();
    let spec = json!({
        "serviceAccountName": "robot", "containers": [{"image": "a", "name": "c"}],
        "imagePullSecrets": [{"name": "one"}, {}, {"name": ""}, {"name": "two"}, {"name": "one"}, 7],
    });
    for object in [json!({"spec": spec}), json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}})] {
        let pullers = outline(&object.to_string()).unwrap().pullers;
        assert_eq!((pullers.accounts, pullers.secrets), (vec!["robot".to_owned()], vec!["one".into(), "two".into()]));
    }
    let many = json!({"spec": {"imagePullSecrets": names(99), "serviceAccountName": "x".repeat(9000)}});
    let pullers = outline(&many.to_string()).unwrap().pullers;
    assert_eq!((pullers.secrets.len(), pullers.accounts[0].len()), (Pullers::MAX, 256));
    // An account has pull secrets as well, but it is no pod.
    assert_eq!(outline(&json!({"imagePullSecrets": names(1)}).to_string()).unwrap(), Outline::default());
}

#[test]
fn a_key_that_leads_to_an_image_twice_is_an_error() {
    for (object, at) in [
        (
            r#"{"spec":{"containers":[{"image":"a@x","image":"evil"}]}}"#,
            "`image` is there twice at `/spec/containers/0/`",
        ),
        (r#"{"spec":{"containers":[{"name":"a","name":"b","image":"x"}]}}"#, "`name` is there twice"),
        (r#"{"spec":{"containers":[]},"spec":{"containers":[{"image":"x"}]}}"#, "`spec` is there twice at `/`"),
        (r#"{"spec":{"containers":[],"c\u006fntainers":[{"image":"x"}]}}"#, "`containers` is there twice at `/spec/`"),
        (
            r#"{"spec":{"volumes":[{"image":{"reference":"a"},"image":{}}]}}"#,
            "`image` is there twice at `/spec/volumes/0/`",
        ),
        (r#"{"metadata":{},"metadata":{"deletionTimestamp":"x"}}"#, "`metadata` is there twice"),
    ] {
        let error = outline(object).unwrap_err().to_string();
        assert!(error.contains(at), "{object}: {error}");
    }
    assert!(outline(r#"{"data":{"a":1,"a":2},"spec":{"nodeSelector":{"image":"a","image":"b"}}}"#).is_ok());
}

#[test]
fn depth_costs_no_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"spec\":", "}]")] {
        let nested = format!("{}0{}", open.repeat(200_000), close.repeat(200_000));
        for object in [
            nested.clone(),
            format!(r#"{{"spec":{{"containers":[{{"image":{nested}}}]}}}}"#),
            format!(r#"{{"spec":{{"containers":{nested},"volumes":{nested}}}}}"#),
            format!(r#"{{"status":{nested}}}"#),
        ] {
            // Either answer is acceptable.
            let _ = outline(&object);
        }
    }
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
    /// For any JSON object, the walk ends without error, and each pointer leads to the reported image.
    #[test]
    fn pointers_are_true(object in json_value()) {
        for (pointer, image) in sites(&object) {
            prop_assert_eq!(object.pointer(&pointer).and_then(Value::as_str), Some(image.as_str()));
        }
    }
}
