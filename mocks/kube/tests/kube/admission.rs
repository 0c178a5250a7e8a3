//! Tests of admission webhooks. The webhook uses real TLS, returns the answers that a test defines, and records its
//! calls.

mod matching;

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mock_pki::{Authority, server_config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, PATIENCE, Protocol, World};
use crate::{APPLY, CONFIG_MAPS, MERGE, PODS, config_map};

mod mutations;
mod order;
mod plugins;
mod policies;
mod reviews;
mod scales;

/// The webhook's answer to `(path, review)`: status and body; `None` means that the webhook never answers.
pub type Script = Arc<dyn Fn(&str, &Value) -> Option<(u16, Value)> + Send + Sync>;

pub struct Webhook {
    pub port: u16,
    pub ca: String,
    calls: Arc<Mutex<Vec<(String, Version, Value)>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Webhook {
    pub async fn start(script: Script) -> Self {
        Self::answering_together(script, 1).await
    }

    /// A webhook that answers only when `calls_together` calls are waiting, so the server must use one connection for
    /// each of these calls.
    async fn answering_together(script: Script, calls_together: usize) -> Self {
        let gate = Arc::new(Barrier::new(calls_together));
        let authority = Authority::generate("webhook").unwrap();
        let pair = authority.server(&["127.0.0.1", "hook.default.svc"]).unwrap();
        let tls = TlsAcceptor::from(server_config(&pair, None).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let open = Arc::new(AtomicUsize::new(0));
        let (seen, count, now_open) = (calls.clone(), connections.clone(), open.clone());
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (tls, seen, script) = (tls.clone(), seen.clone(), script.clone());
                let (gate, now_open) = (gate.clone(), now_open.clone());
                serving.spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    now_open.fetch_add(1, Ordering::SeqCst);
                    let service = service_fn(move |request| {
                        let (seen, script, gate) = (seen.clone(), script.clone(), gate.clone());
                        async move {
                            gate.wait().await;
                            answer(request, seen, script).await
                        }
                    });
                    let builder = hyper::server::conn::http1::Builder::new();
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    now_open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, ca: BASE64.encode(authority.ca_pem()), calls, connections, open, _tasks: tasks }
    }

    /// One webhook of a configuration; the fields in `more` replace the fields with the same keys.
    fn entry(&self, path: &str, more: &Value) -> Value {
        let mut entry = json!({
            "name": format!("{}.example.com", path.trim_start_matches('/')), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 7,
            "clientConfig": {"url": format!("https://127.0.0.1:{}{path}", self.port), "caBundle": self.ca},
            "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        });
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    }

    /// The paths, without queries, at which the webhook was called since the last call of this method; sorted.
    fn take_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.paths().iter().map(|uri| uri.split('?').next().unwrap().to_owned()).collect();
        self.calls.lock().unwrap().clear();
        paths.sort();
        paths
    }

    /// The reviews that the webhook got since the last call of this method, with their paths.
    pub fn reviews(&self) -> Vec<(String, Value)> {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.into_iter().map(|(uri, _, review)| (uri, review)).collect()
    }

    fn paths(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(path, _, _)| path.clone()).collect()
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<(String, Version, Value)>>>,
    script: Script,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let uri = request.uri().to_string();
    let path = request.uri().path().to_owned();
    let version = request.version();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push((uri, version, review.clone()));
    let Some((status, body)) = script(&path, &review) else { return std::future::pending().await };
    let response = Response::builder().status(status).body(Full::new(Bytes::from(body.to_string())));
    Ok(response.unwrap())
}

fn review(request: &Value, mut response: Value) -> (u16, Value) {
    response["uid"] = request["request"]["uid"].clone();
    (200, json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

fn allowed(request: &Value) -> (u16, Value) {
    review(request, json!({"allowed": true}))
}

fn allowing() -> Script {
    Arc::new(|_, request| Some(allowed(request)))
}

fn patched(request: &Value, operations: &Value) -> (u16, Value) {
    let patch = BASE64.encode(operations.to_string());
    review(request, json!({"allowed": true, "patch": patch, "patchType": "JSONPatch", "warnings": ["look out"]}))
}

async fn configure(world: &World, kind: &str, webhooks: Vec<Value>) -> (u16, Value) {
    let mut client = world.client(Protocol::Http1, "harness").await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "hooks"},
        "webhooks": webhooks,
    });
    let plural = format!("{}s", kind.to_lowercase());
    client.post(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &configuration).await
}

/// A world in which the server calls the webhooks `/mutate` and `/validate` for one operation on the given resources.
async fn asking(script: Script, operation: &str, groups: &[&str], resources: &[&str]) -> (World, Webhook) {
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let rule = json!({"operations": [operation], "apiGroups": groups, "apiVersions": ["*"], "resources": resources});
    for (kind, path) in [("MutatingWebhookConfiguration", "/mutate"), ("ValidatingWebhookConfiguration", "/validate")] {
        let (status, made) = configure(&world, kind, vec![hook.entry(path, &json!({"rules": [rule]}))]).await;
        assert_eq!(status, 201, "{made}");
    }
    (world, hook)
}

#[tokio::test]
async fn hooks_change_and_refuse_in_the_order_of_the_real_server() {
    let script: Script = Arc::new(|path, request| match path {
        "/change" => Some(patched(request, &json!([{"op": "add", "path": "/data/patched", "value": "yes"}]))),
        _ if request["request"]["object"]["data"]["patched"] != json!("yes") => {
            Some(review(request, json!({"allowed": false, "status": {"code": 200, "message": "not patched"}})))
        }
        _ if request["request"]["name"] == json!("bad") => {
            let status = json!({"code": 403, "reason": "Forbidden", "message": "no bad maps"});
            Some(review(request, json!({"allowed": false, "status": status})))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let (status, made) =
        configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/check", &json!({}))]).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "subject").await;
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("early")).await;
    let text = "admission webhook \"check.example.com\" denied the request: not patched";
    assert_eq!((status, &refused["message"]), (400, &json!(text)), "a code below 400 becomes 400");

    configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/change", &json!({}))]).await;
    let response = client.send(http::Method::POST, CONFIG_MAPS, config_map("good").to_string()).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"look out\"");
    let body: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(body["data"], json!({"a": "1", "patched": "yes"}));
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("bad")).await;
    assert_eq!((status, &refused["reason"]), (403, &json!("Forbidden")));
    let (_, change) = client.patch(&format!("{CONFIG_MAPS}/good"), MERGE, &json!({"data": {"b": "2"}})).await;
    assert_eq!(change["data"]["b"], json!("2"));

    let calls = hook.calls.lock().unwrap().clone();
    assert!(calls.iter().all(|(uri, version, _)| uri.ends_with("?timeout=7s") && *version == Version::HTTP_11));
    let (_, _, create) = &calls[1];
    let request = &create["request"];
    assert_eq!((&request["operation"], &request["userInfo"]["username"]), (&json!("CREATE"), &json!("subject")));
    assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    let (_, _, update) = calls.last().unwrap();
    assert_eq!(update["request"]["oldObject"]["data"], json!({"a": "1", "patched": "yes"}));
    let uids: std::collections::BTreeSet<String> =
        calls.iter().map(|(_, _, r)| r["request"]["uid"].to_string()).collect();
    assert_eq!(uids.len(), calls.len(), "every call has its own uid");
    assert_eq!(hook.connections.load(Ordering::SeqCst), 1, "calls one after the other share a connection");
}

#[tokio::test]
async fn a_failed_call_follows_the_failure_policy() {
    let script: Script = Arc::new(|path, request| match path {
        "/broken" => Some((500, json!({}))),
        "/hangs" => None,
        "/lies" => Some((
            200,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "x", "allowed": true}}),
        )),
        _ => Some(allowed(request)),
    });
    for (path, text) in
        [("/broken", "status code 500"), ("/hangs", "context deadline exceeded"), ("/lies", "expected response.uid=")]
    {
        let (world, hook) = (World::start().await, Webhook::start(script.clone()).await);
        let fails = hook.entry(path, &json!({"timeoutSeconds": 1, "failurePolicy": "Fail"}));
        configure(&world, "ValidatingWebhookConfiguration", vec![fails]).await;
        let mut client = world.client(Protocol::Http1, "harness").await;
        let (status, refused) = client.post(CONFIG_MAPS, &config_map("a")).await;
        assert_eq!((status, &refused["reason"]), (500, &json!("InternalError")), "{path}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("failed calling webhook") && message.contains(text), "{message}");
        let open = hook.entry(path, &json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"}));
        configure(&world, "MutatingWebhookConfiguration", vec![open]).await;
        let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks";
        assert_eq!(client.delete(hooks).await.0, 200, "configurations meet no webhooks");
        assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201, "{path} failed open");
    }
}

