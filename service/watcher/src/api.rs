//! The few requests about single objects: the whole of one, and its finalizers.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use service_core::kube::{Client, Error, Write};
use service_watch::{Key, Object};

use crate::meta::Meta;

/// The objects of a resource.
pub struct Api {
    client: Arc<Client>,
    /// Where the objects of all namespaces are.
    path: String,
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done.
    Yes,
    /// Somebody wrote in between; the watch brings what.
    Conflict,
    /// There is no such object any more.
    Gone,
}

impl Api {
    /// The objects at `path`.
    pub fn new(client: Arc<Client>, path: &str) -> Self {
        Self { client, path: path.to_owned() }
    }

    /// The object as it is now; nothing when there is none.
    pub async fn read(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        match self.client.read(&self.one(key)).await {
            Ok(body) => Ok(Some(body)),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the list of finalizers. It names the version that it is based on, so that nobody else's finalizer is lost.
    pub async fn finalizers(&self, object: &Object<Meta>, finalizers: &[Box<str>]) -> Result<Written, Error> {
        let meta = json!({"uid": &*object.uid, "resourceVersion": &*object.version, "finalizers": finalizers});
        match self.client.write(Write::Merge, &self.one(&object.key), &json!({"metadata": meta})).await {
            Ok(_) => Ok(Written::Yes),
            Err(error) => match error.status() {
                Some(StatusCode::CONFLICT) => Ok(Written::Conflict),
                Some(StatusCode::NOT_FOUND) => Ok(Written::Gone),
                _ => Err(error),
            },
        }
    }

    fn one(&self, key: &Key) -> String {
        if key.namespace.is_empty() {
            return format!("{}/{}", self.path, key.name);
        }
        let (base, plural) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        format!("{base}/namespaces/{}/{plural}/{}", key.namespace, key.name)
    }
}
