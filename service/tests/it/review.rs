//! Tests of reviews over sockets: the fields that a patch may change, the effects of failures, and invalid requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use service_admission::config::Config;
use service_admission::{Current, Endpoint, Metrics, Pipeline, Policy, Resolver, Source};
use service_core::edge::Accounts;
use service_core::wire::{Client, Protocol};
use service_registry::verdicts::Failure;
use service_registry::{Keyring, Reference};

use crate::admission::{ask, patched, pod, post, review, start};
use crate::support::registry::{Registry, digest};

/// A review of an update from `old` to `new`, which are of kind `kind`.
fn update(kind: &str, old: &Value, new: &Value) -> Value {
    let group = if kind == "Job" {
        "batch"
    } else if kind == "Pod" {
        ""
    } else {
        "apps"
    };
    let mut review = review("v1", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["kind"] = json!({"group": group, "version": "v1", "kind": kind});
    review["request"]["oldObject"] = old.clone();
    review
}

fn labelled(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["labels"] = json!({"new": "label"});
    object
}

fn with_template(spec: &Value) -> Value {
    json!({"metadata": {"name": "w"}, "spec": {"template": {"spec": spec}}})
}

/// Posts any body to the webhook; returns status and text of the answer, which need not be a review.
async fn raw(client: &Client, path: &str, body: impl Into<Bytes>) -> (u16, String) {
    let answer = post(client, path, body).await;
    (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
}

fn denial(answer: &Value) -> &str {
    assert_eq!((&answer["allowed"], &answer["status"]["code"]), (&json!(false), &json!(403)), "{answer}");
    answer["status"]["message"].as_str().unwrap()
}

#[tokio::test]
async fn an_at_sign_is_no_digest_and_a_port_must_exist() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let short = format!("{}/good@sha256:{}", registry.host(), "a".repeat(63));
    for image in ["x@", "a/b@foo", "user:pw@host/x", "x@sha256:", &short, "host:99999/x", "host:/x", "127.0.0.1:0/x"] {
        let answer = ask(&client, &review("v1", &pod(&[image]))).await;
        assert!(denial(&answer).contains(": misconfigured: "), "{image}: {answer}");
    }
    assert_eq!(registry.requests.load(Ordering::Relaxed), 0);
    service.app.stop().await;
}

#[tokio::test]
async fn a_label_on_an_old_object_is_only_a_label() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let host = registry.host();
    let spec = json!({
        "containers": [{"name": "a", "image": format!("{host}/good:1")}, {"name": "b", "image": "x@"}],
        "initContainers": [{"name": "i", "image": format!("{host}/absent:1")}],
        "ephemeralContainers": [{"name": "e", "image": format!("{host}/broken:1")}],
        "volumes": [{"name": "v", "image": {"reference": format!("{host}/good:2")}}],
    });
    let (bare, workload) = (json!({"metadata": {"name": "p"}, "spec": spec}), with_template(&spec));
    for (kind, old) in [("Pod", &bare), ("Job", &workload), ("Deployment", &workload)] {
        let answer = ask(&client, &update(kind, old, &labelled(old))).await;
        assert_eq!(answer, json!({"uid": "the-uid", "allowed": true}), "{kind}");
    }
    assert_eq!(registry.requests.load(Ordering::Relaxed), 0, "nobody is asked");
    service.app.stop().await;
}