#[tokio::test]
async fn rules_and_selectors_decide_who_is_asked() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let rule = |groups: &str, resources: &str, operations: &str| json!({"rules": [{"operations": [operations], "apiGroups": [groups], "apiVersions": ["*"], "resources": [resources]}]});
    let selecting = |selector: &str, key: &str| json!({selector: {"matchLabels": {key: "x"}}});
    let webhooks = vec![
        hook.entry("/all", &rule("*", "*/*", "*")),
        hook.entry("/status", &rule("longhaul.dev", "packages/status", "*")),
        hook.entry("/deletes", &rule("", "configmaps", "DELETE")),
        hook.entry("/objects", &selecting("objectSelector", "pick")),
        hook.entry("/namespaces", &selecting("namespaceSelector", "team")),
        hook.entry(
            "/kept",
            &json!({"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
            ]}}),
        ),
    ];
    let (status, made) = configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    client.post(CONFIG_MAPS, &config_map("plain")).await;
    assert_eq!(hook.take_paths(), ["/all", "/kept"]);
    let mut picked = config_map("picked");
    picked["metadata"]["labels"] = json!({"pick": "x"});
    client.post("/api/v1/namespaces/kube-system/configmaps", &picked).await;
    assert_eq!(hook.take_paths(), ["/all", "/objects"]);
    client.delete(&format!("{CONFIG_MAPS}/plain")).await;
    assert_eq!(hook.take_paths(), ["/all", "/deletes"]);
    client.post(crate::PACKAGES, &crate::package("p")).await;
    assert_eq!(hook.take_paths(), ["/all"]);
    let ready = json!({"status": {"phase": "Ready"}});
    client.patch(&format!("{}/p/status", crate::PACKAGES), MERGE, &ready).await;
    assert_eq!(hook.take_paths(), ["/all", "/status"]);
    let team = json!({"metadata": {"labels": {"team": "x"}}});
    client.patch("/api/v1/namespaces/default", MERGE, &team).await;
    hook.take_paths();
    client.post(CONFIG_MAPS, &config_map("team")).await;
    assert_eq!(hook.take_paths(), ["/all", "/kept", "/namespaces"]);
}

