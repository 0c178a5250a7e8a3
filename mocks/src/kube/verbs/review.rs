//! Reviews: questions that are answered and never stored.
//!
//! Owns token reviews and access reviews.

use std::sync::Arc;

use http::{Method, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{decode, read_body};
use crate::kube::authentication;
use crate::kube::authorization::{self, Access, Authorization};
use crate::kube::handler::{Answer, Call};
use crate::kube::object;
use crate::kube::status::Failure;
use crate::kube::users::Who;

pub(super) async fn answer(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let bytes = read_body(&call.app.limits, body).await?;
    let mut review = decode(&call.content_type, &bytes)?;
    object::check_type(&mut review, &call.resource, call.served())?;
    review["status"] = match &*call.resource.kind {
        "TokenReview" => token_review(call, &review)?,
        "SelfSubjectReview" => json!({"userInfo": call.who.info()}),
        "SelfSubjectRulesReview" => {
            let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
            if namespace.is_empty() {
                return Err(Failure::bad_request("no namespace on request"));
            }
            let (resources, paths) = authorization::rules_of(call.cluster(), &call.who, namespace);
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
        }
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => access_review(call, &review),
        _ => return Err(Failure::method_not_allowed()),
    };
    Ok(Answer::value(StatusCode::CREATED, &review))
}

fn access_review(call: &Call, review: &Value) -> Value {
    let cluster = call.cluster();
    if cluster.authorization == Authorization::AllowAndRecord {
        return json!({"allowed": true, "reason": "everything is allowed and recorded"});
    }
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let attribute = |key: &str| text(&format!("/spec/resourceAttributes/{key}"));
    let who = if &*call.resource.kind == "SelfSubjectAccessReview" {
        call.who.clone()
    } else {
        let groups = review.pointer("/spec/groups").and_then(Value::as_array).into_iter().flatten();
        let groups: Vec<String> = groups.filter_map(Value::as_str).map(str::to_owned).collect();
        Arc::new(Who::new(text("/spec/user"), &groups))
    };
    if review.pointer("/spec/nonResourceAttributes").is_some_and(Value::is_object) {
        let (path, verb) = (text("/spec/nonResourceAttributes/path"), text("/spec/nonResourceAttributes/verb"));
        return verdict(authorization::rbac_path(cluster, &who, path, verb));
    }
    let access = Access {
        namespace: attribute("namespace"),
        group: attribute("group"),
        resource: attribute("resource"),
        subresource: attribute("subresource"),
        name: attribute("name"),
        verb: attribute("verb"),
    };
    verdict(authorization::rbac(cluster, &who, &access))
}

fn verdict(answer: Result<String, String>) -> Value {
    match answer {
        Ok(reason) => json!({"allowed": true, "reason": reason}),
        Err(reason) => json!({"allowed": false, "reason": reason}),
    }
}

fn token_review(call: &Call, review: &Value) -> Result<Value, Failure> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted = review.pointer("/spec/audiences").and_then(Value::as_array).into_iter().flatten();
    let wanted: Vec<String> = wanted.filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(match authentication::by_token(&call.app.users, call.cluster(), token, &wanted) {
        Ok(bearer) => json!({"authenticated": true, "user": bearer.who.info(), "audiences": bearer.audiences}),
        Err(error) => json!({"user": {}, "error": format!("[{error}]")}),
    })
}
