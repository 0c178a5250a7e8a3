//! Reviews: questions that are answered and never stored.
//!
//! Everything is allowed to everybody who is known; who asked for what is in the request ring.

use http::{Method, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{decode, read_body};
use crate::kube::handler::{Answer, Call};
use crate::kube::object;
use crate::kube::status::Failure;

pub(super) async fn answer(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let bytes = read_body(call, body).await?;
    let mut review = decode(&call.content_type, &bytes)?;
    object::check_type(&mut review, &call.resource, call.served())?;
    review["status"] = match &*call.resource.kind {
        "TokenReview" => token_review(call, &review),
        "SelfSubjectReview" => json!({"userInfo": {
            "username": &*call.who.name, "uid": call.who.uid, "groups": call.who.groups,
        }}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true, "reason": "everything is allowed and recorded"})
        }
        _ => return Err(Failure::method_not_allowed()),
    };
    Ok(Answer::value(StatusCode::CREATED, &review))
}

/// `POST serviceaccounts/NAME/token`.
pub(super) async fn create_token(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    let _ = read_body(call, body).await?;
    let name = call.target.name.as_deref().unwrap_or_default();
    call.cluster()
        .get(&call.resource, call.namespace(), name)
        .ok_or_else(|| Failure::not_found(call.resource.about(name)))?;
    Err(Failure::method_not_allowed())
}

fn token_review(call: &Call, review: &Value) -> Value {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    match call.app.users.by_token(token) {
        Some(who) => json!({"authenticated": true, "user": {
            "username": &*who.name, "uid": who.uid, "groups": who.groups,
        }}),
        None => json!({"authenticated": false, "error": "[invalid bearer token, token lookup failed]"}),
    }
}
