//! One `AdmissionReview` as bytes, with the position of its uid. Pure: no I/O.
//!
//! Reviews are serialized once, before the load starts. Each call copies the bytes and writes its own uid into them.
//! Copying takes less than a microsecond, and only the uid changes.

#[cfg(test)]
#[path = "review/tests/recorded.rs"]
mod recorded;
mod request;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(super) use self::request::{Actor, Options};
use super::expected::Expected;
use super::objects::{Identity, Kind};
use crate::arrivals::Recorded;
use crate::seed::UID_LEN;

/// The text that stands where each call writes its uid.
pub(super) const PLACEHOLDER: &str = "00000000-0000-0000-0000-000000000000";

#[derive(Debug, Clone)]
pub(super) struct Review {
    /// The kind of the fields `object` and `oldObject`.
    pub kind: Kind,
    /// The kind of the requested resource, which differs from `kind` for `scale`, `eviction` and `binding`.
    pub resource: Kind,
    pub sub_resource: Option<&'static str>,
    pub operation: Operation,
    pub identity: Identity,
    pub actor: Actor,
    pub options: Options,
    pub dry_run: bool,
    pub object: Option<Value>,
    pub old: Option<Value>,
    /// Whether the review is an attack, so that refusing it because of load is a right answer.
    pub hostile: bool,
}

/// An operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted.
    Delete,
}

impl Operation {
    /// The operation as in a review: `CREATE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The operation as the first part of its options' kind, such as `Create` in `CreateOptions`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }
}

impl Review {
    pub(super) fn create(kind: Kind, identity: &Identity, actor: Actor, object: Value) -> Self {
        Self {
            kind,
            resource: kind,
            sub_resource: None,
            operation: Operation::Create,
            identity: identity.clone(),
            actor,
            options: Options::Write(None),
            dry_run: false,
            object: Some(object),
            old: None,
            hostile: false,
        }
    }

    /// An UPDATE review. The old object of the review has no `managedFields`.
    pub(super) fn update(kind: Kind, identity: &Identity, actor: Actor, object: Value, mut old: Value) -> Self {
        if let Some(metadata) = old["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let created = Self::create(kind, identity, actor, object);
        Self { operation: Operation::Update, old: Some(old), ..created }
    }

    pub(super) fn delete(kind: Kind, identity: &Identity, actor: Actor, options: Options, old: Value) -> Self {
        let created = Self::create(kind, identity, actor, Value::Null);
        Self { operation: Operation::Delete, options, object: None, old: Some(old), ..created }
    }

    /// Sets the field manager of the request.
    pub(super) fn managed_by(self, manager: &'static str) -> Self {
        Self { options: Options::Write(Some(manager)), ..self }
    }

    pub(super) fn hostile(self) -> Self {
        Self { hostile: true, ..self }
    }

    /// Sets the subresource of the request.
    pub(super) fn through(self, sub_resource: &'static str, resource: Kind) -> Self {
        Self { resource, sub_resource: Some(sub_resource), ..self }
    }

    /// The object whose image fields are not checked again if they are unchanged: the old object, or a new `ReplicaSet`
    /// itself, because its template is a copy from its Deployment. A webhook that pins images leaves such copies alone,
    /// because the Deployment controller recognises its `ReplicaSet`s by equal templates (google/k8s-digester, issue
    /// 25). The Pods of a copied `ReplicaSet` are checked in any case.
    pub(super) fn known(&self) -> Option<&Value> {
        let is_copy = matches!(self.actor, Actor::ControllerOf(Kind::Deployment));
        self.object.as_ref().filter(|_| is_copy && self.operation == Operation::Create).or(self.old.as_ref())
    }

    /// The body with the placeholder for the uid.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&Envelope::of(self)).expect("strings and JSON values always serialise")
    }

    fn label(&self) -> String {
        let Identity { namespace, name, generate_name, .. } = &self.identity;
        let sub = self.sub_resource.map(|sub| format!("/{sub}")).unwrap_or_default();
        let name = match generate_name {
            Some(prefix) if self.operation == Operation::Create && self.sub_resource.is_none() => format!("{prefix}*"),
            _ => name.clone(),
        };
        let at = if self.resource.is_namespaced() { format!("{namespace}/{name}") } else { name };
        format!("{}{sub} {} {at}", self.resource.name(), self.operation.name())
    }
}

/// A review that is ready to be sent, with its right answer.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a review that do not depend on each other")]
pub(super) struct Template {
    bytes: Vec<u8>,
    uid_at: usize,
    /// A label for messages: `Deployment CREATE shop/cart`.
    pub label: String,
    /// Whether the object of the review existed before and stays.
    pub updates: bool,
    pub dry_run: bool,
    /// Whether the review contains a whole new object, not only a part of one.
    pub examined: bool,
    /// Whether the called webhook may change the object.
    pub mutating: bool,
    /// Whether the review is an attack, so that refusing it because of load is a right answer.
    pub hostile: bool,
    /// The index of the webhook's path in the corpus; 0 is the path of the load's target.
    pub path: usize,
    pub expected: Expected,
    /// Set if the object is created by another review.
    pub later: Option<Later>,
}

/// A later operation on a project's own object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Later {
    /// The template number of the first review of the object's creation.
    pub created: u32,
    /// The JSON merge patch of the change.
    pub change: Value,
}

impl Template {
    pub(super) fn new(review: &Review, expected: Expected) -> Self {
        let updates = review.operation == Operation::Update;
        // An object that the controller of Deployments makes is allowed unchanged.
        let examined = review.object.is_some() && review.sub_resource.is_none();
        let is_copy = review.operation == Operation::Create && review.known().is_some();
        let (hostile, dry_run, examined) = (review.hostile, review.dry_run, examined && !is_copy);
        Self { updates, dry_run, examined, hostile, ..Self::of(review.to_bytes(), review.label(), expected) }
    }

