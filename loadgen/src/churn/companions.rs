//! Additional objects for churn or a script (`with`), such as a Secret that each namespace needs, or a class that all
//! objects refer to.
//!
//! Creates and removes these objects. An object in a namespace exists before the first churned object there, and is
//! deleted with the namespace. A cluster-wide object is created once, and is removed at the end if it has churn's
//! label.

use std::collections::HashMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::api::Client;
use super::version::LABEL;
use crate::failure::{Class, Failure};

/// The namespace of additional objects that need one although the churned objects are cluster-wide.
const ELSEWHERE: &str = "default";

pub(crate) fn problem(object: &Value) -> Option<String> {
    let has = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if let Some(missing) = ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|pointer| !has(pointer)) {
        return Some(format!("an object has no `{}`: each of them is written whole", missing[1..].replace('/', ".")));
    }
    let labels = object.pointer("/metadata/labels").filter(|labels| !labels.is_object() && !labels.is_null())?;
    Some(format!("`metadata.labels` of an object is `{labels}`: write a map such as `{{app: shop}}`"))
}

/// Creates all additional objects of a namespace; existing objects stay unchanged.
pub(crate) async fn make(
    client: &Client,
    objects: &[Value],
    namespace: Option<&str>,
    tag: &str,
) -> Result<(), Failure> {
    let mut kinds = Kinds::default();
    for object in objects {
        let place = kinds.place(client, object).await?;
        let path = place.collection(namespace.unwrap_or(ELSEWHERE));
        let mut object = object.clone();
        if place.is_namespaced {
            object["metadata"]["namespace"] = json!(namespace.unwrap_or(ELSEWHERE));
        }
        object["metadata"]["labels"][LABEL] = json!(tag);
        if let Some((key, value)) = client.mark() {
            object["metadata"]["labels"][key] = json!(value);
        }
        let reply = client.create(&path, &object).await?;
        if !reply.is(StatusCode::CONFLICT) {
            return Err(reply.failure(&format!("POST {path} (`with`)")));
        }
    }
    Ok(())
}

/// Removes the additional objects that do not disappear with a namespace.
pub(super) async fn remove(client: &Client, objects: &[Value], is_namespaced: bool, tag: &str) -> Result<(), Failure> {
    let mut kinds = Kinds::default();
    for object in objects {
        let place = kinds.place(client, object).await?;
        if place.is_namespaced && is_namespaced {
            continue;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}", place.collection(ELSEWHERE));
        let there: Value = serde_json::from_slice(&client.read(&path).await?.body).unwrap_or_default();
        if there["metadata"]["labels"][LABEL] != tag {
            continue;
        }
        let reply = client.delete(&path).await?;
        if !reply.is(StatusCode::NOT_FOUND) {
            return Err(reply.failure(&format!("DELETE {path} (`with`)")));
        }
    }
    Ok(())
}

/// The API path of the objects of a kind.
#[derive(Debug, Clone)]
struct KindPath {
    root: String,
    plural: String,
    is_namespaced: bool,
}

impl KindPath {
    fn collection(&self, namespace: &str) -> String {
        let Self { root, plural, is_namespaced } = self;
        if *is_namespaced { format!("{root}/namespaces/{namespace}/{plural}") } else { format!("{root}/{plural}") }
    }
}

/// The kinds of the API server, from its discovery.
#[derive(Default)]
struct Kinds(HashMap<String, Value>);

impl Kinds {
    async fn place(&mut self, client: &Client, object: &Value) -> Result<KindPath, Failure> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        if !self.0.contains_key(version) {
            let reply = client.read(&root).await?;
            if !reply.is(StatusCode::NOT_FOUND) {
                return Err(reply.failure(&format!("GET {root} (`with`)")));
            }
            self.0.insert(version.to_owned(), serde_json::from_slice(&reply.body).unwrap_or_default());
        }
        let served = self.0.get(version).and_then(|document| document["resources"].as_array());
        let is_it = |one: &&Value| one["kind"] == kind && one["name"].as_str().is_some_and(|name| !name.contains('/'));
        let Some(found) = served.into_iter().flatten().find(is_it) else {
            let text =
                format!("`with`: nothing serves {kind} of `{version}`: add its definition to `controlPlane.manifests`");
            return Err(Failure { class: Class::HttpError, text });
        };
        let plural = found["name"].as_str().unwrap_or_default().to_owned();
        Ok(KindPath { root, plural, is_namespaced: found["namespaced"] == true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_whole() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}});
        assert_eq!(problem(&secret), None);
        assert!(problem(&json!({"kind": "Secret"})).unwrap().contains("`apiVersion`"));
        let nameless = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}});
        assert!(problem(&nameless).unwrap().contains("`metadata.name`"));
        let labelled = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "labels": "app"}});
        assert!(problem(&labelled).unwrap().starts_with("`metadata.labels` of an object is `\"app\"`"));
    }

    #[test]
    fn a_place_is_below_its_namespace_or_none() {
        let place = KindPath { root: "/api/v1".to_owned(), plural: "secrets".to_owned(), is_namespaced: true };
        assert_eq!(place.collection("n"), "/api/v1/namespaces/n/secrets");
        assert_eq!(KindPath { is_namespaced: false, ..place }.collection("n"), "/api/v1/secrets");
    }
}
