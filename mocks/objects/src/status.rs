//! `Status` objects: all errors of the API, with the fields and messages of a real server.
//!
//! Owns the texts of errors, because kubectl and client libraries search for some of them. Sources: the errors in
//! `k8s.io/apimachinery/pkg/api/errors`, and answers of a real kube-apiserver.

use std::fmt::Display;

use http::StatusCode;
use serde_json::{Value, json};

/// The status code in an `ERROR` line of a watch; 0 if the line contains no code.
pub fn code_of(line: &[u8]) -> u16 {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    event["object"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0)
}

/// The error answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: StatusCode,
    /// The reason of the `Status`; empty if there is none.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// For an expired list: a token with which the client continues at the present state.
    pub continue_token: Option<String>,
    /// The value of the header `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
}

/// The object or resource that an error is about, for `details`.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name of the resource; for an `Invalid` error, the kind.
    pub kind: &'a str,
    /// The name of the object; empty for a list.
    pub name: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The type of the cause: `FieldValueInvalid`.
    pub reason: &'static str,
    pub field: String,
    pub message: String,
}

impl Cause {
    pub fn invalid(field: &str, value: &str, why: &(impl Display + ?Sized)) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", field: field.to_owned(), message }
    }

    pub fn required(field: &str, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", field: field.to_owned(), message }
    }

    pub fn forbidden(field: &str, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.to_owned(), message: format!("Forbidden: {why}") }
    }
}

impl Failure {
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, reason, message, details: None, continue_token: None, retry_after_s: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = if about.name.is_empty() {
            format!("{} is forbidden: {why}", qualified(about))
        } else {
            format!("{} \"{}\" is forbidden: {why}", qualified(about), about.name)
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(details(about))
    }

    /// HTTP status 403 for a path that is not a resource.
    pub fn forbidden_path(why: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {why}")).with(json!({}))
    }

    /// HTTP status 404 for an object that does not exist.
    pub fn not_found(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" not found", qualified(about), about.name);
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(details(about))
    }

    /// An error for invalid query options or invalid `DeleteOptions`.
    pub fn invalid_options(kind: &str, cause: Cause) -> Self {
        Self::invalid(About { group: "meta.k8s.io", kind, name: "" }, &[cause])
    }

    /// An error for a path below a known group and version that names no resource or subresource.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(json!({}))
    }

    /// An error for a path outside all API groups. The real server answers in plain text, see
    /// [`Failure::is_plain_text`].
    pub fn no_such_group() -> Self {
        Self::new(StatusCode::NOT_FOUND, "", "404 page not found\n")
    }

    /// Whether the body of the answer is only the message as plain text, not a `Status`.
    pub fn is_plain_text(&self) -> bool {
        self.code == StatusCode::NOT_FOUND && self.reason.is_empty()
    }

    /// An error of the real server's storage: status 500 without a reason.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// HTTP status 409 for a name that is taken.
    pub fn already_exists(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", qualified(about), about.name);
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(details(about))
    }

    /// HTTP status 409 for a generated name that is taken.
    pub fn not_generated(about: About<'_>) -> Self {
        let mut failure = Self::already_exists(about);
        failure.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut failure.details {
            details["retryAfterSeconds"] = json!(1);
        }
        Self { retry_after_s: Some(1), ..failure }
    }

    /// Whether the error says that an object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", qualified(about), about.name);
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(details(about))
    }

    /// An error for a write that is based on an older version of the object.
    pub fn stale(about: About<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// HTTP status 422; `about.kind` is the kind, not the plural name.
    pub fn invalid(about: About<'_>, causes: &[Cause]) -> Self {
        let kind =
            if about.group.is_empty() { about.kind.to_owned() } else { format!("{}.{}", about.kind, about.group) };
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let shown = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{kind} \"{}\" is invalid: {shown}", about.name);
        let mut details = details(about);
        details["causes"] = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(details)
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with(json!({}))
    }

    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with(json!({}))
    }

    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message).with(json!({}))
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// An error for a watch from a compacted revision.
    pub fn too_old(requested: u64, floor: u64) -> Self {
        let message = format!("too old resource version: {requested} ({floor})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// An error for a continue token whose snapshot was compacted. `fresh` is a token that continues at the present
    /// state.
    pub fn continue_expired(fresh: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start \
                       a new list without the continue parameter, or use the continue token in this response to \
                       retrieve the remainder of the results. Continuing with the provided token results in an \
                       inconsistent list - objects that were created, modified, or deleted between the time the \
                       first chunk was returned and now may show up in the list.";
        let mut failure = Self::new(StatusCode::GONE, "Expired", message);
        failure.continue_token = Some(fresh);
        failure
    }

    /// An error for a revision that does not exist yet: the server is behind, or the client used another cluster
    /// before.
    pub fn from_the_future(requested: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {requested}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let mut failure = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        failure.details = Some(json!({"causes": [cause], "retryAfterSeconds": 1}));
        failure.retry_after_s = Some(1);
        failure
    }

    /// The error [`Self::from_the_future`] as servers before 1.18 send it; clients can recognise it only by the
    /// message.
    pub fn from_the_future_in_words(requested: u64, current: u64) -> Self {
        let mut failure = Self::from_the_future(requested, current);
        failure.details = Some(json!({"retryAfterSeconds": 1}));
        failure
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = Value::from(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = Value::String(token.clone());
        }
        status
    }
}

/// The answer to a completed deletion.
pub fn deleted(about: About<'_>, uid: &str) -> Value {
    let mut details = details(about);
    details["uid"] = Value::String(uid.to_owned());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn qualified(about: About<'_>) -> String {
    if about.group.is_empty() { about.kind.to_owned() } else { format!("{}.{}", about.kind, about.group) }
}

fn details(about: About<'_>) -> Value {
    let mut details = json!({});
    if !about.kind.is_empty() {
        details["kind"] = Value::String(about.kind.to_owned());
    }
    if !about.name.is_empty() {
        details["name"] = Value::String(about.name.to_owned());
    }
    if !about.group.is_empty() {
        details["group"] = Value::String(about.group.to_owned());
    }
    details
}