#[tokio::test]
async fn a_hook_is_asked_again_when_a_later_one_changed_something() {
    let script: Script = Arc::new(|path, request| match path {
        "/second" => Some(patched(request, &json!([{"op": "add", "path": "/data/second", "value": "1"}]))),
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = vec![hook.entry("/first", &again), hook.entry("/once", &json!({})), hook.entry("/second", &again)];
    configure(&world, "MutatingWebhookConfiguration", webhooks).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    let paths: Vec<String> = hook.paths().iter().map(|path| path.split('?').next().unwrap().to_owned()).collect();
    assert_eq!(paths, ["/first", "/once", "/second", "/first"]);
}

#[tokio::test]
async fn conditions_decide_who_is_asked() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let with = |path: &str, policy: &str, expression: &str| {
        let conditions = json!([{"name": "condition", "expression": expression}]);
        hook.entry(path, &json!({"matchConditions": conditions, "failurePolicy": policy}))
    };
    let webhooks = vec![
        with("/all", "Fail", "true"),
        with("/none", "Fail", "object.metadata.name == 'other' && object.data.nothing == 'x'"),
        with("/who", "Fail", "request.userInfo.username == 'harness' && !request.dryRun"),
        with("/new", "Fail", "request.operation == 'CREATE' && oldObject == null"),
        with("/open", "Ignore", "object.data.nothing == 'x'"),
        with("/pods", "Fail", "request.resource.resource == 'pods'"),
    ];
    let (status, made) = configure(&world, "MutatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    assert_eq!(hook.take_paths(), ["/all", "/new", "/who"]);
    let changed = json!({"data": {"b": "2"}});
    client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &changed).await;
    assert_eq!(hook.take_paths(), ["/all", "/who"]);

    let closed = vec![with("/closed", "Fail", "object.data.nothing == 'x'")];
    let (status, made) = configure(&world, "ValidatingWebhookConfiguration", closed).await;
    assert_eq!(status, 201, "{made}");
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("b")).await;
    let why = "configmaps \"b\" is forbidden: expression 'object.data.nothing == 'x'' resulted in error: \
               no such key: nothing";
    assert_eq!((status, &refused["message"]), (403, &json!(why)));
    assert!(!hook.take_paths().contains(&"/closed".to_owned()), "a webhook whose conditions failed is not called");
}

