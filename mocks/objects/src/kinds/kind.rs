//! The type `Kind`, which describes one built-in kind.
//!
//! Owns the meaning of each field of `Kind`. A field that the static of a kind does not set has the value that most
//! kinds have, see [`Kind::of`]. This module must not name a specific kind.

use jiff::Timestamp;
use serde_json::Value;

use super::print::{Cells, plain};
use crate::status::Cause;

/// Why an object is refused: one `details.causes` entry for each error.
pub(crate) type Causes = Vec<Cause>;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Kind {
    /// The full name of the kind's resource, such as `deployments.apps` or `pods`. The module `builtin` owns the
    /// published names, versions and columns.
    pub(crate) name: &'static str,
    /// The description of the kind for `kubectl explain`; may be empty.
    pub(crate) about: &'static str,
    /// `(subresource, part)`: the fields that a `PUT` of a subresource writes.
    pub parts: &'static [(&'static str, SubresourceFields)],
    /// `(field, pointers)`: the fields that a field selector can name by another text than the path of the field's
    /// value. The first pointer with a value counts.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// `(field, value)`: the value that a selector finds if no client set the field. Without an entry, the value is
    /// empty.
    pub(crate) selectable_unset: &'static [(&'static str, &'static str)],
    /// Annotations that the server makes from fields of the object. `PartialObjectMetadata` omits these annotations.
    pub annotations_of_fields: &'static [&'static str],
    /// Makes the cells for the columns of `kubectl get`.
    pub(crate) cells: Cells,

    /// For a kind that only shows the objects of another kind: that kind and the conversion.
    pub(crate) mirror: Option<Mirror>,
    /// A version whose objects have other fields than stored objects.
    pub(crate) older: Option<Older>,
    /// How to remove and restore fields that are shown although no client set them. Fields that no client set have no
    /// owner in `managedFields`.
    pub bare: Option<Bare>,

    /// Fills in defaults in new and in updated objects.
    pub(crate) defaults: fn(&mut Value),
    /// Fills in defaults that need the current time.
    pub(crate) defaults_at: fn(&mut Value, Timestamp),
    /// Sets fields that only a new object gets, such as an initial status.
    pub(crate) new: fn(&mut Value),
    /// Sets the fields of a new object that depend on its name and uid.
    pub(crate) named: fn(&mut Value),

    pub(crate) names: Names,
    /// Whether the names of finalizers need no domain, as in custom resources.
    pub(crate) plain_finalizers: bool,
    /// Checks a new or an updated object.
    pub(crate) check: fn(&Value, &mut Causes),
    pub(crate) check_new: fn(&Value, &mut Causes),
    /// JSON pointers of fields that an update must not change.
    pub(crate) fixed: &'static [&'static str],
    /// JSON pointers of fields whose change is refused as forbidden: `(pointer, why)`.
    pub(crate) forbidden: &'static [(&'static str, &'static str)],
    /// Fields that the server removes because their features are off by default: `(pointer of the object, field)`.
    pub(crate) disabled: &'static [(&'static str, &'static str)],
    /// Additional checks of an update; the arguments are the new object and the old object.
    pub(crate) check_update: fn(&Value, &Value, &mut Causes),
    /// `(field, whether its values are base64)` of maps that together may contain at most 1 MiB.
    pub(crate) data: &'static [(&'static str, bool)],

    /// Which changes increment `metadata.generation`.
    pub(crate) generation: Generation,
    /// Increments generation numbers other than `metadata.generation` in an update; the arguments are the new object
    /// and the old object.
    pub(crate) count: fn(&mut Value, &Value),
    /// Restores fields of the old status that an update of the status must not change; the arguments are the new object
    /// and the old object.
    pub(crate) carry_status: fn(&mut Value, &Value),
    /// The fields of `metadata` that an update of the status may change.
    pub(crate) status_metadata: &'static [&'static str],
    /// Adapts the object's status after a change of its specification.
    pub(crate) follow_status: fn(&mut Value),

    /// Whether an update must contain a `resourceVersion`.
    pub needs_revision: bool,
    /// Whether an update of an object that does not exist creates the object.
    pub created_by_update: bool,
    /// Whether the answer to a DELETE contains the object instead of a `Status`.
    pub shown_when_deleted: bool,
    /// Whether the deletion of an object by default keeps the object's dependents, as old clients expect.
    pub orphans: bool,
    /// Whether a new object keeps the status that the client sent.
    pub(crate) keeps_status: bool,
    /// Names of objects that are never deleted.
    pub immortal: &'static [&'static str],
    /// How long the deletion of an object of this kind takes.
    pub ending: Ending,
    /// Whether reads bypass the real server's watch cache, so that etcd refuses bad revisions with its own messages.
    pub uncached: bool,
    /// The type of a review, if objects of this kind are answered and never stored.
    pub review: Option<Review>,
    /// How the server itself uses the objects.
    pub meaning: Meaning,
}

/// Fields of an object that only a subresource writes.
#[derive(Debug)]
pub struct SubresourceFields {
    /// Copies the fields from the second object, which the client sent, into the first object, which is stored.
    pub write: fn(&mut Value, &Value),
    /// Checks an update of the fields; the arguments are the new object and the old object.
    pub check: fn(&Value, &Value, &mut Vec<Cause>),
}

