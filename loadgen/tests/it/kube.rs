//! A very small Kubernetes API for tests: objects by path, resource versions, finalizers, and faults on demand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::Response;
use hyper::body::Incoming;
use loadgen::churn::Api;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::server::{Body, Server, respond};
use crate::watch::{self, Watches};

/// A function that may give a call to the API an error status instead of its answer.
pub type Fault = fn(count: usize, method: &str, path: &str) -> Option<u16>;

/// A function that may refuse a written object, or a patch of one, with a status and a message.
pub type Refusal = fn(method: &str, body: &Value) -> Option<(u16, &'static str)>;

#[derive(Default)]
pub struct State {
    pub objects: BTreeMap<String, Value>,
    /// The calls, for example `POST path`, each with the status of its answer.
    pub log: Vec<(String, u16)>,
    pub revision: u64,
    /// Number of lists after which a finalizer is removed; if set, new objects (except namespaces) have a finalizer.
    pub finalizer: Option<usize>,
    pub fault: Option<Fault>,
    /// Applies to dry runs too.
    pub refusal: Option<Refusal>,
    /// The duration of each call of the API.
    pub delay: Duration,
    busy: BTreeMap<String, usize>,
    /// Highest number of calls that were ever in flight for one path, without lists and creates.
    pub most_at_once: usize,
    pub watches: Watches,
}

pub struct Kube {
    pub state: Arc<Mutex<State>>,
    pub server: Server,
}

impl Kube {
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(&[b"http/1.1"], move |request: Request<Incoming>| {
            let shared = Arc::clone(&shared);
            async move { handle(&shared, request).await }
        })
        .await;
        Self { state, server }
    }

    pub fn api(&self) -> Api {
        Api {
            url: format!("https://{}", self.server.address),
            ca_pem: self.server.ca_pem.clone(),
            token: "secret".to_owned(),
            mark: None,
        }
    }

    /// The names of all objects that are no namespaces.
    pub fn objects(&self) -> Vec<String> {
        self.state.lock().objects.keys().filter(|path| !is_namespace(path)).cloned().collect()
    }

    pub fn namespaces(&self) -> Vec<String> {
        self.state.lock().objects.keys().filter(|path| is_namespace(path)).cloned().collect()
    }

    pub fn calls(&self, method: &str) -> Vec<(String, u16)> {
        self.state.lock().log.iter().filter(|(call, _)| call.starts_with(method)).cloned().collect()
    }
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/").is_some_and(|rest| !rest.contains('/'))
}

fn is_collection(path: &str) -> bool {
    path.ends_with("/packages") || path.ends_with("/configmaps")
}