#[tokio::test]
async fn an_update_pins_what_changed_where_it_may_change() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let good = |tag: &str| format!("{}/good:{tag}", registry.host());
    let pinned = |tag: &str| format!("{}@{}", good(tag), digest());
    let old = json!({
        "containers": [{"name": "a", "image": good("1")}, {"name": "b", "image": good("2")}],
        "volumes": [{"name": "v", "image": {"reference": good("3")}}],
    });
    let mut new = old.clone();
    new["containers"] = json!([{"name": "b", "image": good("2")}, {"name": "a", "image": good("4")}]);
    new["volumes"][0]["image"]["reference"] = good("5").into();

    let (old_workload, new_workload) = (with_template(&old), with_template(&new));
    let answer = ask(&client, &update("Deployment", &old_workload, &new_workload)).await;
    let mut expected = new_workload.clone();
    expected["spec"]["template"]["spec"]["containers"][1]["image"] = pinned("4").into();
    expected["spec"]["template"]["spec"]["volumes"][0]["image"]["reference"] = pinned("5").into();
    assert_eq!(patched(&answer, &new_workload), expected);

    let (old_pod, new_pod) = (json!({"metadata": {}, "spec": old}), json!({"metadata": {}, "spec": new}));
    let answer = ask(&client, &update("Pod", &old_pod, &new_pod)).await;
    let mut expected = new_pod.clone();
    expected["spec"]["containers"][1]["image"] = pinned("4").into();
    assert_eq!(patched(&answer, &new_pod), expected, "volumes of a Pod are immutable");

    let answer = ask(&client, &update("Job", &old_workload, &new_workload)).await;
    assert_eq!(answer, json!({"uid": "the-uid", "allowed": true}), "the API server refuses it in its own words");

    let mut debugged = old_pod.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": good("6")}]);
    let mut debug = update("Pod", &old_pod, &debugged);
    debug["request"]["subResource"] = "ephemeralcontainers".into();
    let answer = ask(&client, &debug).await;
    let mut expected = debugged.clone();
    expected["spec"]["ephemeralContainers"][0]["image"] = pinned("6").into();
    assert_eq!(patched(&answer, &debugged), expected);

    // A missing image added by the user is refused as usual.
    let mut missing = new_pod.clone();
    missing["spec"]["containers"][0]["image"] = format!("{}/absent:1", registry.host()).into();
    assert!(denial(&ask(&client, &update("Pod", &new_pod, &missing)).await).contains("not-found"));
    service.app.stop().await;
}

/// A `ReplicaSet` of an old Deployment is not pinned, because the Deployment controller would not recognize it and
/// would create another one, for ever.
#[tokio::test]
async fn the_replica_set_of_an_old_deployment_stays_a_copy_of_it() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let old = with_template(&json!({"containers": [{"name": "a", "image": format!("{}/good:1", registry.host())}]}));
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "b"}]);
    assert_eq!(ask(&client, &update("Deployment", &old, &new)).await["patch"], Value::Null);
    let mut copy = review("v1", &new);
    copy["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "ReplicaSet"});
    copy["request"]["userInfo"] = json!({"username": "system:serviceaccount:kube-system:deployment-controller"});
    let answer = ask(&client, &copy).await;
    assert_eq!(answer["patch"], Value::Null, "{answer}");
    copy["request"]["userInfo"]["username"] = "somebody".into();
    assert!(ask(&client, &copy).await["patch"].is_string(), "anybody else's is pinned");
    service.app.stop().await;
}

