//! What a review may ask (Kubernetes API reference, `authorization.k8s.io` and `authentication.k8s.io`).
//!
//! Owns the form of a question before it has an answer, and the refusal of what is none. Pure.

use serde_json::{Value, json};

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Review;
use mock_objects::object;
use mock_objects::status::{About, Cause, Failure};

/// Makes of a body what webhooks are shown: a review that has no answer yet.
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

/// Refuses what is no question.
pub(super) fn check(review: &Value, resource: &Resource) -> Result<(), Failure> {
    let absent = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default().is_empty();
    match resource.rules.review {
        Some(Review::Token) if absent("/spec/token") => {
            Err(Failure::bad_request("token is required for TokenReview in authentication"))
        }
        Some(Review::MyRules) if absent("/spec/namespace") => Err(Failure::bad_request("no namespace on request")),
        Some(asked @ (Review::Access | Review::MyAccess | Review::LocalAccess)) => {
            let causes = wrong(review, asked);
            // The real server has forgotten the kind by then.
            let about = About { group: &resource.group, kind: "", name: "" };
            if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(about, &causes)) }
        }
        _ => Ok(()),
    }
}

/// What is wrong with a question about access.
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

#[cfg(test)]
mod tests {
    use super::*;
    use mock_objects::catalogue::Catalogue;

    fn refused(full_name: &str, review: &Value) -> Vec<String> {
        let catalogue = Catalogue::builtin();
        let Err(failure) = check(review, catalogue.by_full_name(full_name).unwrap()) else { return Vec::new() };
        let causes = failure.details.map(|details| details["causes"].clone()).unwrap_or_default();
        let fields = causes.as_array().into_iter().flatten().filter_map(|cause| cause["field"].as_str());
        fields.map(str::to_owned).collect()
    }

    #[test]
    fn what_is_no_question_about_access() {
        let (any, local, own) = (
            "subjectaccessreviews.authorization.k8s.io",
            "localsubjectaccessreviews.authorization.k8s.io",
            "selfsubjectaccessreviews.authorization.k8s.io",
        );
        let spec = |spec: Value| json!({"metadata": {}, "spec": spec});
        let (get, path) = (json!({"verb": "get", "namespace": "a"}), json!({"path": "/"}));
        assert!(refused(any, &spec(json!({"user": "u", "resourceAttributes": get}))).is_empty());
        assert!(refused(any, &spec(json!({"groups": ["g"], "nonResourceAttributes": path}))).is_empty());
        assert!(refused(own, &spec(json!({"resourceAttributes": get}))).is_empty());
        assert_eq!(refused(any, &spec(json!({"resourceAttributes": get}))), ["spec.user"]);
        assert_eq!(refused(any, &spec(json!({}))), ["spec.resourceAttributes", "spec.user"]);
        let both = json!({"resourceAttributes": get, "nonResourceAttributes": path});
        assert_eq!(refused(own, &spec(both)), ["spec.nonResourceAttributes"]);
        let mut named = spec(json!({"user": "u", "resourceAttributes": get}));
        named["metadata"]["name"] = json!("n");
        assert_eq!(refused(any, &named), ["metadata"]);
        let mut inside = spec(json!({"user": "u", "resourceAttributes": get}));
        inside["metadata"]["namespace"] = json!("a");
        assert!(refused(local, &inside).is_empty());
        inside["metadata"]["namespace"] = json!("b");
        assert_eq!(refused(local, &inside), ["spec.resourceAttributes.namespace"]);
    }
}