/// A webhook for one API of events also sees events that clients write through the other API, converted to its own API,
/// and may change them.
#[tokio::test]
async fn equivalent_requests_match_unless_exact_ones_are_asked_for() {
    let script: Script = Arc::new(|path, request| match path {
        "/newer" => Some(patched(request, &json!([{"op": "replace", "path": "/note", "value": "changed"}]))),
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let rule = |path: &str, policy: &str| {
        let resource = json!({"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"], "operations": ["*"]});
        hook.entry(path, &json!({"rules": [resource], "matchPolicy": policy}))
    };
    let webhooks = vec![rule("/newer", "Equivalent"), rule("/exact", "Exact")];
    let (status, made) = configure(&world, "MutatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "message": "text", "reason": "Why",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "type": "Normal",
    });
    let (status, made) = client.post("/api/v1/namespaces/default/events", &event).await;
    assert_eq!((status, &made["message"], &made["apiVersion"]), (201, &json!("changed"), &json!("v1")), "{made}");
    let calls = hook.reviews();
    assert_eq!(calls.len(), 1, "{calls:?}");
    let request = &calls[0].1["request"];
    assert_eq!(request["kind"], json!({"group": "events.k8s.io", "version": "v1", "kind": "Event"}));
    assert_eq!(request["resource"], json!({"group": "events.k8s.io", "version": "v1", "resource": "events"}));
    assert_eq!(request["requestKind"], json!({"group": "", "version": "v1", "kind": "Event"}));
    assert_eq!(request["requestResource"], json!({"group": "", "version": "v1", "resource": "events"}));
    let object = &request["object"];
    assert_eq!((&object["apiVersion"], &object["note"]), (&json!("events.k8s.io/v1"), &json!("text")), "{object}");
}

