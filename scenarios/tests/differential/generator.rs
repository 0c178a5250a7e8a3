//! Generates random sequences of requests, as proptest strategies.
//!
//! This module decides which requests a sequence can contain and in which order. Most requests of a sequence are about
//! one kind and a few names, so that they affect each other. No request depends on controllers (garbage collection,
//! emptying namespaces), because the real server runs without controllers in these tests.

mod objects;
pub mod special;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sequence::{Sequence, Step};

pub use objects::Kind;

const NAMES: [&str; 3] = ["a", "b", "c"];
const STEPS_MAX: usize = 9;

pub fn sequence() -> impl Strategy<Value = Sequence> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    kind.prop_flat_map(|kind| {
        let first = (0..3_u8, 0..60_u8).prop_map(move |(name, variant)| create(kind, name, variant));
        let steps = match kind {
            // The two APIs of one store.
            Kind::Event | Kind::NewerEvent => prop_oneof![step(Kind::Event), step(Kind::NewerEvent)].boxed(),
            _ => step(kind),
        };
        (first, prop::collection::vec(steps, 1..STEPS_MAX)).prop_map(move |(first, rest)| {
            let steps = std::iter::once(first).chain(rest).collect();
            Sequence { name: kind.plural().to_owned(), steps }
        })
    })
}

fn step(kind: Kind) -> BoxedStrategy<Step> {
    let args = (0..3_u8, any::<u8>());
    prop_oneof![
        6 => args.clone().prop_map(move |(name, variant)| create(kind, name, variant)),
        2 => args.clone().prop_map(move |(name, variant)| create_otherwise(kind, name, variant)),
        3 => args.clone().prop_map(move |(name, flaw)| Step::post(kind.path(), kind.broken(NAMES[usize::from(name)], flaw))),
        6 => args.clone().prop_map(move |(name, variant)| update(kind, name, variant)),
        6 => args.clone().prop_map(move |(name, variant)| patch(kind, name, variant)),
        2 => args.clone().prop_map(move |(name, variant)| apply(kind, name, variant)),
        2 => args.clone().prop_map(move |(name, variant)| status(kind, name, variant)),
        1 => args.clone().prop_map(move |(name, variant)| scale(kind, name, variant)),
        4 => args.clone().prop_map(move |(name, variant)| delete(kind, name, variant)),
        1 => args.clone().prop_map(move |(_, variant)| delete_collection(kind, variant)),
        3 => args.clone().prop_map(move |(name, variant)| read(kind, name, variant)),
        6 => args.clone().prop_map(move |(_, variant)| list(kind, variant)),
        3 => args.clone().prop_map(move |(name, variant)| watch(kind, name, variant)),
        2 => args.prop_map(move |(name, variant)| protocol(kind, name, variant)),
    ]
    .boxed()
}

fn named(kind: Kind, name: u8) -> (&'static str, String, String) {
    let name = NAMES[usize::from(name)];
    (name, format!("{}/{name}", kind.path()), format!("{}/{name}", kind.name()))
}

fn create(kind: Kind, name: u8, variant: u8) -> Step {
    Step::post(kind.path(), kind.object(NAMES[usize::from(name)], variant))
}

fn create_otherwise(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, _, _) = named(kind, name);
    let mut object = kind.object(name, variant);
    let path = kind.path();
    match variant % 8 {
        0 => {
            object["metadata"] = json!({"generateName": "made-", "labels": {"tier": "front"}});
            Step::post(path, object)
        }
        1 => Step::post(format!("{path}?dryRun=All"), object),
        2 => Step::post(kind.path_in("nowhere-at-all"), object),
        3 => {
            object["metadata"]["generateName"] = json!("unused-");
            Step::post(path, object)
        }
        4 => {
            object["metadata"]["uid"] = json!("3f2a4a52-0000-4000-8000-000000000000");
            object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
            object["metadata"]["generation"] = json!(7);
            object["status"] = json!({"phase": "Running"});
            Step::post(path, object)
        }
        5 => {
            object["metadata"]["generateName"] = json!("Bad_");
            object["metadata"]["name"] = Value::Null;
            Step::post(path, object)
        }
        6 => {
            object["metadata"]["namespace"] = json!("{ns}");
            object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
            Step::post(path, object)
        }
        _ => {
            // A client may leave out values that the path contains.
            for key in ["apiVersion", "kind"] {
                object.as_object_mut().map(|object| object.remove(key));
            }
            Step::post(path, object)
        }
    }
}

