//! Reviews: questions that are answered and never stored.
//!
//! Owns token reviews, access reviews and the tokens of service accounts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{decode, read_body};
use crate::kube::authorization::{self, Access, Authorization};
use crate::kube::handler::{Answer, Call};
use crate::kube::object;
use crate::kube::status::Failure;
use crate::kube::users::Who;

/// The real server's shortest token, and a day as the longest.
const TOKEN_MIN_S: i64 = 600;
const TOKEN_MAX_S: i64 = 86_400;

pub(super) async fn answer(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let bytes = read_body(&call.app.limits, body).await?;
    let mut review = decode(&call.content_type, &bytes)?;
    object::check_type(&mut review, &call.resource, call.served())?;
    review["status"] = match &*call.resource.kind {
        "TokenReview" => token_review(call, &review),
        "SelfSubjectReview" => json!({"userInfo": {
            "username": &*call.who.name, "uid": call.who.uid, "groups": call.who.groups,
        }}),
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

/// `POST serviceaccounts/NAME/token`.
pub(super) async fn create_token(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    let bytes = read_body(&call.app.limits, body).await?;
    let mut request = decode(&call.content_type, &bytes)?;
    let name = call.target.name.as_deref().unwrap_or_default();
    let account = call
        .cluster()
        .get(&call.resource, call.namespace(), name)
        .ok_or_else(|| Failure::not_found(call.resource.about(name)))?;
    let asked_s = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
    let lasts_s = asked_s.clamp(TOKEN_MIN_S, TOKEN_MAX_S);
    let lasts = Duration::from_secs(lasts_s.unsigned_abs());
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{}", call.namespace())];
    let who = Who {
        uid: account.identity.uid.to_string(),
        ..Who::new(&format!("system:serviceaccount:{}:{name}", call.namespace()), &groups)
    };
    let token = format!("longhaul-{}", call.cluster().fresh().uid);
    call.app.users.issue(token.clone(), who, Instant::now() + lasts);
    let ends = Timestamp::now().checked_add(jiff::SignedDuration::from_secs(lasts_s)).unwrap_or(Timestamp::MAX);
    request["status"] = json!({"token": token, "expirationTimestamp": object::seconds(ends)});
    Ok(Answer::value(StatusCode::CREATED, &request))
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

fn token_review(call: &Call, review: &Value) -> Value {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    match call.app.users.by_token(token) {
        Some(who) => json!({"authenticated": true, "user": {
            "username": &*who.name, "uid": who.uid, "groups": who.groups,
        }}),
        None => json!({"authenticated": false, "error": "[invalid bearer token, token lookup failed]"}),
    }
}
