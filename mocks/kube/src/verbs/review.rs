//! Review objects, such as `SubjectAccessReview`, which the server answers and never stores.
//!
//! Owns token reviews, access reviews, and the refusal of invalid reviews. Webhooks see the creation of a review before
//! the server adds its answer.

mod question;

use std::sync::Arc;

use http::{Method, StatusCode};
use mock_objects::kinds::Review;
use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::{Value, json};

use super::{binding, decode_noting, read_body, shape};
use crate::admission::{Attempt, Chain, Operation};
use crate::answer::Answer;
use crate::authentication;
use crate::authorization::{Access, Authorization};
use crate::call::Call;
use crate::payload::Payload;
use crate::rbac::{self, Denied};
use crate::users::Who;

pub(super) async fn answer(call: &Call, body: Payload) -> Result<Answer, Failure> {
    if call.target.name.is_some() || call.resource.namespaced && call.target.namespace.is_none() {
        return Err(Failure::no_such_path());
    }
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let Some(asked) = call.resource.rules.review else { return Err(Failure::method_not_allowed()) };
    if asked == Review::Binding {
        return binding::create_by_body(call, body).await;
    }
    let bytes = read_body(&call.app.limits, body).await?;
    let (mut review, twice) = decode_noting(&call.content_type, &bytes)?;
    object::check_type(&mut review, &call.resource, call.served())?;
    let mut warnings = shape::prune(call, &mut review, &twice)?;
    object::conform(&mut review, &call.resource)?;
    object::check_namespace(&call.resource, object::meta(&review, "namespace"), call.namespace())?;
    question::begin(&mut review, &call.resource, call.namespace());
    let chain = Chain::of(call);
    let admitted = {
        let name = object::meta(&review, "name").to_owned();
        chain.mutate(&Attempt { call, operation: Operation::Create, name: &name, old: None }, &mut review).await?
    };
    if admitted.changed {
        question::begin(&mut review, &call.resource, call.namespace());
    }
    question::check(&review, &call.resource)?;
    warnings.extend(admitted.warnings);
    let name = object::meta(&review, "name");
    let attempt = Attempt { call, operation: Operation::Create, name, old: None };
    warnings.extend(chain.validate(&attempt, &review).await?);
    review["status"] = match asked {
        Review::Token => token_review(call, &review),
        Review::Myself => json!({"userInfo": call.who.info()}),
        Review::MyRules => {
            let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
            let (resources, paths) = rbac::rules_of(call.cluster(), &call.who, namespace);
            let answer = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
            // The answer does not repeat the question.
            (review["spec"], review["metadata"]) = (json!({}), json!({}));
            answer
        }
        Review::Access | Review::MyAccess | Review::LocalAccess => access_review(call, &review, asked),
        Review::Binding => return Err(Failure::method_not_allowed()),
    };
    Ok(Answer { warnings, ..Answer::value(StatusCode::CREATED, &review) })
}

fn access_review(call: &Call, review: &Value, asked: Review) -> Value {
    let cluster = call.cluster();
    if cluster.authorization == Authorization::AllowAndRecord {
        return json!({"allowed": true, "reason": "everything is allowed and recorded"});
    }
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let attribute = |key: &str| text(&format!("/spec/resourceAttributes/{key}"));
    let who = if asked == Review::MyAccess {
        call.who.clone()
    } else {
        let groups = review.pointer("/spec/groups").and_then(Value::as_array).into_iter().flatten();
        let groups: Vec<String> = groups.filter_map(Value::as_str).map(str::to_owned).collect();
        Arc::new(Who::new(text("/spec/user"), &groups))
    };
    if review.pointer("/spec/nonResourceAttributes").is_some_and(Value::is_object) {
        let (path, verb) = (text("/spec/nonResourceAttributes/path"), text("/spec/nonResourceAttributes/verb"));
        return verdict(rbac::allows_path(cluster, &who, path, verb));
    }
    let access = Access {
        namespace: attribute("namespace"),
        group: attribute("group"),
        resource: attribute("resource"),
        subresource: attribute("subresource"),
        name: attribute("name"),
        verb: attribute("verb"),
    };
    verdict(rbac::allows(cluster, &who, &access))
}

fn verdict(answer: Result<String, Denied>) -> Value {
    match answer {
        Ok(reason) => json!({"allowed": true, "reason": reason}),
        Err(denied) => json!({"allowed": false, "reason": denied.to_string()}),
    }
}

fn token_review(call: &Call, review: &Value) -> Value {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    let wanted = review.pointer("/spec/audiences").and_then(Value::as_array).into_iter().flatten();
    let wanted: Vec<String> = wanted.filter_map(Value::as_str).map(str::to_owned).collect();
    match authentication::by_token(&call.app.users, call.cluster(), token, &wanted) {
        Ok(bearer) => json!({"authenticated": true, "user": bearer.who.info(), "audiences": bearer.audiences}),
        Err(error) => json!({"user": {}, "error": format!("[{error}]")}),
    }
}
