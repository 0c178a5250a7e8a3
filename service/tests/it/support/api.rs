//! A small API server: packages with list, watch, merge patch and finalizers, network policies, events, and queued
//! faults for the next watch or list.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use super::watches::Fault;
use super::watches::{Log, open, page, pairs};
use super::{Body, Server, status};

#[derive(Default)]
pub struct World {
    pub version: u64,
    uids: u64,
    pub packages: BTreeMap<String, Value>,
    /// Every change of an object: its version, whether the object is a package, and the event.
    log: Vec<(u64, bool, String)>,
    pub policies: BTreeMap<String, Value>,
    pub events: Vec<Value>,
    pub watch_faults: VecDeque<Fault>,
    pub list_failures: VecDeque<u16>,
    /// HTTP statuses with which the next writes to network policies fail.
    pub policy_failures: VecDeque<u16>,
    /// The only Lease, and statuses with which the next writes to it fail.
    pub lease: Value,
    pub lease_failures: VecDeque<u16>,
    /// Objects of the core group and of `apps` by path. If a number stands in place of an object, requests for the
    /// object get this status.
    pub core: BTreeMap<String, Value>,
    pub requests: Vec<(Instant, String)>,
    pub witnessed: Vec<Value>,
    /// The number of further posts of observations that get status 500.
    pub witness_failures: usize,
}

pub struct Api {
    pub world: Arc<Mutex<World>>,
    moved: watch::Sender<u64>,
    pub server: Server,
    /// The receiver of observations, which uses HTTP/1.1 even if the API server uses HTTP/2.
    witness: Server,
}

impl World {
    /// Stores the package `object` with a new version and returns it.
    fn commit(&mut self, kind: &str, key: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.log.push((self.version, true, json!({"type": kind, "object": object}).to_string()));
        if kind == "DELETED" {
            self.packages.remove(key);
        } else {
            self.packages.insert(key.to_owned(), object.clone());
        }
        object
    }

