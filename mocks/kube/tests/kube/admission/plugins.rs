//! Tests of the admission plugins of a cluster: their changes of pods and claims, and their refusals.

use super::*;

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn priority_class(name: &str, value: i64, default: bool) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
           "globalDefault": default, "preemptionPolicy": if default { "PreemptLowerPriority" } else { "Never" }})
}

#[tokio::test]
async fn a_pod_has_the_priority_of_its_class() {
    let (_world, mut client) = World::alone().await;
    let (_, plain) = client.post(PODS, &pod("plain", &json!({}))).await;
    assert_eq!((&plain["spec"]["priority"], plain["spec"].get("priorityClassName")), (&json!(0), None), "{plain}");
    assert_eq!(client.post(CLASSES, &priority_class("high", 1000, false)).await.0, 201);
    let (_, high) = client.post(PODS, &pod("high", &json!({"priorityClassName": "high"}))).await;
    assert_eq!(
        (&high["spec"]["priority"], &high["spec"]["preemptionPolicy"]),
        (&json!(1000), &json!("Never")),
        "{high}"
    );
    let owned = high["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].as_object().unwrap().clone();
    assert!(owned.contains_key("f:priorityClassName") && !owned.contains_key("f:priority"), "{owned:?}");
    // A replacement need not repeat the values of the class.
    let (status, replaced) =
        client.put(&format!("{PODS}/high"), &pod("high", &json!({"priorityClassName": "high"}))).await;
    assert_eq!((status, &replaced["spec"]["priority"]), (200, &json!(1000)), "{replaced}");
    let (status, system) =
        client.post(PODS, &pod("system", &json!({"priorityClassName": "system-node-critical"}))).await;
    assert_eq!((status, &system["spec"]["priority"]), (201, &json!(2_000_001_000)));

    for (spec, why) in [
        (json!({"priorityClassName": "none"}), "pods \"x\" is forbidden: no PriorityClass with name none was found"),
        (
            json!({"priorityClassName": "high", "priority": 7}),
            "pods \"x\" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission \
             controller computed 1000 from the given PriorityClass name",
        ),
        (
            json!({"preemptionPolicy": "Never"}),
            "pods \"x\" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; \
             priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ] {
        let (status, refused) = client.post(PODS, &pod("x", &spec)).await;
        assert_eq!((status, &refused["message"]), (403, &json!(why)));
    }
    assert_eq!(client.post(CLASSES, &priority_class("usual", 5, true)).await.0, 201);
    let (_, usual) = client.post(PODS, &pod("usual", &json!({}))).await;
    assert_eq!((&usual["spec"]["priority"], &usual["spec"]["priorityClassName"]), (&json!(5), &json!("usual")));
    let (status, refused) = client.post(CLASSES, &priority_class("second", 6, true)).await;
    let why = "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass usual is already marked as default. \
               Only one default can exist";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    let described = json!({"description": "as ever"});
    assert_eq!(client.patch(&format!("{CLASSES}/usual"), MERGE, &described).await.0, 200);
}

#[tokio::test]
async fn a_claim_without_a_class_has_the_newest_default() {
    let (_world, mut client) = World::alone().await;
    let path = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |name: &str, class: Value| {
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        if !class.is_null() {
            claim["spec"]["storageClassName"] = class;
        }
        claim
    };
    let class = |name: &str, default: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p", "metadata": {"name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": default}}})
    };
    assert_eq!(client.post(path, &claim("none", Value::Null)).await.1["spec"].get("storageClassName"), None);
    for (name, default) in [("a", "false"), ("b", "true")] {
        assert_eq!(client.post("/apis/storage.k8s.io/v1/storageclasses", &class(name, default)).await.0, 201);
    }
    for (name, asked, given) in [("usual", Value::Null, "b"), ("own", json!("a"), "a"), ("empty", json!(""), "")] {
        let (status, made) = client.post(path, &claim(name, asked)).await;
        assert_eq!((status, &made["spec"]["storageClassName"]), (201, &json!(given)), "{made}");
    }
}

/// The plugin runs only with furnished namespaces, and it runs again for containers that a webhook adds.
#[tokio::test]
async fn every_container_finds_the_token_of_its_account() {
    let script: Script = Arc::new(|path, request| match path {
        "/inject" if request["request"]["object"]["spec"]["containers"].as_array().unwrap().len() == 1 => {
            let sidecar = json!({"name": "sidecar", "image": "s"});
            Some(patched(request, &json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}])))
        }
        _ => Some(allowed(request)),
    });
    let world = World::with(|config| config.furnished_namespaces = true).await;
    let hook = Webhook::start(script).await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let entry = |path: &str| {
        hook.entry(
            path,
            &json!({"rules": rules, "reinvocationPolicy": "IfNeeded",
        "objectSelector": {"matchLabels": {"inject": "yes"}}}),
        )
    };
    let (status, made) =
        configure(&world, "MutatingWebhookConfiguration", vec![entry("/inject"), entry("/look")]).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    assert_eq!(client.post("/api/v1/namespaces", &namespace).await.0, 201);
    // Also in a namespace that was just made.
    let (status, made) = client.post("/api/v1/namespaces/new/pods", &pod("p", &json!({}))).await;
    assert_eq!(status, 201, "{made}");
    let spec = &made["spec"];
    assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("default"), &json!("default")));
    let name = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
    assert_eq!(
        spec["volumes"][0]["projected"]["sources"][0],
        json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}})
    );
    let mount = json!({"name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
    assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount]));

    let mut injected = pod("q", &json!({}));
    injected["metadata"]["labels"] = json!({"inject": "yes"});
    let (_, made) = client.post(PODS, &injected).await;
    let mounts: Vec<&Value> =
        made["spec"]["containers"].as_array().unwrap().iter().map(|container| &container["volumeMounts"][0]).collect();
    assert_eq!(
        (mounts.len(), mounts[0], made["spec"]["volumes"].as_array().unwrap().len()),
        (2, mounts[1], 1),
        "{made}"
    );
    let reviews = hook.reviews();
    let paths: Vec<&str> = reviews.iter().map(|(uri, _)| uri.split('?').next().unwrap()).collect();
    assert_eq!(paths, ["/inject", "/look", "/inject", "/look"], "what the plugin added is news to both");
    let sidecar = |round: usize| &reviews[round].1["request"]["object"]["spec"]["containers"][1];
    assert_eq!((&sidecar(1)["imagePullPolicy"], sidecar(1).get("volumeMounts")), (&json!("Always"), None));
    assert_eq!(sidecar(2)["volumeMounts"], json!([mounts[0]]));

    let (_, without) = client.post(PODS, &pod("without", &json!({"automountServiceAccountToken": false}))).await;
    assert_eq!((&without["spec"]["serviceAccountName"], without["spec"].get("volumes")), (&json!("default"), None));
    let (status, refused) = client.post(PODS, &pod("x", &json!({"serviceAccountName": "none"}))).await;
    let why =
        "pods \"x\" is forbidden: error looking up service account default/none: serviceaccount \"none\" not found";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
}