fn update(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, path, key) = named(kind, name);
    let mut object = kind.object(name, variant / 12);
    let meta = &mut object["metadata"];
    match variant % 12 {
        0..=2 => {}
        3 | 4 => meta["resourceVersion"] = json!(format!("{{rv:{key}}}")),
        5 => meta["resourceVersion"] = json!(format!("{{old:{key}}}")),
        6 => meta["resourceVersion"] = json!("not-a-number"),
        7 => meta["uid"] = json!("3f2a4a52-0000-4000-8000-000000000000"),
        8 => meta["uid"] = json!(format!("{{uid:{key}}}")),
        9 => meta["name"] = json!("other"),
        10 => return Step::put(format!("{path}?dryRun=All"), object),
        _ => return Step::put(path, kind.broken(name, variant / 12)),
    }
    Step::put(path, object)
}

fn patch(kind: Kind, name: u8, variant: u8) -> Step {
    let (_, path, key) = named(kind, name);
    let which = usize::from(variant / 3);
    match variant % 3 {
        0 => {
            let mut patches = vec![
                json!({"metadata": {"labels": {"tier": "back", "new": "1"}}}),
                json!({"metadata": {"labels": {"tier": null}}}),
                json!({"metadata": {"labels": null}}),
                json!({"metadata": {"annotations": {"note": "patched"}}}),
                json!({"metadata": {"finalizers": null}}),
                json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
                json!({"metadata": {"resourceVersion": format!("{{old:{key}}}"), "labels": {"old": "1"}}}),
                json!({"metadata": {"resourceVersion": format!("{{rv:{key}}}"), "labels": {"fresh": "1"}}}),
                json!({"metadata": {"name": "other"}}),
                json!({"metadata": {"uid": "3f2a4a52-0000-4000-8000-000000000000"}}),
                json!({"metadata": {"labels": {"k": "not a value!"}}}),
                json!({"metadata": {"labels": "text"}}),
                json!({}),
                json!({"kind": "Other"}),
                json!({"metadata": {"creationTimestamp": null, "uid": null}}),
                json!([1, 2]),
            ];
            patches.extend(merges(kind));
            Step::patch(path, "merge-patch", patches[which % patches.len()].clone())
        }
        1 => {
            let patches = [
                json!([{"op": "add", "path": "/metadata/labels/new", "value": "1"}]),
                json!([{"op": "replace", "path": "/metadata/labels/tier", "value": "back"}]),
                json!([{"op": "remove", "path": "/metadata/labels/app"}]),
                json!([{"op": "remove", "path": "/metadata/labels/absent"}]),
                json!([{"op": "test", "path": "/metadata/labels/tier", "value": "front"},
                       {"op": "replace", "path": "/metadata/labels/tier", "value": "back"}]),
                json!([{"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}]),
                json!([{"op": "add", "path": "/metadata/annotations/x", "value": "y"}]),
                json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
                json!([{"op": "remove", "path": "/metadata/finalizers"}]),
                json!([{"op": "add", "path": "/metadata/labels", "value": 5}]),
                json!([{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/copied"}]),
                json!([{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"}]),
                json!([{"op": "unknown", "path": "/metadata/labels/app"}]),
                json!([]),
                json!({"op": "add", "path": "/metadata/labels/new", "value": "1"}),
                json!([{"op": "test", "path": "/metadata/resourceVersion", "value": format!("{{rv:{key}}}")}]),
            ];
            Step::patch(path, "json-patch", patches[which % patches.len()].clone())
        }
        _ => {
            let mut patches = vec![
                json!({"metadata": {"labels": {"tier": "back"}}}),
                json!({"metadata": {"labels": {"$patch": "replace", "only": "1"}}}),
                json!({"metadata": {"finalizers": ["example.com/second"]}}),
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}),
                json!({"metadata": {"labels": null}}),
                json!({"metadata": {"resourceVersion": format!("{{old:{key}}}")}}),
                json!({"metadata": {"labels": {"$patch": "wrong"}}}),
                json!({"$patch": "delete"}),
            ];
            patches.extend(merges(kind));
            Step::patch(path, "strategic-merge-patch", patches[which % patches.len()].clone())
        }
    }
}

/// Patches of fields that only the kind `kind` has. Each of these patches is valid as a merge patch and as a strategic
/// merge patch.
fn merges(kind: Kind) -> Vec<Value> {
    match kind {
        Kind::ConfigMap => vec![
            json!({"data": {"a": null, "z": "9"}}),
            json!({"data": null}),
            json!({"data": {"a": 5}}),
            json!({"immutable": true}),
        ],
        Kind::Secret => vec![
            json!({"data": {"a": null, "z": "OQ=="}}),
            json!({"stringData": {"plain": "text"}}),
            json!({"type": "example.com/changed"}),
            json!({"immutable": true}),
        ],
        Kind::ServiceAccount => vec![
            json!({"secrets": [{"name": "t"}]}),
            json!({"imagePullSecrets": [{"name": "more"}]}),
            json!({"automountServiceAccountToken": null}),
        ],
        Kind::Pod => vec![
            json!({"spec": {"containers": [{"name": "main", "image": "changed:2"}]}}),
            json!({"spec": {"containers": [{"name": "second", "image": "x"}]}}),
            json!({"spec": {"activeDeadlineSeconds": 60}}),
            json!({"spec": {"nodeName": "node"}}),
            json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}),
        ],
        Kind::Deployment => vec![
            json!({"spec": {"replicas": 2}}),
            json!({"spec": {"replicas": null}}),
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "changed:2"}]}}}}),
            json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}),
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "b"}]}]}}}}),
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}}}}),
            json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}}),
            json!({"spec": {"paused": true}}),
            json!({"status": {"replicas": 5}}),
        ],
        Kind::NetworkPolicy => vec![
            json!({"spec": {"policyTypes": ["Egress"]}}),
            json!({"spec": {"podSelector": {"matchLabels": {"app": "b"}}}}),
            json!({"spec": {"ingress": null}}),
        ],
        Kind::Lease => vec![
            json!({"spec": {"holderIdentity": "three"}}),
            json!({"spec": {"leaseDurationSeconds": -5}}),
            json!({"spec": null}),
        ],
        Kind::Event => vec![
            json!({"count": 2, "lastTimestamp": "2024-02-03T05:05:07Z"}),
            json!({"message": "other"}),
            json!({"series": {"count": 4, "lastObservedTime": "2024-02-03T04:05:10.000001Z"}}),
            json!({"source": null, "type": null}),
        ],
        Kind::NewerEvent => vec![
            json!({"series": {"count": 4, "lastObservedTime": "2024-02-03T04:05:10.000001Z"}}),
            json!({"series": {"count": 1}}),
            json!({"note": "other"}),
            json!({"deprecatedCount": 5}),
        ],
        Kind::Widget => vec![
            json!({"spec": {"replicas": 2}}),
            json!({"spec": {"replicas": null, "mode": null}}),
            json!({"spec": {"replicas": 99}}),
            json!({"spec": {"unknown": 1, "free": {"deep": {"a": null, "b": 1}}}}),
            json!({"spec": {"set": ["y", "z"], "entries": [{"name": "three"}]}}),
            json!({"spec": {"image": null}}),
            json!({"spec": {"set": ["y", "y"]}}),
            json!({"status": {"phase": "Ready"}}),
        ],
    }
}