async fn handle(state: &Arc<Mutex<State>>, request: Request<Incoming>) -> Response<Body> {
    let method = request.method().to_string();
    let path = request.uri().path().to_owned();
    let query = watch::query(&request);
    let authorized = request.headers().get("authorization").is_some_and(|value| value == "Bearer secret");
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let refusal = state.lock().refusal.and_then(|refusal| refusal(&method, &body));
    // A rehearsal changes nothing, and is not logged.
    if query.get("dryRun").is_some_and(|value| value == "All") || body["dryRun"].is_array() {
        let (status, message) = refusal.unwrap_or((200, ""));
        return respond(status, "application/json", Bytes::from(json!({"message": message}).to_string()));
    }
    let delay = {
        let mut state = state.lock();
        let busy = state.busy.entry(path.clone()).or_default();
        *busy += 1;
        let busy = *busy;
        if method != "POST" && method != "GET" {
            state.most_at_once = state.most_at_once.max(busy);
        }
        state.delay
    };
    tokio::time::sleep(delay).await;
    let shared = state;
    let mut state = state.lock();
    if let Some(busy) = state.busy.get_mut(&path) {
        *busy -= 1;
    }
    let (status, answer) = if !authorized {
        (401, json!({"message": "Unauthorized"}))
    } else if let Some(status) = state.fault.and_then(|fault| fault(state.log.len(), &method, &path)) {
        (status, json!({"kind": "Status", "message": "a fault of the test"}))
    } else if let Some((status, message)) = refusal {
        (status, json!({"kind": "Status", "message": message}))
    } else if is_collection(&path) && query.contains_key("watch") {
        let version = query.get("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or_default();
        return watch::serve(shared, &mut state, version);
    } else if method == "GET" && is_collection(&path) {
        let (revision, items) = (state.revision, state.list());
        state.watches.page(&query, revision, items)
    } else {
        state.apply(&method, &path, &body)
    };
    state.log.push((format!("{method} {path}"), status));
    respond(status, "application/json", Bytes::from(answer.to_string()))
}

impl State {
    fn apply(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let missing = || (404, json!({"kind": "Status", "message": format!("{path} not found")}));
        match method {
            "POST" => self.create(path, body),
            "PATCH" => {
                let revision = self.bump();
                let Some(object) = self.objects.get_mut(path) else { return missing() };
                json_patch::merge(object, body);
                object["metadata"]["resourceVersion"] = json!(revision);
                let object = object.clone();
                self.watches.push(self.revision, "MODIFIED", &object);
                (200, object)
            }
            "DELETE" => {
                let revision = self.bump();
                let Some(object) = self.objects.get_mut(path) else { return missing() };
                object["metadata"]["resourceVersion"] = json!(revision);
                if object["metadata"]["finalizers"].is_array() {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                    let object = object.clone();
                    self.watches.push(self.revision, "MODIFIED", &object);
                    return (200, object);
                }
                let object = self.objects.remove(path).unwrap();
                self.watches.push(self.revision, "DELETED", &object);
                (200, json!({"kind": "Status", "status": "Success", "details": {"uid": object["metadata"]["uid"]}}))
            }
            _ => self.objects.get(path).map_or_else(missing, |object| (200, object.clone())),
        }
    }

    fn create(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let revision = self.bump();
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let full = format!("{path}/{name}");
        let namespace = body["metadata"]["namespace"].as_str().map(|name| format!("/api/v1/namespaces/{name}"));
        if namespace.is_some_and(|namespace| !self.objects.contains_key(&namespace)) {
            return (404, json!({"message": "the namespace does not exist"}));
        }
        if self.objects.contains_key(&full) {
            return (409, json!({"reason": "AlreadyExists", "message": format!("{name} already exists")}));
        }
        let mut object = body.clone();
        object["metadata"]["uid"] = json!(format!("uid-{revision}"));
        object["metadata"]["resourceVersion"] = json!(revision);
        if self.finalizer.is_some() && body["kind"] != "Namespace" {
            object["metadata"]["finalizers"] = json!(["longhaul.dev/cleanup"]);
        }
        self.objects.insert(full, object.clone());
        self.watches.push(self.revision, "ADDED", &object);
        (201, object)
    }

    /// All objects that are no namespaces; finalizers are removed after a number of calls of this function.
    fn list(&mut self) -> Vec<Value> {
        if let Some(steps) = &mut self.finalizer {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let going = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
                let gone: Vec<String> =
                    self.objects.iter().filter(|(_, object)| going(object)).map(|(path, _)| path.clone()).collect();
                for path in gone {
                    let revision = self.bump();
                    let mut object = self.objects.remove(&path).unwrap();
                    object["metadata"]["resourceVersion"] = json!(revision);
                    self.watches.push(self.revision, "DELETED", &object);
                }
            }
        }
        self.objects.values().filter(|object| object["kind"] != "Namespace").cloned().collect()
    }

    /// Makes a call of the API as another client would.
    pub fn call(&mut self, method: &str, path: &str, body: &Value) {
        let (status, answer) = self.apply(method, path, body);
        assert!(status < 300, "{method} {path}: {answer}");
    }

    fn bump(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }
}
