//! The verbs of the API.
//!
//! Owns the mapping from method and path to a verb, and reading request bodies. Each verb has its own file.

mod apply;
mod binding;
mod delete;
mod evict;
pub(crate) mod finish;
mod named;
mod own;
mod patch;
mod read;
mod review;
mod scale;
mod scaled;
mod shape;
mod token;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use mock_objects::json;
use mock_objects::kinds::Review;
use mock_objects::protobuf;
use mock_objects::status::{Cause, Failure};
use mock_objects::yaml;
use serde_json::Value;

pub(crate) use delete::{Manner, Propagation, delete_place};

use super::answer::Answer;
use super::authorization::{Access, Authorization};
use super::call::Call;
use super::config::Limits;
use super::path::verb_of;
use super::payload::Payload;
use super::rbac;
use shape::Twice;

/// Longest name of a field manager ("Server-Side Apply").
const FIELD_MANAGER_MAX_BYTES: usize = 128;

pub(crate) async fn dispatch(call: Box<Call>, body: Payload) -> Result<Answer, Failure> {
    let answer = answer(&call, body).await;
    let annotations = std::mem::take(&mut *call.annotations.lock());
    if annotations.is_empty() {
        return answer;
    }
    Ok(Answer { annotations: Some(Arc::new(annotations)), ..answer.unwrap_or_else(Answer::from) })
}

async fn answer(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let subresource = call.target.subresource.clone();
    let named = call.target.name.is_some();
    authorize(call)?;
    check_options(call)?;
    if call.resource.virtual_only {
        return review::answer(call, body).await;
    }
    match (call.method.clone(), named, subresource.as_deref()) {
        (Method::GET, false, None) if call.query.watch => watch::open(call).await,
        (Method::GET, false, None) => read::list(call).await,
        (Method::GET, true, None) => read::one(call).await,
        (Method::GET, true, Some("status")) if call.served().status => read::one(call).await,
        // Boxed, because every request reserves the room and few are for a scale.
        (_, true, Some("scale")) if call.served().scale.is_some() => Box::pin(scale::answer(call, body)).await,
        (Method::POST | Method::DELETE, false, None) if call.resource.namespaced && call.target.namespace.is_none() => {
            Err(Failure::method_not_allowed())
        }
        (Method::POST, false, None) => write::create(call, body).await,
        // The real server's handler of custom resources ignores the rest of the path.
        (Method::POST, true, None) if call.resource.custom => write::create(call, body).await,
        (Method::PUT | Method::PATCH, false, None) if call.resource.custom => {
            Err(Failure::bad_request("name must be provided"))
        }
        (Method::PUT, true, None) => write::update(call, body, false).await,
        (Method::PATCH, true, None) => patch::patch(call, body, false).await,
        (Method::PUT, true, Some("status")) if call.served().status => write::update(call, body, true).await,
        (Method::PATCH, true, Some("status")) if call.served().status => patch::patch(call, body, true).await,
        (Method::PUT, true, Some("finalize")) if call.resource.has("finalize") => write::finalize(call, body).await,
        (Method::POST, true, Some("token")) if call.resource.has("token") => token::create(call, body).await,
        (Method::POST, true, Some("binding")) if call.resource.has("binding") => binding::create(call, body).await,
        (Method::POST, true, Some("eviction")) if call.resource.has("eviction") => evict::create(call, body).await,
        (Method::GET, true, sub) if call.resource.rules.part(sub).is_some() => read::one(call).await,
        (Method::PUT, true, sub) if call.resource.rules.part(sub).is_some() => write::update(call, body, false).await,
        (Method::PATCH, true, sub) if call.resource.rules.part(sub).is_some() => patch::patch(call, body, false).await,
        (Method::DELETE, true, None) => delete::one(call, body).await,
        (Method::DELETE, false, None) => delete::collection(call, body).await,
        (_, true, Some(_)) if call.resource.custom => {
            Err(Failure::not_found(call.resource.about(call.target.name.as_deref().unwrap_or_default())))
        }
        (_, _, Some(_)) => Err(Failure::no_such_path()),
        _ => Err(Failure::method_not_allowed()),
    }
}

