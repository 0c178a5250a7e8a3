//! Tests of scales before webhooks: the shown objects, and the allowed changes.

use super::*;

fn without_owners(scale: &Value) -> Value {
    let mut scale = scale.clone();
    scale["metadata"].as_object_mut().unwrap().remove("managedFields");
    scale
}

/// The reviews of kube-apiserver 1.20.2 for a scale, besides the owners in newer ones. Webhooks never see the object.
/// Mutating ones see the requested `Scale` of a PUT, validating ones the `Scale` of the resulting object.
#[tokio::test]
async fn a_scale_is_shown_as_a_scale_and_may_be_changed() {
    let script: Script = Arc::new(|path, request| match path {
        "/change" if request["request"]["object"]["spec"]["replicas"] == 4 => {
            let operations = json!([{"op": "replace", "path": "/spec/replicas", "value": 7},
                                    {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]);
            Some(patched(request, &operations))
        }
        "/check" if request["request"]["object"]["spec"]["replicas"] == 9 => {
            Some(review(request, json!({"allowed": false, "status": {"code": 403, "message": "no nines"}})))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let rules = json!({"rules": [{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
        "resources": ["deployments/scale"]}]});
    configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/change", &rules)]).await;
    configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/check", &rules)]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["y", "x"]}]},
        "template": {"metadata": {"labels": {"app": "a", "tier": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    assert_eq!(client.post(path, &deployment).await.0, 201);
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 4, "odd": 1}});
    let (status, scaled) = client.put(&format!("{path}/a/scale"), &scale).await;
    assert_eq!((status, &scaled["spec"]), (200, &json!({"replicas": 7})), "{scaled}");
    let (_, stored) = client.get(&format!("{path}/a")).await;
    assert_eq!((&stored["spec"]["replicas"], &stored["metadata"]["labels"]), (&json!(7), &Value::Null));

    let calls: Vec<Value> =
        std::mem::take(&mut *hook.calls.lock().unwrap()).into_iter().map(|(_, _, r)| r["request"].clone()).collect();
    assert_eq!(calls.len(), 2);
    let kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    let resource = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    for request in &calls {
        assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
        assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
        assert_eq!((&request["subResource"], &request["options"]["kind"]), (&json!("scale"), &json!("UpdateOptions")));
    }
    let asked = json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 4}, "status": {"replicas": 0}});
    assert_eq!(without_owners(&calls[0]["object"]), asked);
    let (old, new) = (&calls[1]["oldObject"], &calls[1]["object"]);
    assert_eq!(without_owners(&calls[0]["oldObject"]), *old);
    let owned = |request: &Value, object: &str| request[object]["metadata"]["managedFields"][0]["subresource"].clone();
    assert_eq!((owned(&calls[0], "oldObject"), owned(&calls[0], "object")), (Value::Null, json!("scale")));
    assert_eq!((&old["spec"], &new["spec"]), (&json!({"replicas": 1}), &json!({"replicas": 7})));
    assert_eq!((&old["status"], &old["metadata"]), (&new["status"], &new["metadata"]), "and nothing else changed");
    assert_eq!(new["status"], json!({"replicas": 0, "selector": "app=a,tier in (x,y)"}));

    let nine = json!({"spec": {"replicas": 9}});
    let (status, refused) = client.patch(&format!("{path}/a/scale"), MERGE, &nine).await;
    assert_eq!(status, 403, "{refused}");
    let (status, dry) = client.patch(&format!("{path}/a/scale?dryRun=All"), MERGE, &json!({"spec": null})).await;
    assert_eq!((status, &dry["spec"]), (200, &json!({})), "{dry}");
    let calls = hook.calls.lock().unwrap();
    let options = &calls.last().unwrap().2["request"]["options"];
    assert_eq!(*options, json!({"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "dryRun": ["All"]}));
}
