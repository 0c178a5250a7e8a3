//! Requests about single objects, which read an object or write its finalizers.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use service_core::kube::{Client, Error, Write};
use service_watch::{Key, Object};

use crate::meta::Meta;

pub struct Api {
    client: Arc<Client>,
    /// The API path of the objects in all namespaces.
    path: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    Yes,
    /// Another client has written the object since it was read; the watch will deliver that client's change.
    Conflict,
    /// The object does not exist any more.
    Gone,
}

impl Api {
    pub fn new(client: Arc<Client>, path: &str) -> Self {
        Self { client, path: path.to_owned() }
    }

    /// Reads an object; `None` if it does not exist.
    pub async fn read(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        match self.client.read(&self.one(key)).await {
            Ok(body) => Ok(Some(body)),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the finalizers of an object. The write names the version that was read, so that no finalizer of another
    /// client is lost.
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
