//! The content of a review before it is answered (Kubernetes API reference, `authorization.k8s.io` and
//! `authentication.k8s.io`).
//!
//! Owns the content of a review that webhooks see, and the refusal of invalid reviews. The module does no I/O.

use serde_json::{Value, json};

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Review;
use mock_objects::object;
use mock_objects::status::{About, Cause, Failure};

/// Converts a request's body into the review that webhooks see, without an answer.
pub(super) fn begin(review: &mut Value, resource: &Resource, namespace: &str) {
    let meta = object::metadata(review);
    if resource.namespaced {
        meta.insert("namespace".to_owned(), Value::from(namespace));
    } else {
        meta.remove("namespace");
    }
    if let Some(fields) = review.as_object_mut() {
        fields.entry("status").or_insert_with(|| match resource.rules.review {
            Some(Review::Token) => json!({"user": {}}),
            Some(Review::Myself) => json!({"userInfo": {}}),
            Some(Review::MyRules) => json!({"resourceRules": null, "nonResourceRules": null, "incomplete": false}),
            _ => json!({"allowed": false}),
        });
    }
}

pub(super) fn check(review: &Value, resource: &Resource) -> Result<(), Failure> {
    let absent = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default().is_empty();
    match resource.rules.review {
        Some(Review::Token) if absent("/spec/token") => {
            Err(Failure::bad_request("token is required for TokenReview in authentication"))
        }
        Some(Review::MyRules) if absent("/spec/namespace") => Err(Failure::bad_request("no namespace on request")),
        Some(asked @ (Review::Access | Review::MyAccess | Review::LocalAccess)) => {
            let causes = wrong(review, asked);
            // The real server no longer knows the kind at this point.
            let about = About { group: &resource.group, kind: "", name: "" };
            if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(about, &causes)) }
        }
        _ => Ok(()),
    }
}

fn wrong(review: &Value, asked: Review) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &review["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_object() && path.is_object() {
        let why = "cannot be specified in combination with resourceAttributes";
        causes.push(Cause::invalid("spec.nonResourceAttributes", &path.to_string(), why));
    }
    if !resource.is_object() && !path.is_object() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.push(Cause::invalid("spec.resourceAttributes", "\"null\"", why));
    }
    let nobody =
        spec["user"].as_str().unwrap_or_default().is_empty() && spec["groups"].as_array().is_none_or(Vec::is_empty);
    if asked != Review::MyAccess && nobody {
        causes.push(Cause::invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    let local = asked == Review::LocalAccess;
    let said = |key: &str, value: &Value| !value.is_null() && key != "managedFields" && !(local && key == "namespace");
    if review["metadata"].as_object().is_some_and(|meta| meta.iter().any(|(key, value)| said(key, value))) {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        causes.push(Cause::invalid("metadata", &review["metadata"].to_string(), why));
    }
    if local {
        let namespace = resource["namespace"].as_str().unwrap_or_default();
        if resource.is_object() && namespace != object::meta(review, "namespace") {
            let why = "must match metadata.namespace";
            causes.push(Cause::invalid("spec.resourceAttributes.namespace", &format!("\"{namespace}\""), why));
        }
        if path.is_object() {
            let why = "disallowed on this kind of request";
            causes.push(Cause::invalid("spec.nonResourceAttributes", &path.to_string(), why));
        }
    }
    causes
}
