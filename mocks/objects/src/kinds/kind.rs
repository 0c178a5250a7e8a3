//! The type `Kind`, which describes one built-in kind.
//!
//! Owns the meaning of the fields of `Kind`. [`Kind::namespaced`] sets the fields to the values that most kinds have.
//! This module must not contain the names of kinds.

use jiff::Timestamp;
use serde_json::Value;

use super::print::{PLAIN, Printer};
use crate::status::Cause;

/// Why an object is refused, one cause for each error.
pub(crate) type Causes = Vec<Cause>;

/// A protobuf message and its fields in the notation of `protobuf::schema`.
pub(crate) type Message = &'static str;

/// All facts about one built-in kind.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Kind {
    /// The API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The versions; the first one is preferred and stored.
    pub(crate) versions: &'static [&'static str],
    /// The plural name, which paths contain.
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    /// Short names for `kubectl`: `po` or `svc`.
    pub(crate) short_names: &'static [&'static str],
    /// Groups of resources for `kubectl get`: `all`.
    pub(crate) categories: &'static [&'static str],
    /// Whether the objects are in namespaces.
    pub(crate) namespaced: bool,
    /// The description for `kubectl explain`; empty if there is none.
    pub(crate) about: &'static str,

    pub(crate) status: bool,
    pub(crate) scale: bool,
    /// Subresources other than `status` and `scale`.
    pub subresources: &'static [Subresource],

    /// The protobuf messages that only this kind has.
    pub(crate) messages: &'static [Message],
    /// `(apiVersion, message)` of versions in which the protobuf message has another name than the kind.
    pub(crate) message_of: &'static [(&'static str, &'static str)],
    /// Returns the OpenAPI schema of the kind, which replaces the schema made from the protobuf messages.
    pub(crate) schema: Option<fn() -> Value>,
    /// `(path, key)` of lists whose items a patch finds by a key. Lists of pods and `status.conditions` need no entry.
    pub(crate) merge_keys: &'static [(&'static [&'static str], &'static str)],
    /// `(message, field, strategy, key)`: merge strategies of lists that the OpenAPI documents publish. Strategies of
    /// types that several kinds share need no entry.
    pub(crate) published_merges: &'static [(&'static str, &'static str, &'static str, &'static str)],
    /// The path of the pod specification in an object of this kind.
    pub(crate) pod_spec: &'static [&'static str],
    /// Names of fields for field selectors, each with JSON pointers. The value is at the path that the name spells; if
    /// pointers are given, the value is at the first pointer that exists in the object.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// `(field, value)`: the value that a selector finds if no client set the field. Without an entry, the value is
    /// empty.
    pub(crate) selectable_unset: &'static [(&'static str, &'static str)],
    /// The columns of `kubectl get`.
    pub(crate) printer: Printer,

    /// For a kind that only shows the objects of another kind: that kind and the conversion.
    pub(crate) mirror: Option<Mirror>,
    /// How to remove and restore fields that are shown although no client set them. Such fields have no owner in
    /// `managedFields`.
    pub bare: Option<Bare>,

    /// Fills in defaults in new and in updated objects.
    pub(crate) defaults: fn(&mut Value),
    /// Fills in defaults that need the current time.
    pub(crate) defaults_at: fn(&mut Value, Timestamp),
    /// Sets fields of a new object only, such as an initial status.
    pub(crate) new: fn(&mut Value),
    /// Sets the fields of a new object that depend on its name and uid.
    pub(crate) named: fn(&mut Value),
    /// Time fields of conditions that are shown as null if no client set them.
    pub(crate) condition_times: &'static [&'static str],

    pub(crate) names: Names,
    /// Whether the names of finalizers need no domain, as in custom resources.
    pub(crate) plain_finalizers: bool,
    /// Checks a new or an updated object.
    pub(crate) check: fn(&Value, &mut Causes),
    pub(crate) check_new: fn(&Value, &mut Causes),
    /// JSON pointers of fields that an update must not change.
    pub(crate) fixed: &'static [&'static str],
    /// Additional checks of an update; the arguments are the new object and the old one.
    pub(crate) check_update: fn(&Value, &Value, &mut Causes),
    /// `(field, whether it is base64)` of maps that together may contain at most 1 MiB.
    pub(crate) data: &'static [(&'static str, bool)],

    /// Which changes increment `metadata.generation`.
    pub(crate) generation: Generation,
    /// Increments generation numbers other than `metadata.generation` in an update; the arguments are the new object
    /// and the old one.
    pub(crate) count: fn(&mut Value, &Value),
    /// Restores fields of the old status that an update of the status must not change; the arguments are the new object
    /// and the old one.
    pub(crate) carry_status: fn(&mut Value, &Value),
    /// The metadata that an update of the status may change.
    pub(crate) status_metadata: &'static [&'static str],
    /// Adapts the status after a change of the specification.
    pub(crate) follow_status: fn(&mut Value),

    /// Whether an update must contain a `resourceVersion`.
    pub needs_revision: bool,
    /// Whether an update of an object that does not exist creates the object.
    pub created_by_update: bool,
    /// Whether the answer to a DELETE contains the object instead of a `Status`.
    pub shown_when_deleted: bool,
    /// Whether the dependents of an object of this kind stay by default when it is deleted, as old clients expect.
    pub orphans: bool,
    /// Whether a new object keeps the status that the client sent.
    pub(crate) keeps_status: bool,
    /// Whether clients can delete all objects of a namespace with one request.
    pub deletes_collections: bool,
    /// Names of objects that are never deleted.
    pub immortal: &'static [&'static str],
    /// How long deletions of this kind take.
    pub ending: Ending,
    /// Whether reads bypass the real server's watch cache; etcd then refuses bad revisions with its own messages.
    pub uncached: bool,
    /// The type of a review, if objects of this kind are answered and never stored.
    pub review: Option<Review>,
    /// How the server itself uses the objects.
    pub meaning: Meaning,
}

