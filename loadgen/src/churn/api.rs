//! The calls of the Kubernetes API that churn makes. Owns URL paths, headers and `Status` errors, and stores no
//! objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Error;
use super::lifecycle::Propagation;
use crate::failure::{Class, Failure};
use crate::wire::{Body, Endpoint, Http1, Progress};

/// Maximum number of operations in flight. If more operations are in flight, the API is slower than the plan; further
/// operations fail and are counted.
pub(super) const IN_FLIGHT_MAX: usize = 128;
/// The deadline of a call. kube-apiserver too gives a write half a minute (`--request-timeout` is a minute, of which
/// admission takes half).
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of idle connections that are kept, as in client-go for one API server. Further connections, which are
/// needed while the API server is slow, are closed after use. Both ends of a hundred kept connections would take ten
/// MiB of the harness, depending on the machine's load.
const IDLE_MAX: usize = 25;

const JSON: &str = "application/json";
/// The media type for metadata alone (Kubernetes API concepts, "Metadata-only fetches").
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

#[derive(Clone)]
pub struct Api {
    /// The URL of the API server: `https://127.0.0.1:6443`.
    pub url: String,
    /// The CA certificates that signed the server's certificate, as PEM.
    pub ca_pem: String,
    /// The bearer token of a user that may write the churned resource and namespaces.
    pub token: String,
    /// Key and value of a label for every namespace that is created, if the run finds its namespaces by a label.
    pub mark: Option<(String, String)>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret, and the certificate is not useful in a log.
        f.debug_struct("Api").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A client of the control plane.
#[derive(Debug)]
pub(crate) struct Client {
    http: Arc<Http1>,
    headers: HeaderMap,
    base: String,
    mark: Option<(String, String)>,
}

/// The API server's answer, with any status.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
}

/// The fields of an object that are read back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub uid: String,
    pub resource_version: String,
}

impl Client {
    pub(crate) fn new(api: &Api) -> Result<Self, Error> {
        let endpoint = Endpoint::new(&api.url, "", &api.ca_pem, b"http/1.1")?;
        let bad =
            |what: &str| Error::Api { problem: format!("the {what} has characters that no HTTP header may have") };
        let mut token = HeaderValue::from_str(&format!("Bearer {}", api.token.trim())).map_err(|_| bad("token"))?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&endpoint.authority).map_err(|_| bad("address"))?);
        headers.insert(USER_AGENT, HeaderValue::from_static("longhaul-churn"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(AUTHORIZATION, token);
        let base = endpoint.path.trim_end_matches('/').to_owned();
        Ok(Self { http: Http1::new(endpoint, IDLE_MAX, IN_FLIGHT_MAX), headers, base, mark: api.mark.clone() })
    }

    /// Key and value of the label that every created namespace must have.
    pub(crate) fn mark(&self) -> Option<(&str, &str)> {
        self.mark.as_ref().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(crate) async fn read(&self, path: &str) -> Result<Reply, Failure> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Reply, Failure> {
        self.send(Method::POST, path, Some((JSON, object))).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Reply, Failure> {
        self.send(Method::PATCH, path, Some(("application/merge-patch+json", patch))).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Reply, Failure> {
        self.send(Method::DELETE, path, None).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Result<Reply, Failure> {
        self.send(Method::DELETE, path, Some((JSON, options))).await
    }

    pub(crate) async fn apply(&self, path: &str, object: &Value) -> Result<Reply, Failure> {
        self.send(Method::PATCH, path, Some(("application/apply-patch+yaml", object))).await
    }

    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Reply, Failure> {
        self.send(Method::PUT, path, Some((JSON, object))).await
    }

    /// The first object of a list, if there is one.
    pub(crate) async fn first_of(&self, path: &str) -> Result<Option<Value>, Failure> {
        let reply = self.read(path).await?;
        if !reply.status.is_success() {
            return Err(reply.failure(&format!("GET {path}")));
        }
        let mut list: Value = serde_json::from_slice(&reply.body)
            .map_err(|error| Failure::invalid(format!("GET {path}: the answer is no list: {error}")))?;
        Ok(list["items"].get_mut(0).map(Value::take))
    }

    /// Deletes all objects in the list of this path. The answer contains only metadata of the deleted objects, because
    /// whole objects could exceed the limit of an answer.
    pub(crate) async fn delete_collection(&self, path: &str, options: &Value) -> Result<Reply, Failure> {
        self.call(Method::DELETE, path, Some((JSON, options)), Some(METADATA)).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<Reply, Failure> {
        self.call(method, path, body, None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
        accept: Option<&'static str>,
    ) -> Result<Reply, Failure> {
        let (content_type, body) = match body {
            Some((content_type, value)) => (Some(content_type), Bytes::from(value.to_string())),
            None => (None, Bytes::new()),
        };
        let mut request = Request::new(Body::new(body));
        *request.uri_mut() = format!("{}{path}", self.base)
            .parse()
            .map_err(|error| Failure { class: Class::HttpError, text: format!("`{path}` is no path: {error}") })?;
        *request.headers_mut() = self.headers.clone();
        if let Some(accept) = accept {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        }
        if let Some(content_type) = content_type {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let label = format!("{method} {path}");
        *request.method_mut() = method;
        let progress = Progress::default();
        let outcome = tokio::time::timeout(CALL_LIMIT, self.http.call(request, &progress)).await;
        match outcome.unwrap_or_else(|_| Err(progress.timeout(CALL_LIMIT))) {
            Ok(answer) => Ok(Reply { status: answer.status, body: answer.body }),
            Err(failure) => Err(Failure { text: format!("{label}: {}", failure.text), ..failure }),
        }
    }
}

/// `DeleteOptions` with this propagation policy; in a dry run nothing is deleted.
pub(crate) fn options(propagation: Option<Propagation>, rehearsed: bool) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let Some(policy) = propagation {
        options["propagationPolicy"] = policy.as_str().into();
    }
    if rehearsed {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// Encodes a value for a query string (RFC 3986): all characters but letters, digits and `-._~` in percent form.
pub(crate) fn query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

impl Reply {
    /// Whether the call succeeded or has the status `also`.
    pub(crate) fn is(&self, also: StatusCode) -> bool {
        self.status.is_success() || self.status == also
    }

    pub(crate) fn metadata(&self) -> Result<Metadata, Failure> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        let object: Object = serde_json::from_slice(&self.body)
            .map_err(|error| Failure::invalid(format!("the answer is no Kubernetes object: {error}")))?;
        Ok(object.metadata)
    }

    pub(super) fn message(&self) -> String {
        #[derive(Deserialize)]
        struct Status {
            message: String,
        }
        serde_json::from_slice::<Status>(&self.body).map_or_else(
            |_| String::from_utf8_lossy(&self.body[..self.body.len().min(160)]).into_owned(),
            |status| status.message,
        )
    }

    /// The error of this reply, with the call that received it.
    pub(crate) fn failure(&self, call: &str) -> Failure {
        let text = format!("{call}: HTTP {}: {}", self.status.as_u16(), self.message());
        Failure { class: Class::HttpError, text }
    }
}
