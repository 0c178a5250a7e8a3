//! One question to a webhook, and the review that asks it.
//!
//! Owns the form of the review. Does no I/O.

use std::sync::Arc;

use loadgen::admission::Operation;
use serde_json::{Value, json};

/// Metadata that the API server sets after the mutating webhooks.
const OF_SERVER: [&str; 6] = ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"];
/// The uid of every object in a question.
const UID: &str = "6c6f6e67-6861-4756-8c00-000000000001";
/// The creation time of every object in a question.
const CREATED: &str = "2026-01-05T08:00:00Z";

/// The resource of the objects in questions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) is_namespaced: bool,
}

impl Resource {
    /// The `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The URL path at which objects are created.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let place = if self.is_namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        format!("{root}/{}/{place}{}", self.api_version(), self.plural)
    }
}

/// The user of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Admin,
    Account,
    Person,
}

impl User {
    pub(crate) const ALL: [Self; 3] = [Self::Admin, Self::Account, Self::Person];

    fn name(self) -> &'static str {
        match self {
            Self::Admin => "kubernetes-admin",
            Self::Account => "system:serviceaccount:default:longhaul",
            Self::Person => "developer@example.com",
        }
    }

    fn info(self) -> Value {
        let groups: &[&str] = match self {
            Self::Admin => &["system:masters", "system:authenticated"],
            Self::Account => &["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            Self::Person => &["developers", "system:authenticated"],
        };
        json!({"username": self.name(), "groups": groups})
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) resource: Arc<Resource>,
    pub(crate) subresource: Option<&'static str>,
    pub(crate) operation: Operation,
    /// The object as a client writes it; null for a deletion.
    pub(crate) object: Value,
    /// The object as a client wrote it before; null for a creation.
    pub(crate) old: Value,
    pub(crate) user: User,
    /// The difference from the sample, such as `without spec.image`.
    pub(crate) about: String,
}

impl Question {
    /// The question in words.
    pub(crate) fn describe(&self) -> String {
        let Self { resource, subresource, operation, user, about, .. } = self;
        let sub = subresource.map(|sub| format!("/{sub}")).unwrap_or_default();
        let by = if *user == User::Admin { String::new() } else { format!(" by {}", user.name()) };
        format!("{}{sub} {}{by}, {about}", resource.kind, operation.name())
    }

    /// The review of this question, with the objects in the form that the webhook sees. The uid is added later.
    pub(crate) fn review(&self, object: &Value, old: &Value, is_dry: bool) -> Value {
        let Self { resource, subresource, operation, user, .. } = self;
        let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        let of = json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        let some = if object.is_null() { old } else { object };
        let mut options = json!({"kind": format!("{}Options", operation.verb()), "apiVersion": "meta.k8s.io/v1"});
        if is_dry {
            options["dryRun"] = json!(["All"]);
        }
        let mut request = json!({
            "uid": "", "kind": kind, "resource": of, "requestKind": kind, "requestResource": of,
            "operation": operation.name(), "userInfo": user.info(), "object": object, "oldObject": old,
            "dryRun": is_dry, "options": options,
        });
        // The server does not know a generated name yet.
        if let Some(name) = some["metadata"]["name"].as_str() {
            request["name"] = name.into();
        }
        if resource.is_namespaced {
            request["namespace"] = some["metadata"]["namespace"].clone();
        }
        if let Some(sub) = subresource {
            request["subResource"] = (*sub).into();
            request["requestSubResource"] = (*sub).into();
        }
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    }
}

/// An object without the metadata that the API server sets after the mutating webhooks.
pub(crate) fn bare(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
    }
    object
}

/// An object as the API server stores it, at this generation. Generation 0 is an object that is not stored yet.
pub(crate) fn stored(object: &Value, generation: u64) -> Value {
    if object.is_null() {
        return Value::Null;
    }
    let mut object = bare(object.clone());
    if !object["metadata"].is_object() {
        return object;
    }
    let metadata = &mut object["metadata"];
    metadata["uid"] = UID.into();
    metadata["creationTimestamp"] = CREATED.into();
    metadata["generation"] = generation.max(1).into();
    if generation > 0 {
        metadata["resourceVersion"] = (1000 + generation).to_string().into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn resource() -> Arc<Resource> {
        let own = str::to_owned;
        Arc::new(Resource {
            group: own("x.io"),
            version: own("v1"),
            plural: own("caches"),
            kind: own("Cache"),
            is_namespaced: true,
        })
    }

    #[test]
    fn a_review_has_the_fields_of_the_api_server() {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {}});
        let question = Question {
            resource: resource(),
            subresource: Some("status"),
            operation: Operation::Update,
            object: object.clone(),
            old: object.clone(),
            user: User::Account,
            about: "unchanged".to_owned(),
        };
        let review = question.review(&stored(&object, 2), &stored(&object, 1), true);
        let request = &review["request"];
        assert_eq!((&request["operation"], &request["subResource"]), (&json!("UPDATE"), &json!("status")));
        assert_eq!((&request["name"], &request["namespace"]), (&json!("a"), &json!("n")));
        assert_eq!(request["options"]["dryRun"], json!(["All"]));
        assert_eq!(request["oldObject"]["metadata"]["resourceVersion"], "1001");
        assert_eq!(bare(request["object"].clone()), object);
        assert_eq!(question.describe(), "Cache/status UPDATE by system:serviceaccount:default:longhaul, unchanged");
        assert_eq!(resource().collection("n"), "/apis/x.io/v1/namespaces/n/caches");
    }
}