#[tokio::test]
async fn older_reviews_are_sent_to_webhooks_that_want_them() {
    let script: Script = Arc::new(|path, request| match path {
        // Without type and uid of the review, as the older form allows.
        "/older" => {
            let patch = BASE64.encode(json!([{"op": "add", "path": "/data/older", "value": "yes"}]).to_string());
            Some((200, json!({"response": {"allowed": true, "patch": patch}})))
        }
        _ => Some(allowed(request)),
    });
    let (world, hook) = (World::start().await, Webhook::start(script).await);
    let with = |path: &str, versions: Value| hook.entry(path, &json!({"admissionReviewVersions": versions}));
    let webhooks = vec![with("/older", json!(["v9", "v1beta1", "v1"])), with("/newer", json!(["v1", "v1beta1"]))];
    let (status, made) = configure(&world, "MutatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let mut client = world.client(Protocol::Http1, "harness").await;
    let (status, made) = client.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!((status, &made["data"]["older"]), (201, &json!("yes")), "{made}");
    let versions: Vec<Value> = hook.calls.lock().unwrap().iter().map(|(_, _, r)| r["apiVersion"].clone()).collect();
    assert_eq!(versions, ["admission.k8s.io/v1beta1", "admission.k8s.io/v1"]);
    for (wrong, text) in [
        (json!([]), "Required value: must specify one of v1, v1beta1"),
        (json!(["v9"]), "must include at least one of v1, v1beta1"),
        (json!(["v1", "v1"]), "admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version"),
    ] {
        let (status, refused) = configure(&world, "ValidatingWebhookConfiguration", vec![with("/x", wrong)]).await;
        assert_eq!(status, 422);
        assert!(refused["message"].as_str().unwrap().contains(text), "{refused}");
    }
}

/// A match condition that would run for ever makes its own request fail, but no other request.
#[tokio::test]
async fn a_condition_without_end_stops_nobody_else() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let hundred = format!("[{}]", (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(", "));
    let expression =
        format!("{hundred}.all(a, {hundred}.all(b, {hundred}.all(c, {hundred}.all(d, a + b + c + d >= 0))))");
    let conditions = json!([{"name": "endless", "expression": expression}]);
    let webhooks = vec![hook.entry("/x", &json!({"matchConditions": conditions}))];
    let (status, made) = configure(&world, "ValidatingWebhookConfiguration", webhooks).await;
    assert_eq!(status, 201, "{made}");
    let (mut client, mut other) =
        (world.client(Protocol::Http1, "harness").await, world.client(Protocol::Http1, "subject").await);
    let hostile = async {
        let (status, refused) = client.post(CONFIG_MAPS, &config_map("a")).await;
        assert_eq!(status, 403);
        assert!(refused["message"].as_str().unwrap().ends_with("actual cost limit exceeded"), "{refused}");
    };
    let reading = async {
        for _ in 0..10 {
            assert_eq!(other.get(CONFIG_MAPS).await.0, 200);
        }
    };
    tokio::time::timeout(PATIENCE, futures_util::future::join(hostile, reading)).await.unwrap();
}

#[tokio::test]
async fn dry_runs_and_configurations_are_checked() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    for (wrong, text) in [
        (
            json!({"matchConditions": [{"name": "x", "expression": "obj == 1"}]}),
            "webhooks[0].matchConditions[0].expression: Invalid value: \"obj == 1\": compilation failed: \
             ERROR: <input>:1:1: undeclared reference to 'obj' (in container '')",
        ),
        (
            json!({"matchConditions": [{"name": "x", "expression": "authorizer.path('/x').check('get').allowed()"}]}),
            "'authorizer' is not supported by this server",
        ),
        (json!({"sideEffects": "Some"}), "sideEffects"),
        (json!({"matchPolicy": "Sometimes"}), "Unsupported value: \"Sometimes\": supported values"),
        (json!({"timeoutSeconds": 31}), "between 1 and 30"),
        (json!({"clientConfig": {"url": "http://127.0.0.1"}}), "https://"),
        (json!({"clientConfig": {}}), "url or service"),
    ] {
        let (status, refused) = configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/x", &wrong)]).await;
        assert_eq!(status, 422);
        assert!(refused["message"].as_str().unwrap().contains(text), "{refused}");
    }
    configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/x", &json!({}))]).await;
    let mut client = world.client(Protocol::Http1, "harness").await;
    let mut rehearsed = config_map("dry");
    rehearsed["metadata"]["resourceVersion"] = json!("7");
    let (status, _) = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &rehearsed).await;
    assert_eq!(status, 201);
    assert_eq!(hook.calls.lock().unwrap()[0].2["request"]["dryRun"], json!(true));
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/dry")).await.0, 404);
}

