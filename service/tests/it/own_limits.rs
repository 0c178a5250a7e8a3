//! Tests of the service's own limits: no policy admits an image that was not examined because of such a limit.

use serde_json::{Value, json};

use crate::admission::{ask, pod, post, review};
use crate::support::api::Api;
use crate::support::kubeconfig;
use crate::support::registry::Registry;
use crate::support::signed::{Key, Signed};
use crate::verify::{config, start};

/// A policy that admits an image despite every failure that a policy can admit.
const LENIENT: &str = "onFailure: {not-found: allow, auth: allow, unavailable: allow, misconfigured: allow, internal: allow, \
                       unsigned: allow, invalid: allow, mismatch: allow}";
const RULE: &str = "pattern: \"*\", with: {verifyInTransparencyLog: false}";

fn message(answer: &Value) -> &str {
    answer["status"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn too_much_evidence_is_denied_whatever_is_let_in() {
    let (registry, key) = (Signed::start().await, Key::new());
    let image = registry.push("a");
    for number in 0..25 {
        registry.bundle_of("a", &image, b"{}", number);
    }
    let policy = format!("{LENIENT}, rules: [{{{RULE}}}]");
    let (service, client) = start(&config(&registry, &[("default", &key)], &policy, "")).await;
    let answer = ask(&client, &review("v1", &pod(&[&registry.image("a")]))).await;
    assert_eq!(answer["allowed"], false, "{answer}");
    assert!(message(&answer).contains(": too-much-evidence: "), "{answer}");
    let page = service.health("/metrics").await.1;
    assert!(page.contains("longhaul_admission_image_failures_total{class=\"too-much-evidence\"} 1"), "{page}");
    assert!(page.contains("longhaul_validation_verdicts_total{result=\"too-much-evidence\"} 1"), "{page}");
    service.app.stop().await;
}

/// A Pod whose images cannot all be looked up in time is denied, and so is another Pod that waits for the same lookups.
#[tokio::test]
async fn who_had_no_turn_is_denied_whatever_is_let_in() {
    let registry = Registry::start().await;
    let text = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nresolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\npolicy: {{{LENIENT}}}\n",
        registry.host()
    );
    let (service, client) = start(&text).await;
    let asked = async |images: &[String]| -> Value {
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        let answer = post(&client, "/mutate?timeout=3s", review("v1", &pod(&images)).to_string()).await;
        serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
    };
    let many: Vec<_> = (0..450).map(|number| format!("{}/slow:{number}", registry.host())).collect();
    let neighbour = [format!("{}/slow:neighbour", registry.host())];
    let (own, of_neighbour) = tokio::join!(asked(&many), async {
        // The second Pod arrives when all places are taken.
        while registry.requests.load(std::sync::atomic::Ordering::Relaxed) < 16 {
            tokio::task::yield_now().await;
        }
        asked(&neighbour).await
    });
    assert_eq!(own["allowed"], false, "{own}");
    assert!(message(&own).contains(": busy: "), "{own}");
    let let_in = of_neighbour["auditAnnotations"]["let-in"].as_str();
    assert_eq!(let_in, None, "{of_neighbour}");
    service.app.stop().await;
}

/// A `ReplicaSet` that was admitted while its registry was away does not approve images of its Pods later.
#[tokio::test]
async fn an_owner_that_was_let_in_unseen_approves_no_child() {
    let (registry, api, key) = (Signed::start().await, Api::start(false).await, Key::new());
    registry.push("a");
    let image = registry.image("a");
    let template = json!({"metadata": {"uid": "u1", "name": "web"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    let more = format!("kubernetes: {{kubeconfig: \"{}\"}}\n", path.display());
    let policy = format!("automaticChildApproval: true, rules: [{{{RULE}, onFailure: {{unavailable: allow}}}}]");
    let (service, client) = start(&config(&registry, &[("default", &key)], &policy, &more)).await;
    registry.world.lock().sick = vec![("/v2/".into(), 503)];
    let mut owner = review("v1", &template);
    owner["request"]["namespace"] = "team".into();
    let answer = ask(&client, &owner).await;
    assert_eq!(
        (&answer["allowed"], answer["auditAnnotations"]["let-in"].is_string()),
        (&json!(true), true),
        "{answer}"
    );

    registry.world.lock().sick.clear();
    api.world.lock().core.insert("/apis/apps/v1/namespaces/team/replicasets/web".into(), template);
    let mut child = pod(&[&image]);
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": true}]);
    let mut child = review("v1", &child);
    child["request"]["namespace"] = "team".into();
    let answer = ask(&client, &child).await;
    assert_eq!(answer["allowed"], false, "{answer}");
    assert!(message(&answer).contains(": unsigned: "), "{answer}");
    service.app.stop().await;
}
