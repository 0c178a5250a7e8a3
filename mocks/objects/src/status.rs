//! `Status` objects: every refusal of the API, in the shape and words of the real one.
//!
//! Owns the texts; kubectl and client libraries match on some of them. Sources: the shapes that
//! `k8s.io/apimachinery/pkg/api/errors` documents, and answers of a real kube-apiserver.

use std::fmt::Display;

use http::StatusCode;
use serde_json::{Value, json};

/// The code in an `ERROR` line of a watch; 0 if it has none.
pub fn code_of(line: &[u8]) -> u16 {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    event["object"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0)
}

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The HTTP status.
    pub code: StatusCode,
    /// Empty for none.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// For an expired list: a token that goes on with the present state.
    pub continue_token: Option<String>,
    /// The header `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
}

/// The subject of an error, for `details`.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    /// Plural resource name, or the kind for `Invalid`.
    pub kind: &'a str,
    /// Empty for a list.
    pub name: &'a str,
}

/// One reason of an `Invalid` answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// For example `FieldValueInvalid`.
    pub reason: &'static str,
    pub field: String,
    pub message: String,
}

impl Cause {
    /// An invalid value.
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

    /// Status 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Status 401.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// Status 403.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = if about.name.is_empty() {
            format!("{} is forbidden: {why}", qualified(about))
        } else {
            format!("{} \"{}\" is forbidden: {why}", qualified(about), about.name)
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(details(about))
    }

    /// Status 403 for a path that is no resource.
    pub fn forbidden_path(why: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {why}")).with(json!({}))
    }

    /// Status 404 for an object.
    pub fn not_found(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" not found", qualified(about), about.name);
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(details(about))
    }

    /// Invalid query options or `DeleteOptions`.
    pub fn invalid_options(kind: &str, cause: Cause) -> Self {
        Self::invalid(About { group: "meta.k8s.io", kind, name: "" }, &[cause])
    }

    /// A path below a known group and version that names no resource or subresource.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(json!({}))
    }

    /// A path that belongs to no API group. The real server answers in plain text, see [`Failure::is_plain_text`].
    pub fn no_such_group() -> Self {
        Self::new(StatusCode::NOT_FOUND, "", "404 page not found\n")
    }

    /// Whether the message is the whole body.
    pub fn is_plain_text(&self) -> bool {
        self.code == StatusCode::NOT_FOUND && self.reason.is_empty()
    }

    /// A refusal by the real server's storage that blames neither side: a plain error, so a 500 without a reason.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Status 409 for a name that is taken.
    pub fn already_exists(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", qualified(about), about.name);
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(details(about))
    }

    /// Status 409 for a generated name that is taken.
    pub fn not_generated(about: About<'_>) -> Self {
        let mut failure = Self::already_exists(about);
        failure.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut failure.details {
            details["retryAfterSeconds"] = json!(1);
        }
        Self { retry_after_s: Some(1), ..failure }
    }

    /// Whether another client created an object of this name first.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Status 409.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", qualified(about), about.name);
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(details(about))
    }

    /// The write was made against an older version.
    pub fn stale(about: About<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// `about.kind` is the kind here, not the plural.
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

    /// Status 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with(json!({}))
    }

    /// Status 406.
    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with(json!({}))
    }

    /// Status 415.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message).with(json!({}))
    }

    /// Status 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// A watch from a revision that was compacted away.
    pub fn too_old(requested: u64, floor: u64) -> Self {
        let message = format!("too old resource version: {requested} ({floor})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A continue token whose snapshot was compacted away. `fresh` goes on with the present state.
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

    /// A revision from the future: this server has not caught up, or the client follows another cluster.
    pub fn from_the_future(requested: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {requested}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let mut failure = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        failure.details = Some(json!({"causes": [cause], "retryAfterSeconds": 1}));
        failure.retry_after_s = Some(1);
        failure
    }

    /// [`Self::from_the_future`] in the form of servers before 1.18: in the text only.
    pub fn from_the_future_in_words(requested: u64, current: u64) -> Self {
        let mut failure = Self::from_the_future(requested, current);
        failure.details = Some(json!({"retryAfterSeconds": 1}));
        failure
    }

    /// Status 504.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// Status 500.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Replaces the details.
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

/// The answer to a deletion that is complete.
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