#[tokio::test]
async fn a_service_is_found_and_its_name_is_checked() {
    let (world, hook) = (World::start().await, Webhook::start(allowing()).await);
    let mut client = world.client(Protocol::Http1, "harness").await;
    let by_service = |name: &str| {
        let service = json!({"namespace": "default", "name": name, "path": "/svc"});
        hook.entry("/svc", &json!({"clientConfig": {"service": service, "caBundle": hook.ca}, "timeoutSeconds": 2}))
    };
    configure(&world, "MutatingWebhookConfiguration", vec![by_service("hook")]).await;
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(status, 500);
    assert!(refused["message"].as_str().unwrap().contains("has no address"), "{refused}");
    for name in ["hook", "other"] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": 443, "targetPort": hook.port}]},
        });
        assert_eq!(client.post("/api/v1/namespaces/default/services", &service).await.0, 201);
    }
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks";
    let other = json!({"webhooks": [by_service("other")]});
    client.patch(path, MERGE, &other).await;
    let (status, refused) = client.post(CONFIG_MAPS, &config_map("b")).await;
    assert_eq!(status, 500);
    assert!(refused["message"].as_str().unwrap().contains("verify certificate"), "{refused}");
}

/// Two updates without a revision are admitted at the same time. The server repeats the second update from the sent
/// object and calls the webhook again; the webhook answers that call together with a call for the creation of another
/// object.
#[tokio::test]
async fn an_update_that_was_overtaken_is_made_again() {
    let (world, hook) = (World::start().await, Webhook::answering_together(allowing(), 2).await);
    let mut harness = world.client(Protocol::Http1, "harness").await;
    assert_eq!(harness.post(CONFIG_MAPS, &config_map("a")).await.0, 201);
    configure(&world, "ValidatingWebhookConfiguration", vec![hook.entry("/x", &json!({}))]).await;
    let mut updates = JoinSet::new();
    for writer in ["one", "two"] {
        let mut client = world.client(Protocol::Http1, "harness").await;
        let mut update = config_map("a");
        update["data"] = json!({"writer": writer});
        updates.spawn(async move { client.put(&format!("{CONFIG_MAPS}/a"), &update).await });
    }
    let (status, first) = tokio::time::timeout(PATIENCE, updates.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((status, updates.len()), (200, 1));
    assert_eq!(harness.post(CONFIG_MAPS, &config_map("b")).await.0, 201);
    let (status, second) = tokio::time::timeout(PATIENCE, updates.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((status, hook.paths().len()), (200, 4));
    assert_ne!(first["data"], second["data"]);
    assert!(second["data"]["writer"].is_string(), "{second}");
    assert_eq!(harness.get(&format!("{CONFIG_MAPS}/a")).await.1, second);
}

#[tokio::test]
async fn at_most_25_connections_stay_open() {
    let (world, hook) = (World::start().await, Webhook::answering_together(allowing(), 40).await);
    configure(&world, "MutatingWebhookConfiguration", vec![hook.entry("/x", &json!({}))]).await;
    let mut clients = JoinSet::new();
    for index in 0..40 {
        let mut client = world.client(Protocol::Http1, "harness").await;
        clients.spawn(async move { client.post(CONFIG_MAPS, &config_map(&format!("m{index}"))).await.0 });
    }
    let statuses = tokio::time::timeout(PATIENCE, clients.join_all()).await.unwrap();
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    assert_eq!(hook.connections.load(Ordering::SeqCst), 40, "calls at the same time have their own connections");
    let deadline = Instant::now() + PATIENCE;
    while hook.open.load(Ordering::SeqCst) != 25 {
        assert!(Instant::now() < deadline, "{} stay open", hook.open.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