    /// Stores the network policy `object` with a new version and returns it.
    fn commit_policy(&mut self, kind: &str, mut object: Value) -> Value {
        self.version += 1;
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if kind == "ADDED" {
            self.uids += 1;
            object["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        }
        self.log.push((self.version, false, json!({"type": kind, "object": object}).to_string()));
        if kind == "DELETED" {
            self.policies.remove(&name);
        } else {
            self.policies.insert(name, object.clone());
        }
        object
    }

    fn list(&self, query: &BTreeMap<String, String>) -> Value {
        let (items, token) = page(&self.packages, query);
        json!({"kind": "PackageList", "metadata": {"resourceVersion": self.version.to_string(), "continue": token}, "items": items})
    }

    /// The number of requests whose method and path contain `part`.
    pub fn count(&self, part: &str) -> usize {
        self.requests.iter().filter(|(_, request)| request.contains(part)).count()
    }
}

impl Api {
    pub async fn start(http2: bool) -> Self {
        let world = Arc::new(Mutex::new(World { version: 100, ..World::default() }));
        let moved = watch::Sender::new(100);
        let (shared, sender) = (Arc::clone(&world), moved.clone());
        let (for_witness, witness_sender) = (Arc::clone(&world), moved.clone());
        let witness = Server::start(
            false,
            Arc::new(move |request| answer(Arc::clone(&for_witness), witness_sender.clone(), request).boxed()),
        )
        .await;
        let server =
            Server::start(http2, Arc::new(move |request| answer(Arc::clone(&shared), sender.clone(), request).boxed()))
                .await;
        Self { world, moved, server, witness }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The URL that receives observations.
    pub fn witness_url(&self) -> String {
        format!("http://{}/witness", self.witness.address)
    }

    pub fn create(&self, name: &str, ports: &[u16]) {
        let allow: Vec<_> = ports.iter().map(|port| json!({"direction": "Egress", "port": port})).collect();
        let mut world = self.world.lock();
        world.uids += 1;
        let uid = format!("uid-{}", world.uids);
        let object = json!({
            "apiVersion": "longhaul.dev/v1alpha1", "kind": "Package",
            "metadata": {"namespace": "n", "name": name, "uid": uid, "generation": 1, "managedFields": [{"manager": "x"}]},
            "spec": {"network": {"allow": allow}},
        });
        world.commit("ADDED", name, object);
        drop(world);
        self.wake();
    }

    /// Changes the ports in a package's spec, which gives a new generation.
    pub fn update(&self, name: &str, ports: &[u16]) {
        let allow: Vec<_> = ports.iter().map(|port| json!({"direction": "Egress", "port": port})).collect();
        let mut world = self.world.lock();
        let mut object = world.packages[name].clone();
        object["metadata"]["generation"] = (object["metadata"]["generation"].as_i64().unwrap() + 1).into();
        object["spec"]["network"]["allow"] = allow.into();
        world.commit("MODIFIED", name, object);
        drop(world);
        self.wake();
    }

    /// Writes a package's spec that a CRD schema would refuse.
    pub fn break_spec(&self, name: &str) {
        self.edit(name, |object| {
            object["metadata"]["generation"] = (object["metadata"]["generation"].as_i64().unwrap() + 1).into();
            object["spec"]["network"]["allow"] = "everything".into();
        });
    }

    /// Changes a package as another client would.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut world = self.world.lock();
        let mut object = world.packages[name].clone();
        edit(&mut object);
        world.commit("MODIFIED", name, object);
        drop(world);
        self.wake();
    }

    /// Deletes a package like `kubectl delete`: if it has finalizers, it stays with a deletion time.
    pub fn delete(&self, name: &str) {
        let mut world = self.world.lock();
        let mut object = world.packages[name].clone();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if held {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        world.commit(if held { "MODIFIED" } else { "DELETED" }, name, object);
        drop(world);
        self.wake();
    }

    /// Creates, changes or deletes (`null`) a policy as another client would.
    pub fn put_policy(&self, name: &str, object: Value) {
        let mut world = self.world.lock();
        let known = world.policies.get(name).cloned();
        match (known, object) {
            (Some(known), Value::Null) => drop(world.commit_policy("DELETED", known)),
            (None, Value::Null) => panic!("there is no policy {name}"),
            (Some(_), object) => drop(world.commit_policy("MODIFIED", object)),
            (None, mut object) => {
                object["metadata"]["name"] = name.into();
                drop(world.commit_policy("ADDED", object));
            }
        }
        drop(world);
        self.wake();
    }

    pub fn fault(&self, fault: Fault) {
        self.world.lock().watch_faults.push_back(fault);
    }

    /// The checksum of all packages that the service should report.
    pub fn checksum(&self) -> String {
        use sha2::Digest as _;
        let world = self.world.lock();
        let meta = |object: &Value, key: &str| object["metadata"][key].as_str().unwrap().to_owned();
        let mut lines: Vec<_> = world
            .packages
            .values()
            .map(|object| format!("{} {}\n", meta(object, "uid"), meta(object, "resourceVersion")))
            .collect();
        lines.sort();
        hex::encode(sha2::Sha256::digest(lines.concat()))
    }

    fn wake(&self) {
        self.moved.send_modify(|_| {});
    }
}

async fn answer(world: Arc<Mutex<World>>, moved: watch::Sender<u64>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path().to_owned();
    let query = pairs(head.uri.query());
    world.lock().requests.push((
        Instant::now(),
        format!("{} {path}{}", head.method, if query.contains_key("watch") { "?watch" } else { "" }),
    ));
    if path == "/witness" {
        let mut world = world.lock();
        if world.witness_failures > 0 {
            world.witness_failures -= 1;
            return status(500, "");
        }
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        world.witnessed.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        return status(200, "");
    }
    assert_eq!(head.headers["authorization"], "Bearer secret");
    if query.contains_key("watch") {
        // Lists by a watch are not supported, as in an older server.
        let Some(from) = query.get("resourceVersion") else { return status(400, "{}") };
        let packages = path.ends_with("/packages");
        // Faults are for the watch of packages.
        let fault = if packages { world.lock().watch_faults.pop_front() } else { None };
        return open(Watched { world, packages }, &moved, from.parse().unwrap(), fault).await;
    }
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = write(&mut world.lock(), &head.method, &path, &query, &value);
    moved.send_modify(|_| {});
    answer
}

/// The log of changes of packages or of network policies.
struct Watched {
    world: Arc<Mutex<World>>,
    packages: bool,
}

impl Log for Watched {
    fn pending(&self, from: u64) -> Vec<(u64, String)> {
        let world = self.world.lock();
        let new = world.log.iter().filter(|(version, of_package, _)| *version > from && *of_package == self.packages);
        new.map(|(version, _, line)| (*version, line.clone())).collect()
    }
}

fn write(
    world: &mut World,
    method: &Method,
    path: &str,
    query: &BTreeMap<String, String>,
    body: &Value,
) -> Response<Body> {
    let name = path.rsplit('/').next().unwrap();
    let ok = |value: &Value| status(200, &value.to_string());
    match (method.as_str(), path) {
        ("GET", "/apis/longhaul.dev/v1alpha1/packages") => match world.list_failures.pop_front() {
            Some(code) => status(code, ""),
            None => ok(&world.list(query)),
        },
        ("GET", path) if path.starts_with("/api/v1/") || path.starts_with("/apis/apps/v1/") => {
            match world.core.get(path) {
                None => status(404, "{}"),
                Some(Value::Number(code)) => status(u16::try_from(code.as_u64().unwrap()).unwrap(), "{}"),
                Some(object) => ok(object),
            }
        }
        ("POST", path) if path.ends_with("/events") => {
            world.events.push(body.clone());
            status(201, "{}")
        }
        ("GET" | "PATCH", path) if path.contains("/mutatingwebhookconfigurations/") => {
            registered(world, method, path, body)
        }
        ("GET", path) if path.ends_with("-calls") => ok(&world.core[path]),
        ("PATCH", path) if path.contains("/secrets/") || path.ends_with("-calls") => merged(world, path, body),
        (method, path) if path.contains("/leases") => lease(world, method, body),
        (method, path) if path.contains("/networkpolicies") => policies(world, method, name, query, body),
        (method, path) if path.contains("/packages/") => {
            let is_status = path.ends_with("/status");
            let name = if is_status { path.rsplit('/').nth(1).unwrap() } else { name };
            let Some(mut object) = world.packages.get(name).cloned() else { return status(404, "{}") };
            if method == "GET" {
                return ok(&object);
            }
            let meta = &body["metadata"];
            let conflict = |key: &str| meta.get(key).is_some_and(|value| *value != object["metadata"][key]);
            if conflict("uid") || conflict("resourceVersion") {
                return status(409, "{}");
            }
            if is_status {
                json_patch::merge(&mut object["status"], &body["status"]);
            } else {
                json_patch::merge(&mut object, body);
            }
            let gone =
                object["metadata"].get("deletionTimestamp").is_some() && object["metadata"]["finalizers"] == json!([]);
            ok(&world.commit(if gone { "DELETED" } else { "MODIFIED" }, name, object))
        }
        _ => status(404, "{}"),
    }
}

/// Answers a request for a webhook configuration; a patch is a server-side apply of webhooks by name.
fn registered(world: &mut World, method: &Method, path: &str, body: &Value) -> Response<Body> {
    let Some(object) = world.core.get_mut(path) else { return status(404, "{}") };
    if method == Method::PATCH {
        for applied in body["webhooks"].as_array().unwrap() {
            let entries = object["webhooks"].as_array_mut().unwrap();
            let entry = entries.iter_mut().find(|entry| entry["name"] == applied["name"]).unwrap();
            json_patch::merge(entry, applied);
        }
    }
    status(200, &object.to_string())
}

/// Applies a merge patch to an object of the core group if the object has the version that the patch names.
fn merged(world: &mut World, path: &str, body: &Value) -> Response<Body> {
    world.version += 1;
    let version = world.version.to_string();
    let Some(object) = world.core.get_mut(path) else { return status(404, "{}") };
    let asked = &body["metadata"]["resourceVersion"];
    if !asked.is_null() && object["metadata"]["resourceVersion"] != *asked {
        return status(409, "{}");
    }
    json_patch::merge(object, body);
    object["metadata"]["resourceVersion"] = version.into();
    status(200, &object.to_string())
}

fn lease(world: &mut World, method: &str, body: &Value) -> Response<Body> {
    if method == "GET" {
        return if world.lease.is_null() { status(404, "{}") } else { status(200, &world.lease.to_string()) };
    }
    if let Some(code) = world.lease_failures.pop_front() {
        return status(code, "{}");
    }
    if method == "POST" && world.lease.is_null() {
        world.lease = body.clone();
    } else if method == "PATCH" && body["metadata"]["resourceVersion"] == world.lease["metadata"]["resourceVersion"] {
        json_patch::merge(&mut world.lease, body);
    } else {
        return status(409, "{}");
    }
    world.version += 1;
    world.lease["metadata"]["resourceVersion"] = world.version.to_string().into();
    status(200, &world.lease.to_string())
}

fn policies(
    world: &mut World,
    method: &str,
    name: &str,
    query: &BTreeMap<String, String>,
    body: &Value,
) -> Response<Body> {
    let failure = if method == "GET" { None } else { world.policy_failures.pop_front() };
    match (method, failure) {
        (_, Some(code)) => status(code, "{}"),
        ("GET", None) if name == "networkpolicies" => {
            let uid = query["labelSelector"].split("%3D").nth(1).unwrap_or_default();
            // The watch of all namespaces selects by the presence of a label, the reconciler by its value.
            let all = query["labelSelector"].ends_with("uid");
            let label = |policy: &Value| policy["metadata"]["labels"]["longhaul.dev/package-uid"].clone();
            let of = |policy: &&Value| if all { label(policy).is_string() } else { label(policy) == uid };
            let items: Vec<_> = world.policies.values().filter(of).cloned().collect();
            let version = world.version.to_string();
            status(200, &json!({"metadata": {"resourceVersion": version}, "items": items}).to_string())
        }
        ("POST", None) => {
            if world.policies.contains_key(body["metadata"]["name"].as_str().unwrap()) {
                return status(409, "{}");
            }
            status(201, &world.commit_policy("ADDED", body.clone()).to_string())
        }
        (method, None) => {
            let Some(mut known) = world.policies.get(name).cloned() else { return status(404, "{}") };
            let uid = &body["preconditions"]["uid"];
            let version = &body["metadata"]["resourceVersion"];
            let conflict = |asked: &Value, key: &str| !asked.is_null() && *asked != known["metadata"][key];
            if conflict(uid, "uid") || conflict(version, "resourceVersion") {
                return status(409, "{}");
            }
            match method {
                "GET" => status(200, &known.to_string()),
                "DELETE" => status(200, &world.commit_policy("DELETED", known).to_string()),
                _ => {
                    json_patch::merge(&mut known, body);
                    status(200, &world.commit_policy("MODIFIED", known).to_string())
                }
            }
        }
    }
}
