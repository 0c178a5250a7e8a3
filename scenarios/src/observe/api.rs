//! The observer's own requests to the mock API server: creates, reads, changes and deletes objects.

use std::collections::HashMap;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use hyper::Method;
use serde_json::Value;

use crate::run::Api as Plain;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// A client of the mock API server with all rights.
pub(super) struct Api {
    url: String,
    ca_pem: String,
    token: String,
    /// Plural, and whether the kind is namespaced, by `apiVersion` and kind.
    kinds: Mutex<HashMap<(String, String), (String, bool)>>,
}

/// The object, or the server's message if it refused the request.
pub(super) type Answer = std::result::Result<Value, String>;

impl Api {
    pub(super) fn new(url: String, ca_pem: String, token: String) -> Self {
        Self { url, ca_pem, token, kinds: Mutex::default() }
    }

    /// Creates an object, in this namespace if its kind is namespaced. With `is_dry`, sends only a dry run.
    pub(super) async fn create(&self, object: &Value, namespace: Option<&str>, is_dry: bool) -> Result<Answer> {
        let Some((path, is_namespaced)) = self.collection(object, namespace).await? else {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            return Ok(Err(format!("nothing serves {} of {}", text("kind"), text("apiVersion"))));
        };
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            match namespace.filter(|_| is_namespaced) {
                Some(namespace) => metadata.insert("namespace".to_owned(), namespace.into()),
                None => metadata.remove("namespace"),
            };
        }
        let dry = if is_dry { "?dryRun=All" } else { "" };
        self.ask(Method::POST, &format!("{path}{dry}"), object.to_string(), JSON).await
    }

    /// The same client, in the type that the churn's watches need.
    pub(super) fn churn(&self) -> loadgen::churn::Api {
        let (url, ca_pem, token) = (self.url.clone(), self.ca_pem.clone(), self.token.clone());
        loadgen::churn::Api { url, ca_pem, token, mark: None }
    }

    /// The CA that signs all certificates of the observation, as PEM.
    pub(super) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The HTTP status with which a webhook answers a review; `None` without an answer over TLS with a valid certificate.
    pub(super) async fn review(&self, url: &str, path: &str, review: &Value) -> Option<u16> {
        let plain = Plain { url, ca_pem: &self.ca_pem, token: "", mark: None };
        let answer = plain.ask_as(Method::POST, path, review.to_string(), JSON, JSON).await;
        answer.ok().map(|(status, _)| status.as_u16())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(Method::GET, path, String::new(), JSON).await
    }

    pub(super) async fn patch(&self, path: &str, patch: &Value, is_dry: bool) -> Result<Answer> {
        let dry = if is_dry { "?dryRun=All" } else { "" };
        self.ask(Method::PATCH, &format!("{path}{dry}"), patch.to_string(), MERGE).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Answer> {
        self.ask(Method::DELETE, path, String::new(), JSON).await
    }

    /// The API path of an object; `None` if the server does not serve its kind.
    pub(super) async fn path(&self, object: &Value) -> Result<Option<String>> {
        let namespace = object["metadata"]["namespace"].as_str();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Ok(self.collection(object, namespace).await?.map(|(path, _)| format!("{path}/{name}")))
    }

    /// The API path of an object of a resource (`plural.group`), found by discovery of the group.
    pub(super) async fn path_of(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Option<String>> {
        let root = match resource.split_once('.') {
            None => "/api/v1".to_owned(),
            Some((_, group)) => {
                let Ok(found) = self.get(&format!("/apis/{group}")).await? else { return Ok(None) };
                let version = found["preferredVersion"]["groupVersion"].as_str().unwrap_or_default().to_owned();
                format!("/apis/{version}")
            }
        };
        let plural = resource.split('.').next().unwrap_or(resource);
        Ok(Some(match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
            None => format!("{root}/{plural}/{name}"),
        }))
    }

    async fn collection(&self, object: &Value, namespace: Option<&str>) -> Result<Option<(String, bool)>> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let known = |of: &(String, String)| self.kinds.lock().ok().and_then(|kinds| kinds.get(of).cloned());
        let of = (version.clone(), kind);
        if known(&of).is_none() {
            let Ok(document) = self.get(&root).await? else { return Ok(None) };
            for one in document["resources"].as_array().into_iter().flatten() {
                let (Some(name), Some(kind)) = (one["name"].as_str(), one["kind"].as_str()) else { continue };
                if !name.contains('/')
                    && let Ok(mut kinds) = self.kinds.lock()
                {
                    kinds.insert((version.clone(), kind.to_owned()), (name.to_owned(), one["namespaced"] == true));
                }
            }
        }
        Ok(known(&of).map(|(plural, is_namespaced)| match namespace.filter(|_| is_namespaced) {
            Some(namespace) => (format!("{root}/namespaces/{namespace}/{plural}"), true),
            None if is_namespaced => (format!("{root}/namespaces/default/{plural}"), true),
            None => (format!("{root}/{plural}"), false),
        }))
    }

    async fn ask(&self, method: Method, path: &str, body: String, content: &str) -> Result<Answer> {
        let plain = Plain { url: &self.url, ca_pem: &self.ca_pem, token: &self.token, mark: None };
        let (status, answer) = plain.ask_as(method, path, body, JSON, content).await?;
        let read = serde_json::from_slice::<Value>(&answer);
        if status.is_success() {
            return Ok(Ok(read.with_context(|| format!("{path} answers {status} without an object"))?));
        }
        // The server refuses an unknown group in plain text.
        let told = read.ok().and_then(|answer| answer["message"].as_str().map(str::to_owned));
        Ok(Err(told.unwrap_or_else(|| format!("it is refused: {status}"))))
    }
}