fn apply(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, path, _) = named(kind, name);
    let mut object = kind.object(name, variant / 8);
    let mut query = "?fieldManager=one";
    match variant % 8 {
        0 | 1 => {}
        2 => query = "?fieldManager=two",
        3 => query = "?fieldManager=two&force=true",
        4 => query = "",
        5 => object["metadata"]["name"] = json!("other"),
        6 => object["metadata"]["labels"] = json!({"only": "this"}),
        _ => object["metadata"]["managedFields"] = json!([]),
    }
    Step::apply(format!("{path}{query}"), object)
}

fn status(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, path, key) = named(kind, name);
    let path = format!("{path}/status");
    let status = match kind {
        Kind::Deployment => json!({"replicas": 1, "observedGeneration": 1}),
        Kind::Widget if variant.is_multiple_of(2) => json!({"replicas": 1, "phase": "Ready", "unknown": 1}),
        _ => json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    };
    let mut object = kind.object(name, variant / 6);
    object["status"] = status.clone();
    match variant % 6 {
        0 => Step::put(path, object),
        1 => {
            object["metadata"]["resourceVersion"] = json!(format!("{{rv:{key}}}"));
            Step::put(path, object)
        }
        2 => Step::patch(path, "merge-patch", json!({"status": status})),
        3 => Step::patch(
            path,
            "merge-patch",
            json!({"spec": {"replicas": 9}, "metadata": {"labels": {"via": "status"}}}),
        ),
        4 => Step::get(path),
        _ => Step::patch(path, "strategic-merge-patch", json!({"status": status})),
    }
}