/// Refuses invalid options of a write; reads ignore these options.
fn check_options(call: &Call) -> Result<(), Failure> {
    let kind = match call.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => return Ok(()),
    };
    if let Some(value) = &call.query.dry_run_unknown {
        let message = format!("Unsupported value: [\"{value}\"]: supported values: \"All\"");
        let cause = Cause { reason: "FieldValueNotSupported", field: "dryRun".to_owned(), message };
        return Err(Failure::invalid_options(kind, cause));
    }
    let mode = call.query.field_validation.as_deref().unwrap_or("Warn");
    if !matches!(mode, "Strict" | "Warn" | "Ignore") && call.method != Method::DELETE {
        let message = format!("Unsupported value: \"{mode}\": supported values: \"Ignore\", \"Strict\", \"Warn\"");
        let cause = Cause { reason: "FieldValueNotSupported", field: "fieldValidation".to_owned(), message };
        return Err(Failure::invalid_options(kind, cause));
    }
    let manager = call.query.field_manager.as_deref().unwrap_or_default();
    if manager.len() > FIELD_MANAGER_MAX_BYTES {
        let message = format!("Too long: may not be longer than {FIELD_MANAGER_MAX_BYTES}");
        let cause = Cause { reason: "FieldValueTooLong", field: "fieldManager".to_owned(), message };
        return Err(Failure::invalid_options(kind, cause));
    }
    Ok(())
}

/// Records the permission that the request needs and, with RBAC, refuses the request if no rule allows it.
fn authorize(call: &Call) -> Result<(), Failure> {
    if call.connection.inside {
        return Ok(());
    }
    let cluster = call.cluster();
    let name = call.target.name.as_deref().unwrap_or_default();
    let verb = verb_of(call.method.as_str(), call.query.watch, !name.is_empty());
    let verb = verb.ok_or_else(Failure::method_not_allowed)?;
    if call.target.subresource.is_none() && !call.resource.virtual_only && !call.resource.allows(verb) {
        return Err(Failure::method_not_allowed());
    }
    let access = Access {
        namespace: call.namespace(),
        group: &call.resource.group,
        resource: &call.resource.plural,
        subresource: call.target.subresource.as_deref().unwrap_or_default(),
        name,
        verb,
    };
    cluster.permissions.add(&call.who.name, &call.user_agent, &access);
    // All users may ask about themselves (the role system:basic-user).
    let about_self = call.resource.rules.review.is_some_and(Review::is_about_myself);
    if cluster.authorization == Authorization::AllowAndRecord || about_self {
        return Ok(());
    }
    match rbac::allows(cluster, &call.who, &access) {
        Ok(_) => Ok(()),
        Err(why) => {
            cluster.permissions.refuse(&call.who.name, &access);
            Err(Failure::forbidden(call.resource.about(name), &why.to_string()))
        }
    }
}

/// Reads a body within the limits of size and time.
pub(crate) async fn read_body(limits: &Limits, body: impl Into<Payload>) -> Result<Bytes, Failure> {
    body.into().read(limits).await
}

/// Decodes a body as JSON, or as YAML if its content type says so.
pub(crate) fn decode(content_type: &str, bytes: &Bytes) -> Result<Value, Failure> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" | "*/*" => serde_json::from_slice(bytes)
            .map_err(|error| Failure::bad_request(format!("the object provided is unrecognized: {error}"))),
        "application/yaml" | "application/apply-patch+yaml" => read_yaml(bytes).map(|(value, _)| value),
        protobuf::MEDIA_TYPE => protobuf::decode(bytes).map_err(|error| {
            let mut failure = Failure::unsupported_media_type("application/json, application/yaml");
            failure.message = format!("the body of the request could not be read: {error}");
            failure
        }),
        _ => {
            let mut failure = Failure::unsupported_media_type("application/json, application/yaml");
            // Only patches are refused with (empty) details.
            failure.details = None;
            Err(failure)
        }
    }
}

/// Decodes a body; also returns messages about its duplicate fields.
fn decode_noting(content_type: &str, bytes: &Bytes) -> Result<(Value, Twice), Failure> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" | "*/*" => {
            let (value, paths) = json::read(bytes)
                .map_err(|error| Failure::bad_request(format!("the object provided is unrecognized: {error}")))?;
            Ok((value, Twice::Fields(paths)))
        }
        "application/yaml" | "application/apply-patch+yaml" => {
            let (value, lines) = read_yaml(bytes)?;
            Ok((value, Twice::Lines(lines)))
        }
        _ => Ok((decode(content_type, bytes)?, Twice::default())),
    }
}

fn read_yaml(bytes: &Bytes) -> Result<(Value, Vec<String>), Failure> {
    let wrong = |why: String| Failure::bad_request(format!("error decoding YAML: {why}"));
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    yaml::read(text).map_err(|error| wrong(error.to_string()))
}
