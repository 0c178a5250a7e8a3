//! With `--handler copy`: keeps a `ConfigMap` with the name of each object, like the owned objects of controllers.
//!
//! For one change of an object this module sends a read and then a creation or a replacement of the copy, or a deletion
//! if the object is gone. This module does not repeat failed requests; its caller does.

use serde_json::{Value, json};

use super::finished;
use crate::args::Scope;
use crate::object::Object;
use crate::store::Change;
use crate::wire::{Ask, Trouble, Wire};

/// The namespace of the copies of cluster-wide objects.
const NAMESPACE: &str = "default";

/// Creates, replaces or deletes the copy of an object.
pub async fn keep(wire: &Wire, scope: &Scope, object: &Object, change: Change) -> Result<(), Trouble> {
    let namespace = if object.namespace.is_empty() { NAMESPACE } else { &*object.namespace };
    let all = format!("/api/v1/namespaces/{namespace}/configmaps");
    // The resource comes first, so that two kinds with one name do not share a copy.
    let name = format!("{}.{}", scope.resource, object.name);
    let path = format!("{all}/{name}");
    if change == Change::Deleted {
        return finished(wire.send(&Ask::delete(path)).await?).await.map(drop);
    }
    let present = finished(wire.send(&Ask::get(path.clone())).await?).await;
    let mut copy = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"uid": &*object.uid, "resourceVersion": object.revision.as_str()},
    });
    let ask = match present {
        Ok(bytes) => {
            let present: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            copy["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"].clone();
            Ask::object(path, &copy, true)
        }
        Err(trouble) if trouble.code() == Some(404) => Ask::object(all, &copy, false),
        Err(trouble) => return Err(trouble),
    };
    finished(wire.send(&ask).await?).await.map(drop)
}