    /// A template from bytes that have the placeholder instead of the uid.
    pub(super) fn of(bytes: Vec<u8>, label: String, expected: Expected) -> Self {
        // The uid is the first field after the constant head, so the first match is the right one.
        let uid_at = bytes
            .windows(UID_LEN)
            .position(|window| window == PLACEHOLDER.as_bytes())
            .expect("the envelope was just written with the placeholder");
        Self {
            bytes,
            uid_at,
            label,
            updates: false,
            dry_run: false,
            examined: false,
            mutating: true,
            hostile: false,
            path: 0,
            expected,
            later: None,
        }
    }

    /// Sets the creation to which the review belongs.
    pub(super) fn later(self, later: Later) -> Self {
        Self { later: Some(later), ..self }
    }

    /// Sets the path, whether the webhook is mutating, and whether the object of the review existed before and stays.
    pub(super) fn answered_at(self, path: usize, mutating: bool, updates: bool) -> Self {
        Self { updates, mutating, path, ..self }
    }

    pub(super) fn again(&self) -> Self {
        self.written(self.bytes.clone())
    }

    /// The same review with another object and another old object. `None` leaves the object, or the old object,
    /// unchanged.
    pub(super) fn about(&self, object: Option<&Value>, old: Option<&Value>) -> Self {
        let mut review: Value = serde_json::from_slice(&self.bytes).expect("the template was serialised from JSON");
        for (key, value) in [("object", object), ("oldObject", old)] {
            if let Some(value) = value {
                review["request"][key] = value.clone();
            }
        }
        self.written(review.to_string().into_bytes())
    }

    /// The same review with other bytes, which contain the placeholder for the uid.
    fn written(&self, bytes: Vec<u8>) -> Self {
        Self {
            updates: self.updates,
            dry_run: self.dry_run,
            examined: self.examined,
            mutating: self.mutating,
            hostile: self.hostile,
            path: self.path,
            later: self.later.clone(),
            ..Self::of(bytes, self.label.clone(), self.expected.clone())
        }
    }

    /// A review from a recording, whose right answer is unknown. The uid of the review is at the position `uid_at`.
    pub(super) fn recorded(recorded: Recorded) -> Self {
        let Recorded { bytes, uid_at, label } = recorded;
        Self {
            bytes,
            uid_at,
            label,
            updates: false,
            dry_run: false,
            examined: false,
            mutating: true,
            hostile: false,
            path: 0,
            expected: Expected::Any,
            later: None,
        }
    }

    /// The body of one call.
    pub(super) fn with_uid(&self, uid: &[u8; UID_LEN]) -> Bytes {
        let mut body = self.bytes.clone();
        body[self.uid_at..self.uid_at + UID_LEN].copy_from_slice(uid);
        body.into()
    }

    /// The body of one call in three byte slices, without a copy: before the uid, the uid, after the uid.
    pub(super) fn around<'a>(&'a self, uid: &'a [u8; UID_LEN]) -> [&'a [u8]; 3] {
        [&self.bytes[..self.uid_at], uid, &self.bytes[self.uid_at + UID_LEN..]]
    }

    /// The bytes with the placeholder for the uid, for fingerprints.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The object of the review, parsed again for wrong and unusual answers; `Null` for a DELETE.
    pub(super) fn object(&self) -> Value {
        let mut review: Value = serde_json::from_slice(&self.bytes).expect("the template was serialised from JSON");
        review["request"]["object"].take()
    }

    /// The old object, parsed again; `Null` for a CREATE.
    pub(super) fn old(&self) -> Value {
        let mut review: Value = serde_json::from_slice(&self.bytes).expect("the template was serialised from JSON");
        review["request"]["oldObject"].take()
    }
}

/// The fields of a review in the order in which kube-apiserver writes them.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    operation: &'static str,
    user_info: Value,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
    dry_run: bool,
    options: Value,
}

impl<'a> Envelope<'a> {
    fn of(review: &'a Review) -> Self {
        let Review { kind, resource, operation, identity, .. } = review;
        let group_kind = json!({"group": kind.group(), "version": kind.version(), "kind": kind.name()});
        let of = json!({"group": resource.group(), "version": resource.version(), "resource": resource.plural()});
        // A name that the API server will generate is not known yet; a subresource belongs to an object that has a
        // name.
        let unnamed =
            *operation == Operation::Create && identity.generate_name.is_some() && review.sub_resource.is_none();
        // A review of a Namespace is in that namespace itself.
        let namespaced = resource.is_namespaced() || *resource == Kind::Namespace;
        Self {
            kind: "AdmissionReview",
            api_version: "admission.k8s.io/v1",
            request: Request {
                uid: PLACEHOLDER,
                request_kind: group_kind.clone(),
                request_resource: of.clone(),
                kind: group_kind,
                resource: of,
                sub_resource: review.sub_resource,
                request_sub_resource: review.sub_resource,
                name: (!unnamed).then_some(identity.name.as_str()),
                namespace: namespaced.then_some(identity.namespace.as_str()),
                operation: operation.name(),
                user_info: review.actor.user_info(),
                object: review.object.as_ref(),
                old_object: review.old.as_ref(),
                dry_run: review.dry_run,
                options: review.options.json(operation.verb(), review.dry_run),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    /// Every body of a plan is valid JSON, and two calls of one review differ only in the uid.
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