fn scale(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, path, key) = named(kind, name);
    let path = format!("{path}/scale");
    let mut scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": "{ns}"},
        "spec": {"replicas": variant / 8},
    });
    match variant % 8 {
        0 | 1 => Step::get(path),
        2 => Step::put(path, scale),
        3 => {
            scale["metadata"]["resourceVersion"] = json!(format!("{{old:{key}}}"));
            Step::put(path, scale)
        }
        4 => Step::patch(path, "merge-patch", json!({"spec": {"replicas": variant / 8}})),
        5 => Step::patch(path, "json-patch", json!([{"op": "replace", "path": "/spec/replicas", "value": 2}])),
        6 => {
            scale["metadata"]["name"] = json!("other");
            Step::put(path, scale)
        }
        _ => Step::put(format!("{path}?dryRun=All"), scale),
    }
}

fn delete(kind: Kind, name: u8, variant: u8) -> Step {
    let (_, path, key) = named(kind, name);
    let options = |value: Value| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        for (key, value) in value.as_object().into_iter().flatten() {
            options[key] = value.clone();
        }
        options
    };
    let body = match variant % 16 {
        0..=3 => return Step::delete(path),
        4 => json!({"preconditions": {"uid": format!("{{uid:{key}}}")}}),
        5 => json!({"preconditions": {"uid": "3f2a4a52-0000-4000-8000-000000000000"}}),
        6 => json!({"preconditions": {"resourceVersion": format!("{{rv:{key}}}")}}),
        7 => json!({"preconditions": {"resourceVersion": format!("{{old:{key}}}")}}),
        8 => json!({"propagationPolicy": "Background"}),
        9 => json!({"propagationPolicy": "Sometimes"}),
        10 => json!({"dryRun": ["All"]}),
        11 => return Step::delete(format!("{path}?dryRun=All")),
        12 => json!({"gracePeriodSeconds": 0}),
        13 => json!({"gracePeriodSeconds": -1}),
        14 => json!({"orphanDependents": false, "propagationPolicy": "Background"}),
        _ => return Step::delete(format!("{path}?gracePeriodSeconds=5&propagationPolicy=Background")),
    };
    Step::delete(path).with_body(options(body))
}