/// How a kind shows the objects of another kind.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The full name of the resource that stores the objects.
    pub(crate) of: &'static str,
    /// Converts an object of this kind or version into the object that is stored.
    pub(crate) to_stored: fn(&mut Value),
    /// Converts a stored object into an object of this kind.
    pub(crate) from_stored: fn(&mut Value),
}

/// A version whose objects are converted when they are read and written.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) api_version: &'static str,
    /// Converts an object of this kind or version into the object that is stored.
    pub(crate) to_stored: fn(&mut Value),
    /// Converts a stored object into an object of this version.
    pub(crate) from_stored: fn(&mut Value),
}

/// How to remove and restore fields that no client set.
#[derive(Debug)]
pub struct Bare {
    pub unfill: fn(&mut Value),
    pub fill: fn(&mut Value),
}

/// The rules for names of objects ("Object Names and IDs").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Subdomain,
    Label,
    /// Any text that can be a segment of a URL path.
    Path,
    /// Any text of any length that can be a segment of a URL path.
    LongPath,
}

/// Which changes increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// No change increments the generation, because the kind has no generation.
    None,
    /// Changes of fields other than metadata and status increment the generation, and a new object has no generation.
    Updates,
    /// Changes of fields other than metadata and status increment the generation.
    Spec,
    /// Changes of annotations and of fields other than metadata and status increment the generation.
    SpecAndAnnotations,
    /// Changes of labels and of fields other than metadata and status increment the generation.
    SpecAndLabels,
}

/// How long a deletion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// An object without finalizers is removed at once.
    AtOnce,
    /// A Pod is removed after its programs have ended, at most after its grace period.
    Graceful,
    /// A namespace is removed once it is empty and `spec.finalizers` is empty.
    Emptied,
}

/// Types of objects that the server answers and never stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// Assigns a node to a pod.
    Binding,
    /// Asks for the user of a token.
    Token,
    /// Asks for the caller's user name and groups.
    Myself,
    /// Asks for a permission of a user.
    Access,
    /// Asks for a permission of the caller.
    MyAccess,
    /// Asks for a permission of a user in one namespace.
    LocalAccess,
    /// Asks for all rules of the caller.
    MyRules,
}

impl Review {
    /// Whether the review is about the caller.
    pub fn is_about_myself(self) -> bool {
        matches!(self, Self::Myself | Self::MyAccess | Self::MyRules)
    }
}

/// Whether and how the server itself uses the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The server only stores the objects.
    Data,
    /// Namespaces contain other objects.
    Namespace,
    /// Admission plugins complete Pods; Pods have bindings and evictions.
    Pod,
    /// The server gives addresses to Services.
    Service,
    /// The server makes the `ServiceAccount` `default` in every namespace.
    ServiceAccount,
    /// The server makes one `ConfigMap` with its authority's certificate in every namespace.
    ConfigMap,
    /// Admission gives claims a storage class.
    Claim,
    /// Admission allows only one default priority class.
    PriorityClass,
    /// The server can combine the rules of several cluster roles into one cluster role.
    ClusterRole,
    /// Definitions add resources to the server.
    Definition,
    /// The objects configure the webhooks that admission calls.
    Webhooks,
    /// The policies and bindings refuse objects by rules in CEL.
    Policy,
    /// Quotas limit the resources that a namespace uses.
    Quota,
    /// The server writes the caller into certificate requests.
    CertificateRequest,
}

impl Kind {
    /// A kind with this resource name; all other fields have the values that most kinds have.
    pub(super) const fn of(name: &'static str) -> Self {
        Self {
            name,
            about: "",
            parts: &[],
            selectable: &[],
            selectable_unset: &[],
            annotations_of_fields: &[],
            cells: plain,
            mirror: None,
            older: None,
            bare: None,
            defaults: |_| {},
            defaults_at: |_, _| {},
            new: |_| {},
            named: |_| {},
            names: Names::Subdomain,
            plain_finalizers: false,
            check: |_, _| {},
            check_new: |_, _| {},
            fixed: &[],
            forbidden: &[],
            disabled: &[],
            check_update: |_, _, _| {},
            data: &[],
            generation: Generation::Spec,
            count: |_, _| {},
            carry_status: |_, _| {},
            follow_status: |_| {},
            status_metadata: &["labels", "annotations", "finalizers"],
            needs_revision: false,
            created_by_update: false,
            shown_when_deleted: false,
            orphans: false,
            keeps_status: false,
            immortal: &[],
            ending: Ending::AtOnce,
            uncached: false,
            review: None,
            meaning: Meaning::Data,
        }
    }

    /// A kind of reviews, which are answered and never stored.
    pub(super) const fn review(name: &'static str, review: Review) -> Self {
        Self { review: Some(review), ..Self::of(name) }
    }

    /// The fields of the object that only this subresource writes; `None` if there are no such fields.
    pub fn part(&self, subresource: Option<&str>) -> Option<&'static SubresourceFields> {
        self.parts.iter().find(|(name, _)| Some(*name) == subresource).map(|(_, part)| part)
    }
}

/// The behaviour of built-in kinds without a static of their own.
pub(super) static PLAIN: Kind = Kind::of("");

/// The `Kind` of all custom resources; their `CustomResourceDefinition`s contain the facts that differ.
pub(crate) static CUSTOM: Kind =
    Kind { status_metadata: &[], plain_finalizers: true, needs_revision: true, ..Kind::of("") };