#[tokio::test]
async fn a_pod_has_what_its_runtime_class_needs() {
    let (_world, mut client) = World::alone().await;
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "boxed"}, "handler": "box",
        "overhead": {"podFixed": {"memory": "64Mi"}}, "scheduling": {"nodeSelector": {"box": "yes"}}});
    assert_eq!(client.post("/apis/node.k8s.io/v1/runtimeclasses", &class).await.0, 201);
    let (status, boxed) = client.post(PODS, &pod("boxed", &json!({"runtimeClassName": "boxed"}))).await;
    assert_eq!((status, &boxed["spec"]["overhead"]), (201, &json!({"memory": "64Mi"})), "{boxed}");
    assert_eq!(boxed["spec"]["nodeSelector"], json!({"box": "yes"}));
    for (spec, why) in [
        (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"runtimeClassName": "boxed", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"runtimeClassName": "boxed", "nodeSelector": {"box": "no"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[box] = yes; pod.spec.nodeSelector[box] = no",
        ),
    ] {
        let (status, refused) = client.post(PODS, &pod("x", &spec)).await;
        assert_eq!((status, &refused["message"]), (403, &json!(format!("pods \"x\" is forbidden: {why}"))));
    }
}

#[tokio::test]
async fn a_claim_grows_where_its_class_lets_it() {
    let (_world, mut client) = World::alone().await;
    let path = "/api/v1/namespaces/default/persistentvolumeclaims";
    for (name, grows) in [("fixed", false), ("elastic", true)] {
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.com/x", "allowVolumeExpansion": grows});
        assert_eq!(client.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.0, 201);
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}});
        assert_eq!(client.post(path, &claim).await.0, 201);
        let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let one = format!("{path}/{name}");
        let (status, refused) = client.patch(&one, MERGE, &larger).await;
        assert_eq!(status, 422, "{refused}");
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        assert_eq!(client.patch(&format!("{one}/status"), MERGE, &bound).await.0, 200);
        let (status, answer) = client.patch(&one, MERGE, &larger).await;
        assert_eq!(status, if grows { 200 } else { 403 }, "{answer}");
    }
}
