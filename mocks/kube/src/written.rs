//! The writes of clients, for faults that wait for a write and for the log of writes.
//!
//! Owns which fields a request changes. The fields come from the request and the stored object, so that they are known
//! before the request is carried out. The answer of the request is unaffected.

use bytes::Bytes;
use mock_faults::{On, Side, Wrote};
use mock_objects::patch::Patch;
use serde_json::{Map, Value};

use super::audit::Written;
use super::call::Call;
use super::cluster::Cluster;
use super::payload::Payload;
use super::verbs;

/// Maximum number of fields of one write.
const FIELDS_MAX: usize = 64;
/// Fields of the metadata that the server sets, or that no write changes.
const OF_SERVER: [&str; 8] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink", "name", "namespace"];

/// A write that is under way.
#[derive(Debug)]
pub(crate) struct Write(Written);

impl Write {
    /// The write in a request, if a fault or the log of writes needs it. Reads the body of the request.
    pub async fn of(call: &Call, body: &mut Payload) -> Option<Self> {
        let cluster = call.cluster();
        let asked = call.facts();
        let writes = matches!(asked.on, On::Create | On::Update | On::Patch | On::Delete);
        let is_needed = cluster.faults.awaits_writes() || cluster.audit.writes.follows();
        if !writes
            || !is_needed
            || call.query.dry_run
            || call.resource.virtual_only
            || !cluster.faults.touches(asked.user)
        {
            return None;
        }
        let taken = std::mem::replace(body, Payload::Read(Ok(Bytes::new())));
        let read = verbs::read_body(&call.app.limits, taken).await;
        let bytes = read.as_ref().cloned().unwrap_or_default();
        *body = Payload::Read(read.map_err(Box::new));
        let (name, fields) = changes(call, asked.on, &bytes);
        Some(Self(Written {
            at_us: cluster.now_us(),
            user: asked.user.clone(),
            user_agent: asked.user_agent.clone(),
            verb: asked.on,
            resource: asked.resource.clone(),
            subresource: call.target.subresource.clone().unwrap_or_default(),
            namespace: call.namespace().to_owned(),
            name,
            fields,
            status: 0,
        }))
    }

    /// Begins the faults that wait for this side of the write.
    pub async fn reaches(&self, cluster: &Cluster, side: Side) {
        let Written { user, user_agent, verb, resource, subresource, name, fields, .. } = &self.0;
        let wrote = Wrote { user, user_agent, verb: *verb, resource, subresource, name, fields };
        cluster.faults.written(&wrote, side).await;
    }

    /// Records the result of the write. If the write was stored, begins the faults that wait for that.
    pub async fn ended(mut self, cluster: &Cluster, status: u16) {
        self.0.status = status;
        if (200..300).contains(&status) {
            self.reaches(cluster, Side::After).await;
        }
        cluster.audit.writes.push(self.0);
    }
}

