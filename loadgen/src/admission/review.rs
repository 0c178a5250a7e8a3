//! One `AdmissionReview` as bytes, with the place of its uid. Pure.
//!
//! Reviews are serialised once, before the clock starts; a call copies the bytes and writes its own uid into them, which
//! costs less than a microsecond and cannot change anything else.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::objects::{Identity, Kind};
use super::oracle::Expected;
use crate::seed::UID_LEN;

const PLACEHOLDER: &str = "00000000-0000-0000-0000-000000000000";

/// What a review is about.
#[derive(Debug, Clone)]
pub(super) struct Review {
    pub kind: Kind,
    pub operation: Operation,
    pub sub_resource: Option<&'static str>,
    pub identity: Identity,
    /// The controller that asks, or `None` for a person.
    pub controller: Option<Kind>,
    pub object: Option<Value>,
    pub old: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A review ready to be sent, with its right answer.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    uid_at: usize,
    /// For messages: `Deployment CREATE shop/cart`.
    pub label: String,
    pub expected: Expected,
}

impl Template {
    pub(super) fn new(review: &Review, expected: Expected) -> Self {
        let bytes = serde_json::to_vec(&Envelope::of(review)).expect("strings and JSON values always serialise");
        // The uid is the first field after the constant head, so the first hit is the right one.
        let uid_at = bytes
            .windows(UID_LEN)
            .position(|window| window == PLACEHOLDER.as_bytes())
            .expect("the envelope was just written with the placeholder");
        let Identity { namespace, name, .. } = &review.identity;
        let sub = review.sub_resource.map(|sub| format!("/{sub}")).unwrap_or_default();
        let label = format!("{}{sub} {} {namespace}/{name}", review.kind.name(), review.operation.name());
        Self { bytes, uid_at, label, expected }
    }

    /// The body of one call.
    pub(super) fn with_uid(&self, uid: &[u8; UID_LEN]) -> Bytes {
        let mut body = self.bytes.clone();
        body[self.uid_at..self.uid_at + UID_LEN].copy_from_slice(uid);
        body.into()
    }

    /// The body of one call in three parts, without a copy.
    pub(super) fn around<'a>(&'a self, uid: &'a [u8; UID_LEN]) -> [&'a [u8]; 3] {
        [&self.bytes[..self.uid_at], uid, &self.bytes[self.uid_at + UID_LEN..]]
    }

    /// The bytes with the placeholder uid, for fingerprints.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The object of the review, parsed again: only wrong and unusual answers need it. `Null` for a DELETE.
    pub(super) fn object(&self) -> Value {
        let mut review: Value = serde_json::from_slice(&self.bytes).expect("the template was serialised from JSON");
        review["request"]["object"].take()
    }
}

/// Field order as kube-apiserver writes it.
#[derive(Serialize)]
struct Envelope<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    request: Request<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of admission.k8s.io/v1")]
struct Request<'a> {
    uid: &'static str,
    kind: Value,
    resource: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_resource: Option<&'static str>,
    request_kind: Value,
    request_resource: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_sub_resource: Option<&'static str>,
    name: &'a str,
    namespace: &'a str,
    operation: &'static str,
    user_info: Value,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
    dry_run: bool,
    options: Value,
}

impl<'a> Envelope<'a> {
    fn of(review: &'a Review) -> Self {
        let kind = json!({"group": review.kind.group(), "version": "v1", "kind": review.kind.name()});
        let resource = json!({"group": review.kind.group(), "version": "v1", "resource": review.kind.plural()});
        Self {
            kind: "AdmissionReview",
            api_version: "admission.k8s.io/v1",
            request: Request {
                uid: PLACEHOLDER,
                request_kind: kind.clone(),
                request_resource: resource.clone(),
                kind,
                resource,
                sub_resource: review.sub_resource,
                request_sub_resource: review.sub_resource,
                name: &review.identity.name,
                namespace: &review.identity.namespace,
                operation: review.operation.name(),
                user_info: user_info(review.controller),
                object: review.object.as_ref(),
                old_object: review.old.as_ref(),
                dry_run: false,
                options: options(review.operation, review.controller),
            },
        }
    }
}

fn user_info(controller: Option<Kind>) -> Value {
    match controller {
        Some(kind) => json!({
            "username": format!("system:serviceaccount:kube-system:{}", kind.controller()),
            "uid": "5f0c2c31-6e1b-4b0b-9a53-0d8f1f4a7c11",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]
        }),
        None => json!({
            "username": "jane@example.com",
            "groups": ["shop-developers", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=7c9d2f0a"]}
        }),
    }
}

fn options(operation: Operation, controller: Option<Kind>) -> Value {
    let manager = if controller.is_some() { "kube-controller-manager" } else { "kubectl-client-side-apply" };
    let api_version = "meta.k8s.io/v1";
    match operation {
        Operation::Create => json!({"kind": "CreateOptions", "apiVersion": api_version, "fieldManager": manager}),
        Operation::Update => json!({"kind": "UpdateOptions", "apiVersion": api_version, "fieldManager": manager}),
        Operation::Delete => {
            json!({"kind": "DeleteOptions", "apiVersion": api_version, "propagationPolicy": "Background"})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    /// For every review of a plan: the body is valid JSON and differs from any other call of it in the uid only.
    #[test]
    fn splice_changes_the_uid_only() {
        let corpus = crate::admission::corpus::tests::corpus_of_everything(3);
        let mut rng = seed::stream(3, "test");
        for template in corpus.templates() {
            let (a, b) = (seed::uid(&mut rng), seed::uid(&mut rng));
            let (first, second) = (template.with_uid(&a), template.with_uid(&b));
            let differing = first.iter().zip(&second).enumerate().filter(|(_, (x, y))| x != y);
            assert_eq!(template.around(&a).concat(), first);
            assert!(differing.into_iter().all(|(at, _)| (template.uid_at..template.uid_at + UID_LEN).contains(&at)));
            let mut parsed: Value = serde_json::from_slice(&first).unwrap();
            assert_eq!(parsed["request"]["uid"].as_str().unwrap().as_bytes(), a);
            parsed["request"]["uid"] = json!(PLACEHOLDER);
            assert_eq!(parsed, serde_json::from_slice::<Value>(template.bytes()).unwrap());
        }
    }
}