/// A subresource other than `status` and `scale`.
#[derive(Debug)]
pub struct Subresource {
    /// The name of the subresource in paths.
    pub name: &'static str,
    /// The kind of the request body.
    pub kind: &'static str,
    /// The group and version of the body's kind; empty if they are those of the resource.
    pub group_version: (&'static str, &'static str),
    /// The verbs of the subresource in the order of discovery.
    pub verbs: &'static [&'static str],
    /// How the subresource changes some fields of the object; `None` if it does not.
    pub part: Option<Part>,
}

/// How a subresource changes fields that only this subresource may write.
#[derive(Debug)]
pub struct Part {
    /// Copies the fields from the second object, which the client sent, into the first, which is stored.
    pub write: fn(&mut Value, &Value),
    /// Checks an update of the fields; the arguments are the new object and the old one.
    pub check: fn(&Value, &Value, &mut Vec<Cause>),
}

/// How a kind shows the objects of another kind.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The full name of the resource that stores the objects.
    pub(crate) of: &'static str,
    /// Converts an object into the stored form.
    pub(crate) to_stored: fn(&mut Value),
    /// Converts a stored object into the form of this kind.
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
    /// No change increments the generation: plain data has none.
    None,
    /// Changes of fields other than metadata and status increment the generation.
    Spec,
    /// Changes of annotations increment the generation as well.
    SpecAndAnnotations,
    /// Changes of labels increment the generation as well.
    SpecAndLabels,
}

/// How long a deletion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// An object without finalizers is removed at once.
    AtOnce,
    /// A Pod is removed after its programs have ended, at most after its grace period.
    Graceful,
    /// A namespace is removed once it is empty, which `spec.finalizers` shows.
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

/// How the server itself uses the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The server only stores the objects.
    Data,
    /// Namespaces contain other objects.
    Namespace,
    /// Admission completes Pods; the API has tokens, bindings and evictions for them.
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
    /// The server can combine the rules of several cluster roles into one.
    ClusterRole,
    /// Definitions add resources to the server.
    Definition,
    /// The configurations name the webhooks that admission calls.
    Webhooks,
}

impl Kind {
    /// A namespaced kind; all other fields have the values of most kinds.
    pub(super) const fn namespaced(
        group: &'static str,
        versions: &'static [&'static str],
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group,
            versions,
            plural,
            kind,
            short_names: &[],
            categories: &[],
            namespaced: true,
            about: "",
            status: false,
            scale: false,
            subresources: &[],
            messages: &[],
            message_of: &[],
            schema: None,
            merge_keys: &[],
            published_merges: &[],
            pod_spec: &["spec", "template", "spec"],
            selectable: &[],
            selectable_unset: &[],
            printer: PLAIN,
            mirror: None,
            bare: None,
            defaults: |_| {},
            defaults_at: |_, _| {},
            new: |_| {},
            named: |_| {},
            condition_times: &[],
            names: Names::Subdomain,
            plain_finalizers: false,
            check: |_, _| {},
            check_new: |_, _| {},
            fixed: &[],
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
            deletes_collections: true,
            immortal: &[],
            ending: Ending::AtOnce,
            uncached: false,
            review: None,
            meaning: Meaning::Data,
        }
    }

    /// A cluster-scoped kind; all other fields have the values of most kinds.
    pub(super) const fn cluster(
        group: &'static str,
        versions: &'static [&'static str],
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, versions, plural, kind) }
    }

    /// A kind whose objects are answered and never stored.
    pub(super) const fn review(
        review: Review,
        namespaced: bool,
        (group, plural, kind): (&'static str, &'static str, &'static str),
        messages: &'static [Message],
    ) -> Self {
        Self { namespaced, review: Some(review), messages, ..Self::namespaced(group, &["v1"], plural, kind) }
    }

    /// The plural with the group: `cronjobs.batch` or `pods`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// How a subresource changes some fields of the object; `None` if it does not.
    pub fn part(&self, subresource: Option<&str>) -> Option<&'static Part> {
        self.subresources.iter().find(|one| Some(one.name) == subresource)?.part.as_ref()
    }

    /// Whether the kind has this subresource; `status` and `scale` do not count.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one.name == subresource)
    }
}

/// The `Kind` of all custom resources; their `CustomResourceDefinition`s contain the facts that differ.
pub(crate) static CUSTOM: Kind =
    Kind { status_metadata: &[], plain_finalizers: true, needs_revision: true, ..Kind::namespaced("", &[], "", "") };