#[tokio::test]
async fn a_rule_may_look_again_at_what_nobody_changed() {
    let registry = Registry::start().await;
    let host = registry.host();
    let more = format!(
        "shutdown: {{drain: 50ms}}\n\
         policy: {{rules: [{{pattern: \"{host}/good\", recheck: always}}, {{pattern: \"*/*/absent\", recheck: always}}]}}\n"
    );
    let service = start(&registry, &more).await;
    let client = service.webhook(Protocol::Http1);
    let workload = |image: &str| with_template(&json!({"containers": [{"name": "a", "image": image}]}));
    let old = workload(&format!("{host}/good:1"));
    let answer = ask(&client, &update("Deployment", &old, &labelled(&old))).await;
    let image = &patched(&answer, &labelled(&old))["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, &format!("{host}/good:1@{}", digest()));
    let answer = ask(&client, &update("Job", &old, &labelled(&old))).await;
    assert_eq!(answer["patch"], Value::Null, "an immutable field is never patched: {answer}");
    let other = workload(&format!("{host}/denied:1"));
    assert_eq!(ask(&client, &update("Deployment", &other, &labelled(&other))).await["allowed"], true);
    service.app.stop().await;
}

#[tokio::test]
async fn a_failure_does_what_its_class_is_set_to() {
    let registry = Registry::start().await;
    let host = registry.host();
    let more = format!(
        "shutdown: {{drain: 50ms}}\n\
         policy:\n  onFailure: {{auth: error}}\n  rules:\n    \
         - {{pattern: \"{host}/broken:lenient\", onFailure: {{unavailable: allow}}}}\n    \
         - {{pattern: \"{host}/absent:seen\", mode: detect}}\n    \
         - {{pattern: \"{host}/absent:skipped\", mode: skip}}\n"
    );
    let service = start(&registry, &more).await;
    let client = service.webhook(Protocol::Http1);
    let image = |name: &str| format!("{host}/{name}");
    let create = async |names: &[&str]| {
        let images: Vec<_> = names.iter().map(|name| image(name)).collect();
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        raw(&client, "/mutate?timeout=10s", review("v1", &pod(&images)).to_string()).await
    };
    // A new object is refused while a registry is away, and so is a new image of an existing one: `Ignore` would store
    // it unpinned.
    let (status, text) = create(&["broken:1"]).await;
    assert!(status == 200 && text.contains("unavailable: "), "{status} {text}");
    let (old, new) = (pod(&[&image("good:1")]), pod(&[&image("broken:1")]));
    let (status, text) = raw(&client, "/mutate", update("Pod", &old, &new).to_string()).await;
    assert!(status == 200 && text.contains(r#""allowed":false"#), "{status} {text}");
    assert!(text.contains(&format!("1 image has no digest: {}: unavailable: ", image("broken:1"))), "{text}");
    // The strongest action wins: deny, then error, then allow; all failing images are named.
    let (status, text) = create(&["denied:1", "broken:lenient"]).await;
    assert!(status == 500 && text.contains("denied:1: auth") && text.contains("broken:lenient: unavailable"), "{text}");
    let (status, text) = create(&["denied:1", "broken:lenient", "absent:1"]).await;
    assert!(status == 200 && text.contains("3 images have no digest"), "{status} {text}");
    // Admitted, with a warning and a line in the audit log; the others are still pinned.
    let (_, text) = create(&["broken:lenient", "good:1", "absent:seen", "absent:skipped"]).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let response = &answer["response"];
    assert_eq!(
        response["warnings"],
        json!([
            format!("{} has no digest (not-found); detected by policy.rules[1]", image("absent:seen")),
            format!("{} has no digest (unavailable); let in by policy.rules[0]", image("broken:lenient")),
        ])
    );
    let annotation =
        |key: &str| -> Value { serde_json::from_str(response["auditAnnotations"][key].as_str().unwrap()).unwrap() };
    let lenient = json!([{"image": image("broken:lenient"), "class": "unavailable", "rule": "policy.rules[0]"}]);
    assert_eq!(annotation("let-in"), lenient);
    assert_eq!(annotation("pinned"), json!([{"image": image("good:1"), "digest": digest(), "rule": "built-in"}]));
    assert_eq!(annotation("detected")[0]["image"], image("absent:seen"));
    assert!(response["patch"].is_string());
    let (_, metrics) = service.health("/metrics").await;
    assert!(metrics.contains(r#"longhaul_admission_images_let_in_total{class="unavailable"} 1"#), "{metrics}");
    assert!(metrics.contains(r#"longhaul_admission_reviews_total{outcome="error"} 1"#), "{metrics}");
    service.app.stop().await;
}

#[tokio::test]
async fn the_validating_hook_refuses_what_is_not_pinned() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let good = format!("{}/good:1", registry.host());
    let validate = async |review: &Value| -> Value {
        let answer = post(&client, "/validate?timeout=10s", review.to_string()).await;
        assert_eq!(answer.status(), 200);
        serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
    };
    let answer = validate(&review("v1", &pod(&[&good, "skip.io/app"]))).await;
    assert_eq!(denial(&answer), format!("1 image is not pinned: {good}: write {good}@{}", digest()));
    let old = pod(&[&good]);
    for review in [
        review("v1beta1", &pod(&[&format!("{good}@{}", digest()), "skip.io/app"])),
        update("Pod", &old, &labelled(&old)),
    ] {
        assert_eq!(validate(&review).await, json!({"uid": "the-uid", "allowed": true}));
    }
    service.app.stop().await;
}

#[tokio::test]
async fn bad_input_gets_its_status_or_a_denial_and_asks_nobody() {
    let registry = Registry::start().await;
    let service = start(&registry, "").await;
    let client = service.webhook(Protocol::Http1);
    let good = review("v1", &pod(&["skip.io/app"])).to_string();
    let object = |object: &str| {
        let mut text = review("v1", &Value::Null).to_string();
        text = text.replacen("\"object\":null", &format!("\"object\":{object}"), 1);
        text.into_bytes()
    };
    let nested = |depth: usize| format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
    let mut no_utf8 = good.clone().into_bytes();
    let at = good.find("skip.io").unwrap();
    no_utf8[at] = 0xff;
    let mut no_request = review("v1", &Value::Null);
    no_request["request"] = Value::Null;
    for (body, what) in [
        (good.as_bytes()[..good.len() / 2].to_vec(), "truncated"),
        (no_utf8, "not UTF-8"),
        (nested(400_000).into_bytes(), "deep"),
        (no_request.to_string().into_bytes(), "no request"),
        (
            good.replacen("\"request\":", "\"request\":{\"uid\":\"x\",\"operation\":\"DELETE\"},\"request\":", 1)
                .into_bytes(),
            "two requests",
        ),
        (good.replacen("\"operation\":", "\"operation\":\"DELETE\",\"operation\":", 1).into_bytes(), "two operations"),
        (good.replacen("\"uid\":", "\"uid\":7,\"x\":", 1).into_bytes(), "a number for a uid"),
    ] {
        let (status, text) = raw(&client, "/mutate", body).await;
        assert_eq!(status, 400, "{what}: {text}");
        assert!(text.len() < 1000, "{what}: {text}");
    }
    let pinned = format!("h.io/a@sha256:{}", "a".repeat(64));
    let many: Vec<_> =
        (0..1000).map(|index| json!({"name": format!("c{index}"), "image": format!("h.io/a:{index}")})).collect();
    let many = json!({"metadata": {"name": "p"}, "spec": {"containers": many}});
    for (body, said) in [
        (object(&json!({"spec": {"containers": [{"image": "a".repeat(10_000)}]}}).to_string()), "misconfigured"),
        (
            object(&json!({"spec": {"containers": [{"image": format!("a@sha256:{}", "z".repeat(64))}]}}).to_string()),
            "misconfigured",
        ),
        (object(&json!({"spec": {"containers": [{"image": "a\u{1b}[2J\nb"}]}}).to_string()), "misconfigured"),
        (object(&many.to_string()), "more than 500 images"),
        (
            object(&format!(r#"{{"spec":{{"containers":[{{"image":"{pinned}","image":"h.io/a"}}]}}}}"#)),
            "`image` is there twice",
        ),
        (
            object(&format!(
                r#"{{"spec":{{"containers":[{{"image":"h.io/a"}}]}},"spec":{{"containers":[{{"image":"{pinned}"}}]}}}}"#
            )),
            "`spec` is there twice",
        ),
    ] {
        let answer = post(&client, "/mutate", body).await;
        assert_eq!(answer.status(), 200, "{said}");
        assert!(answer.body().len() < 8192, "{said}: an answer repeats little of what was sent");
        let answer: Value = serde_json::from_slice(answer.body()).unwrap();
        let message = denial(&answer["response"]);
        assert!(message.contains(said) && !message.contains(['\n', '\u{1b}']), "{said}: {message}");
    }
    let deep_inside = object(&format!(r#"{{"spec":{{"containers":[{{"image":{0}}}]}},"data":{0}}}"#, nested(200_000)));
    assert_eq!(raw(&client, "/mutate", deep_inside).await.0, 200, "depth costs no stack");
    // A label on an object that is too large to be examined again is still only a label.
    assert_eq!(ask(&client, &update("Pod", &many, &labelled(&many))).await["allowed"], true);
    assert_eq!(registry.requests.load(Ordering::Relaxed), 0);
    let (_, metrics) = service.health("/metrics").await;
    assert!(metrics.contains("longhaul_admission_cache_misses_total 0"), "{metrics}");
    service.app.stop().await;
}

/// A source of digests that panics for some tags and answers for other tags.
struct Panicking;

impl Source for Panicking {
    fn digest(
        self: Arc<Self>,
        reference: Reference,
        _keyring: Keyring,
        _deadline: tokio::time::Instant,
    ) -> BoxFuture<'static, Result<String, Failure>> {
        assert_ne!(reference.tag, "at-once", "a planted panic");
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_ne!(reference.tag, "later", "a planted panic");
            Ok(digest())
        }
        .boxed()
    }
}

/// An endpoint that uses [`Panicking`] and a policy, and its metrics.
fn panicking(policy: &str) -> (Arc<Endpoint>, Arc<Metrics>) {
    let text = format!("admission: {{listen: \"127.0.0.1:0\", certificate: c, key: k}}\n{policy}");
    let config = Config::parse(&text, std::path::Path::new("x.yaml")).unwrap();
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let resolver = Arc::new(Resolver::new(&config.resolve, Arc::new(Panicking), Arc::clone(&metrics)));
    let policy = Arc::new(Policy::new(&config));
    let pipeline = Pipeline::new(policy, resolver, Arc::clone(&metrics));
    (
        Arc::new(Endpoint::new(
            &config.admission.unwrap(),
            Current::new(pipeline),
            Arc::clone(service_core::share::Share::default().reviews()),
        )),
        metrics,
    )
}

async fn serve(endpoint: &Arc<Endpoint>, images: &[&str]) -> (u16, String) {
    let body = Full::new(Bytes::from(review("v1", &pod(images)).to_string()));
    let request = Request::post("/mutate").header("content-type", "application/json").body(body).unwrap();
    let peer = Accounts::default().peer(std::net::Ipv4Addr::LOCALHOST.into(), None);
    let answer = service_core::edge::serve(Arc::clone(endpoint), request, peer).await;
    let status = answer.status().as_u16();
    (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_with_an_answer_of_class_internal() {
    for (tag, panics) in [("at-once", 1), ("later", 1)] {
        let (endpoint, metrics) = panicking("");
        let image = format!("h.io/a:{tag}");
        let (status, text) = serve(&endpoint, &[&image, "h.io/a:good"]).await;
        assert!(status == 500 && text.contains(&format!("{image}: internal: ")), "{status} {text}");
        assert_eq!(metrics.panics.get(), panics);
        assert_eq!(metrics.in_flight.get(), 0);
        assert_eq!(serve(&endpoint, &["h.io/a:good"]).await.0, 200, "the next review is none the worse");
    }
    let (endpoint, metrics) = panicking("policy: {onFailure: {internal: allow}}\n");
    let (status, text) = serve(&endpoint, &["h.io/a:later", "h.io/a:good"]).await;
    assert!(status == 200 && text.contains("h.io/a:later has no digest (internal); let in by"), "{text}");
    // All callers that wait for the same image get the answer, and it is not cached.
    let waiting = (0..20).map(|_| serve(&endpoint, &["h.io/a:later"]));
    let answers = futures_util::future::join_all(waiting).await;
    assert!(answers.iter().all(|(status, text)| *status == 200 && text.contains("internal")), "{answers:?}");
    assert_eq!(metrics.panics.get(), 2, "one question for all of them");
}
