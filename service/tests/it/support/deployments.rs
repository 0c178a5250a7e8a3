//! A small API server for Deployments: list, watch, the scale subresource, patches with conflicts, and queued faults.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::watches::{Fault, Log, open, page, pairs};
use super::{Body, Server, status};

/// A fault of the next write, or of the next read of a scale.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// The request gets this HTTP status and message.
    Status(u16, &'static str),
    /// Another client writes this replica count just before the write.
    Overtaken(i64),
    /// The write is never answered.
    Swallow,
}

#[derive(Default)]
pub struct World {
    pub version: u64,
    pub objects: BTreeMap<String, Value>,
    log: Vec<(u64, String)>,
    pub watch_faults: VecDeque<Fault>,
    pub list_failures: VecDeque<u16>,
    pub trouble: VecDeque<Trouble>,
    /// Method, path and query of every received request.
    pub requests: Vec<String>,
    /// Delay before each event of a watch is sent.
    pub lag: Duration,
    /// Whether the server answers no request.
    pub is_down: bool,
}

pub struct Deployments {
    pub world: Arc<Mutex<World>>,
    moved: watch::Sender<u64>,
    server: Server,
}

impl World {
    fn commit(&mut self, kind: &str, key: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.log.push((self.version, json!({"type": kind, "object": object}).to_string()));
        if kind == "DELETED" {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.to_owned(), object.clone());
        }
        object
    }

    /// The number of requests that contain `part`.
    pub fn count(&self, part: &str) -> usize {
        self.requests.iter().filter(|request| request.contains(part)).count()
    }

    pub fn replicas(&self, key: &str) -> i64 {
        self.objects[key]["spec"]["replicas"].as_i64().unwrap_or(1)
    }
}

impl Deployments {
    pub async fn start() -> Self {
        let world = Arc::new(Mutex::new(World { version: 100, ..World::default() }));
        let moved = watch::Sender::new(100);
        let (shared, sender) = (Arc::clone(&world), moved.clone());
        let handler = Arc::new(move |request| answer(Arc::clone(&shared), sender.clone(), request).boxed());
        let server = Server::start(false, handler).await;
        Self { world, moved, server }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Creates the Deployment `NAMESPACE/NAME` with this many replicas; `None` leaves `spec.replicas` out.
    pub fn create(&self, key: &str, replicas: Option<i64>) {
        let (namespace, name) = key.split_once('/').unwrap();
        let mut spec = json!({"template": {"spec": {
            "containers": [{"name": "main", "image": "r.test/app:1"}, {"name": "side", "image": "r.test/side:1"}],
        }}});
        if let Some(replicas) = replicas {
            spec["replicas"] = replicas.into();
        }
        let mut world = self.world.lock();
        let uid = format!("uid-{key}-{}", world.version);
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name, "uid": uid, "managedFields": [{"manager": "x"}]}, "spec": spec,
        });
        world.commit("ADDED", key, object);
        drop(world);
        self.wake();
    }

    /// Writes a replica count as another client would.
    pub fn scale(&self, key: &str, replicas: i64) {
        scale(&mut self.world.lock(), key, replicas);
        self.wake();
    }

    pub fn delete(&self, key: &str) {
        let mut world = self.world.lock();
        let object = world.objects[key].clone();
        world.commit("DELETED", key, object);
        drop(world);
        self.wake();
    }

    pub fn trouble(&self, trouble: Trouble) {
        self.world.lock().trouble.push_back(trouble);
    }

    pub fn wake(&self) {
        self.moved.send_modify(|_| {});
    }
}

fn scale(world: &mut World, key: &str, replicas: i64) {
    let mut object = world.objects[key].clone();
    object["spec"]["replicas"] = replicas.into();
    world.commit("MODIFIED", key, object);
}