/// The name of the object that a request writes, and the fields that the request changes.
fn changes(call: &Call, verb: On, bytes: &Bytes) -> (String, Vec<String>) {
    let name = call.target.name.clone().unwrap_or_default();
    let json = |bytes: &Bytes| verbs::decode(&call.content_type, bytes).unwrap_or_default();
    if verb == On::Create {
        let made = json(bytes)["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        return (if name.is_empty() { made } else { name }, Vec::new());
    }
    let stored = call.cluster().get(&call.resource, call.namespace(), &name);
    let Some(old) = stored.filter(|_| verb != On::Delete).map(|version| version.value()) else {
        return (name, Vec::new());
    };
    let mut fields = Vec::new();
    if verb == On::Update {
        let new = json(bytes);
        let (is_status, has_status) = (call.target.subresource.as_deref() == Some("status"), call.served().status);
        let sections = |key: &str| match key {
            "apiVersion" | "kind" => false,
            "status" => is_status || !has_status,
            _ => !is_status,
        };
        differ(&only(&old, sections), &only(&new, sections), String::new(), &mut fields);
    } else {
        match Patch::decode(&call.content_type, bytes, !call.resource.custom) {
            Ok((Patch::Json(operations), _)) => fields = paths(&serde_json::to_value(operations).unwrap_or_default()),
            Ok((Patch::Merge(patch) | Patch::Strategic(patch) | Patch::Apply(patch), _)) => {
                let patch = only(&patch, |key| !matches!(key, "apiVersion" | "kind"));
                sets(&old, &patch, String::new(), &mut fields);
            }
            Err(_) => {}
        }
    }
    fields.sort_unstable();
    fields.dedup();
    fields.truncate(FIELDS_MAX);
    (name, fields)
}

/// An object with some of its keys, and without the metadata of the server.
fn only(object: &Value, mut keeps: impl FnMut(&str) -> bool) -> Value {
    let mut kept: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    kept.retain(|key, _| keeps(key));
    if let Some(Value::Object(metadata)) = kept.get_mut("metadata") {
        metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
    }
    Value::Object(kept)
}

/// The paths at which two objects differ. A list is one value.
fn differ(old: &Value, new: &Value, path: String, fields: &mut Vec<String>) {
    let none = Map::new();
    match (old, new) {
        _ if old == new || (is_empty(old) && is_empty(new)) => {}
        (Value::Object(_), Value::Object(_) | Value::Null) | (Value::Null, Value::Object(_)) => {
            let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            for key in keys {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                differ(&of(old), &of(new), below(&path, key), fields);
            }
        }
        _ => fields.push(path),
    }
}

/// The paths at which a patch sets another value than the stored one.
fn sets(old: &Value, patch: &Value, path: String, fields: &mut Vec<String>) {
    match patch {
        Value::Object(keys) if !path.is_empty() || !keys.is_empty() => {
            for (key, value) in keys.iter().filter(|(key, _)| !key.starts_with('$')) {
                sets(&old[key], value, below(&path, key), fields);
            }
        }
        _ if old == patch || (is_empty(old) && is_empty(patch)) => {}
        _ => fields.push(path),
    }
}

/// The paths of a JSON patch, each up to the first index of a list.
fn paths(operations: &Value) -> Vec<String> {
    let is_index = |part: &&str| *part == "-" || part.bytes().all(|byte| byte.is_ascii_digit());
    let writes = operations.as_array().into_iter().flatten().filter(|operation| operation["op"] != "test");
    let dotted = |operation: &Value| {
        let path = operation["path"].as_str().unwrap_or_default();
        let parts = path.split('/').skip(1).take_while(|part| !is_index(part));
        parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
    };
    writes.map(dotted).filter(|path| !path.is_empty()).collect()
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Whether a value means the same as an absent field.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(keys) => keys.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_paths_of_fields() {
        let old = json!({"spec": {"replicas": 1, "list": [1], "empty": {}}, "metadata": {"labels": {"a": "b"}}});
        let new = json!({"spec": {"replicas": 2, "list": [1, 2]}, "metadata": {"labels": {"a": "b", "c": "d"}}});
        let mut fields = Vec::new();
        differ(&old, &new, String::new(), &mut fields);
        fields.sort();
        assert_eq!(fields, ["metadata.labels.c", "spec.list", "spec.replicas"]);
        let mut fields = Vec::new();
        differ(&new, &old, String::new(), &mut fields);
        fields.sort();
        assert_eq!(fields, ["metadata.labels.c", "spec.list", "spec.replicas"]);
    }

    #[test]
    fn a_patch_changes_what_it_sets_anew() {
        let old = json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"finalizers": ["x"]}});
        let patch =
            json!({"spec": {"replicas": 1, "paused": null}, "metadata": {"finalizers": [], "labels": {"a": "b"}}});
        let mut fields = Vec::new();
        sets(&old, &patch, String::new(), &mut fields);
        assert_eq!(fields, ["metadata.finalizers", "metadata.labels.a", "spec.paused"]);
        let operations = json!([
            {"op": "test", "path": "/spec/x", "value": 1},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "y"},
            {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "c"},
        ]);
        assert_eq!(paths(&operations), ["metadata.finalizers", "metadata.annotations.a/b"]);
    }

    #[test]
    fn the_server_s_own_metadata_is_no_change() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {}}, "status": {"a": 1}});
        let kept = only(&old, |key| key != "status");
        assert_eq!(kept, json!({"metadata": {"labels": {}}}));
    }
}