fn delete_collection(kind: Kind, variant: u8) -> Step {
    let path = kind.path();
    let options = |options: Value| Step::delete(kind.path()).with_body(options);
    Step::delete(match variant % 12 {
        0 => path,
        1 => format!("{path}?labelSelector=tier%3Dfront"),
        2 => format!("{path}?dryRun=All"),
        3 => format!("{path}?fieldSelector=metadata.name%3Da"),
        4 => format!("{path}?labelSelector=tier%3D%3D%3Dx"),
        5 => format!("{path}?fieldSelector=spec.nothing%3Da"),
        6 => format!("{path}?limit=1"),
        7 => format!("{path}?gracePeriodSeconds=0"),
        8 => format!("{path}?labelSelector=tier%3Dfront&gracePeriodSeconds=3"),
        9 => return options(json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})),
        10 => return options(json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Sometimes"})),
        _ => return options(json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]})),
    })
}

fn read(kind: Kind, name: u8, variant: u8) -> Step {
    let (_, path, key) = named(kind, name);
    match variant % 10 {
        0..=2 => Step::get(path),
        3 => Step::get(format!("{path}?resourceVersion=0")),
        4 => Step::get(format!("{path}?resourceVersion={{rv:{key}}}")),
        5 => Step::get(format!("{path}?resourceVersion=junk")),
        6 => Step::get(path).accepting("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        7 => Step::get(path).accepting("application/json;as=Table;g=meta.k8s.io;v=v1"),
        8 => Step::get(format!("{path}?pretty=true")),
        _ => Step::get(format!("{path}/nothing-like-it")),
    }
}

fn list(kind: Kind, variant: u8) -> Step {
    let path = kind.path();
    let queries: Vec<&str> = " labelSelector=tier%3Dfront labelSelector=tier!%3Dfront \
        labelSelector=tier+in+(front,back),app labelSelector=tier+notin+(front) labelSelector=!tier \
        labelSelector=tier+in+front labelSelector=tier%3D%3D%3Dx labelSelector=bad+key!%3Dx labelSelector=n%3E5 \
        fieldSelector=metadata.name%3Da fieldSelector=metadata.name!%3Da fieldSelector=status.phase%3DPending \
        fieldSelector=spec.nothing%3Da fieldSelector=metadata.namespace%3D{ns} fieldSelector=junk limit=1 limit=2 \
        limit=1&continue={continue} limit=5&continue={continue} continue=junk \
        limit=1&continue={continue}&resourceVersion={list} limit=1&labelSelector=tier%3Dfront limit=-1 limit=many \
        resourceVersion=0 resourceVersion={list} resourceVersion=junk \
        resourceVersion={list}&resourceVersionMatch=Exact resourceVersion={list}&resourceVersionMatch=NotOlderThan \
        resourceVersion=0&resourceVersionMatch=Exact resourceVersion=0&resourceVersionMatch=NotOlderThan \
        resourceVersionMatch=Exact resourceVersion={list}&resourceVersionMatch=Roughly \
        limit=1&resourceVersion={list}&resourceVersionMatch=Exact limit=1&resourceVersion=0 \
        limit=1&resourceVersion={list} limit=1&continue={continue}&resourceVersionMatch=Exact timeoutSeconds=junk \
        pretty=true limit=3&labelSelector=tier%3Dfront&fieldSelector=metadata.name%3Da"
        .split(' ')
        .collect();
    let query = queries[usize::from(variant) % queries.len()];
    let step = Step::get(if query.is_empty() { path } else { format!("{path}?{query}") });
    match variant / 41 {
        4 => step.accepting("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        5 => step.accepting("application/json;as=Table;g=meta.k8s.io;v=v1,application/json"),
        _ => step,
    }
}

fn watch(kind: Kind, name: u8, variant: u8) -> Step {
    let (_, _, key) = named(kind, name);
    let path = format!("{}?watch=true", kind.path());
    let front = kind.object(crate::driver::LAST, 0);
    let open = |query: String| Step { last: Some(front.clone()), ..Step::new("WATCH", query) };
    let short = |query: String| Step::new("WATCH", query + "&timeoutSeconds=1");
    match variant % 16 {
        0 => open(path),
        1 | 2 => open(format!("{path}&resourceVersion={{list}}")),
        3 | 4 => open(format!("{path}&resourceVersion={{old:{key}}}")),
        5 => open(format!("{path}&resourceVersion={{old:{key}}}&labelSelector=tier%3Dfront")),
        6 => open(format!("{path}&resourceVersion={{rv:{key}}}&labelSelector=tier%3Dfront&allowWatchBookmarks=true")),
        7 => open(format!("{path}&resourceVersion=0&labelSelector=tier+in+(front)")),
        8 => short(format!("{path}&resourceVersion={{old:{key}}}&fieldSelector=metadata.name%3Da")),
        9 => short(format!("{path}&resourceVersion={{rv:{key}}}")),
        10 => short(format!("{path}&resourceVersion=junk")),
        11 => short(format!("{path}&labelSelector=tier+in+front")),
        12 => short(format!("{path}&resourceVersion=0&resourceVersionMatch=NotOlderThan")),
        13 => open(format!("{path}&resourceVersion={{old:{key}}}"))
            .accepting("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        14 => short(format!("{path}&fieldSelector=spec.nothing%3Da")),
        _ => short(format!("{}/{}?watch=true&resourceVersion={{old:{key}}}", kind.path(), NAMES[usize::from(name)])),
    }
}

/// A request that is invalid for every object.
fn protocol(kind: Kind, name: u8, variant: u8) -> Step {
    let (name, path, _) = named(kind, name);
    let (all, object) = (kind.path(), kind.object(name, 0));
    let root = if kind.api_version() == "v1" { "/api/v1" } else { "/apis" };
    match variant % 28 {
        0 => Step::new("POST", all).with_text("application/json", "{\"kind\": "),
        1 => Step::new("POST", all).with_text("application/json", "[]"),
        2 => Step::new("POST", all).with_text("application/json", "\"text\""),
        3 => Step::new("POST", all),
        4 => Step::new("POST", all).with_text("text/plain", &object.to_string()),
        5 => Step::new("POST", all).with_text("application/yaml", &object.to_string()),
        6 => Step { content: Some("application/json; charset=utf-8".to_owned()), ..Step::post(all, object) },
        7 => Step::post(path, object),
        8 => Step::put(all, object),
        9 => Step::patch(all, "merge-patch", json!({})),
        10 => Step::patch(path, "unheard-of", json!({})),
        11 => Step { content: Some("application/json".to_owned()), ..Step::patch(path, "merge-patch", json!({})) },
        12 => Step::new("PATCH", path).with_text("application/merge-patch+json", "{\"a\""),
        13 => Step::new("PATCH", path).with_text("application/json-patch+json", "[{]"),
        14 => Step::get(format!("{root}/namespaces/{{ns}}/inventions")),
        15 => Step::get("/apis/nobody.example.com/v1/things"),
        16 => Step::get("/nothing/here"),
        17 => Step::get(path).accepting("application/xml"),
        18 => Step { token: Some(String::new()), ..Step::get(path) },
        19 => Step { token: Some("wrong".to_owned()), ..Step::get(all) },
        20 => Step::post(format!("{all}?dryRun=Some"), object),
        21 => Step::delete(path).with_text("application/json", "{\"kind\": "),
        22 => Step::delete(path).with_body(json!({"apiVersion": "v1", "kind": "ConfigMap"})),
        23 => Step::put(format!("{path}/status/more"), object),
        24 => Step::post(format!("{all}?fieldManager={}", "m".repeat(129)), object),
        25 => Step::get(all.replace("{ns}", "nowhere-at-all")),
        26 => Step::new("PUT", path).with_text("application/json", ""),
        _ => Step::get(path.replace("{ns}", "nowhere-at-all")),
    }
}