async fn answer(world: Arc<Mutex<World>>, moved: watch::Sender<u64>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path().to_owned();
    let query = pairs(head.uri.query());
    let is_down = {
        let mut world = world.lock();
        world.requests.push(format!("{} {}", head.method, head.uri));
        world.is_down
    };
    if is_down {
        return status(503, "{}");
    }
    assert_eq!(head.headers["authorization"], "Bearer secret");
    if query.contains_key("watch") {
        let (from, fault) = (query["resourceVersion"].parse().unwrap(), world.lock().watch_faults.pop_front());
        return open(world, &moved, from, fault).await;
    }
    if path == "/apis/apps/v1/deployments" {
        return list(&mut world.lock(), &query);
    }
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let media_type = head.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let trouble = if head.method == "GET" { None } else { world.lock().trouble.pop_front() };
    let key = key(&path);
    match trouble {
        Some(Trouble::Swallow) => std::future::pending().await,
        Some(Trouble::Status(code, message)) => return status(code, &json!({"message": message}).to_string()),
        Some(Trouble::Overtaken(replicas)) => scale(&mut world.lock(), &key, replicas),
        None => {}
    }
    let dry_run = query.contains_key("dryRun");
    let answer = object(&mut world.lock(), (head.method.as_str(), media_type), &path, &key, dry_run, &value);
    moved.send_modify(|_| {});
    answer
}

/// `NAMESPACE/NAME` from a path.
fn key(path: &str) -> String {
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        ["", "apis", "apps", "v1", "namespaces", namespace, "deployments", name, ..] => format!("{namespace}/{name}"),
        _ => panic!("not a path of this server: {path}"),
    }
}

fn list(world: &mut World, query: &BTreeMap<String, String>) -> Response<Body> {
    if let Some(code) = world.list_failures.pop_front() {
        return status(code, "");
    }
    let (items, token) = page(&world.objects, query);
    let meta = json!({"resourceVersion": world.version.to_string(), "continue": token});
    status(200, &json!({"kind": "DeploymentList", "metadata": meta, "items": items}).to_string())
}

fn object(
    world: &mut World,
    (method, media_type): (&str, &str),
    path: &str,
    key: &str,
    dry_run: bool,
    body: &Value,
) -> Response<Body> {
    let Some(known) = world.objects.get(key).cloned() else {
        return status(404, &json!({"message": "deployments.apps not found"}).to_string());
    };
    let is_scale = path.ends_with("/scale");
    let shown = |object: &Value| {
        let scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": object["metadata"],
            "spec": {"replicas": object["spec"]["replicas"]},
        });
        status(200, &if is_scale { scale } else { object.clone() }.to_string())
    };
    if method == "GET" {
        return shown(&known);
    }
    let version = &body["metadata"]["resourceVersion"];
    if !version.is_null() && *version != known["metadata"]["resourceVersion"] {
        return status(409, &json!({"message": "the object has been modified"}).to_string());
    }
    let mut fresh = known;
    match (method, media_type, is_scale) {
        ("PUT", "application/json", true) => fresh["spec"]["replicas"] = body["spec"]["replicas"].clone(),
        ("PATCH", "application/strategic-merge-patch+json", false) => {
            let pod = &body["spec"]["template"]["spec"];
            for list in ["containers", "initContainers"] {
                for patch in pod[list].as_array().into_iter().flatten() {
                    let containers = fresh["spec"]["template"]["spec"][list].as_array_mut().unwrap();
                    let container = containers.iter_mut().find(|one| one["name"] == patch["name"]).unwrap();
                    container["image"] = patch["image"].clone();
                }
            }
        }
        other => panic!("a write that this server does not know: {other:?}"),
    }
    if dry_run {
        return shown(&fresh);
    }
    shown(&world.commit("MODIFIED", key, fresh))
}

impl Log for Arc<Mutex<World>> {
    fn pending(&self, from: u64) -> Vec<(u64, String)> {
        self.lock().log.iter().filter(|(version, _)| *version > from).cloned().collect()
    }

    fn lag(&self) -> Duration {
        self.lock().lag
    }

    fn is_down(&self) -> bool {
        self.lock().is_down
    }
}
