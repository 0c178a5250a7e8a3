//! The type of a kind's row.
//!
//! Owns the meaning of each column. A column that a row does not set has the value of most kinds, see
//! [`Kind::namespaced`]. It must not name a kind.

use jiff::Timestamp;
use serde_json::Value;

use super::print::{PLAIN, Printer};
use crate::status::Cause;

/// Why an object is refused.
pub(crate) type Causes = Vec<Cause>;

/// A message and its fields in the notation of `protobuf::schema`.
pub(crate) type Message = &'static str;

/// One built-in kind.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Kind {
    /// Empty for the core group.
    pub(crate) group: &'static str,
    /// The preferred version first; it is the stored one.
    pub(crate) versions: &'static [&'static str],
    /// The name in paths.
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    /// For example `po` or `svc`.
    pub(crate) short_names: &'static [&'static str],
    /// For example `all`.
    pub(crate) categories: &'static [&'static str],
    /// Whether the objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The text of `kubectl explain`; empty for none.
    pub(crate) about: &'static str,

    /// Whether the kind has the subresource `status`.
    pub(crate) status: bool,
    /// Whether the kind has the subresource `scale`.
    pub(crate) scale: bool,
    /// All other subresources.
    pub subresources: &'static [Subresource],

    /// The types that no other kind has.
    pub(crate) messages: &'static [Message],
    /// `(apiVersion, message)`, if the message has another name than the kind.
    pub(crate) message_of: &'static [(&'static str, &'static str)],
    /// Replaces the schema made from the messages.
    pub(crate) schema: Option<fn() -> Value>,
    /// `(path, key)`: lists whose items a patch finds by a key, beside those of pods and `status.conditions`.
    pub(crate) merge_keys: &'static [(&'static [&'static str], &'static str)],
    /// `(message, field, strategy, key)`: the published merge strategies of lists, beside those of shared types.
    pub(crate) published_merges: &'static [(&'static str, &'static str, &'static str, &'static str)],
    /// The path of the pod specification in an object.
    pub(crate) pod_spec: &'static [&'static str],
    /// The fields that field selectors may name beside the metadata. The value is at the path in the name, or at the
    /// first pointer behind the name that is set.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// `(field, value)`: the value that a selector finds if no client set the field, because the real type has no
    /// absent value; otherwise the empty text.
    pub(crate) selectable_unset: &'static [(&'static str, &'static str)],
    /// The columns of `kubectl get`.
    pub(crate) printer: Printer,

    /// The kind that holds the objects, if this kind only shows them in another form.
    pub(crate) mirror: Option<Mirror>,
    /// How fields are removed and restored that are shown although no client set them. Such fields have no owner.
    pub bare: Option<Bare>,

    /// Fills in defaults, in new objects and in updates.
    pub(crate) defaults: fn(&mut Value),
    /// Fills in defaults that need the time.
    pub(crate) defaults_at: fn(&mut Value, Timestamp),
    /// Sets the fields of a new object only: a status.
    pub(crate) new: fn(&mut Value),
    /// Sets the fields of a new object that need its name and uid.
    pub(crate) named: fn(&mut Value),
    /// The times of conditions that are shown as null if no client set them.
    pub(crate) condition_times: &'static [&'static str],

    pub(crate) names: Names,
    /// Whether finalizers need no domain, as in custom resources.
    pub(crate) plain_finalizers: bool,
    /// Checks an object.
    pub(crate) check: fn(&Value, &mut Causes),
    /// Checks a new object further.
    pub(crate) check_new: fn(&Value, &mut Causes),
    /// JSON pointers of fields that never change.
    pub(crate) fixed: &'static [&'static str],
    /// Further checks of an update: the new object, the old one.
    pub(crate) check_update: fn(&Value, &Value, &mut Causes),
    /// `(field, whether it is base64)`: the maps that hold at most 1 MiB together.
    pub(crate) data: &'static [(&'static str, bool)],

    /// The changes that increment `metadata.generation`.
    pub(crate) generation: Generation,
    /// Further counters of an update: the new object, the old one.
    pub(crate) count: fn(&mut Value, &Value),
    /// Restores the parts of the old status that an update of the status may not change: the new object, the old one.
    pub(crate) carry_status: fn(&mut Value, &Value),
    /// The metadata that a status update may change.
    pub(crate) status_metadata: &'static [&'static str],
    /// Updates the status after a change of the specification.
    pub(crate) follow_status: fn(&mut Value),

    /// Whether an update must name the version that it was made from.
    pub needs_revision: bool,
    /// Whether an update of an absent object creates it.
    pub created_by_update: bool,
    /// Whether a DELETE returns the object instead of a `Status`.
    pub shown_when_deleted: bool,
    /// Whether dependents stay if the caller names no propagation, for old clients.
    pub orphans: bool,
    /// Whether a new object keeps the status that it comes with.
    pub(crate) keeps_status: bool,
    /// Whether all objects of a namespace can be deleted at once.
    pub deletes_collections: bool,
    /// Names of objects that are never deleted.
    pub immortal: &'static [&'static str],
    /// How long a deletion takes.
    pub ending: Ending,
    /// Whether reads bypass the cache: etcd then refuses bad revisions in its own words.
    pub uncached: bool,
    /// The question, if the kind is a review that is answered and never stored.
    pub review: Option<Review>,
    /// The server's own use of the objects.
    pub meaning: Meaning,
}

/// A subresource that is neither `status` nor `scale`.
#[derive(Debug)]
pub struct Subresource {
    /// The name in paths.
    pub name: &'static str,
    /// The kind of the body.
    pub kind: &'static str,
    /// The group and version of the body's kind; empty for those of the resource.
    pub group_version: (&'static str, &'static str),
    /// In the order of discovery.
    pub verbs: &'static [&'static str],
    /// The part of the object that is read and written through the subresource.
    pub part: Option<Part>,
}

/// A part of an object that only its subresource writes.
#[derive(Debug)]
pub struct Part {
    /// Copies the part from the second object, which was sent, into the first, which is stored.
    pub write: fn(&mut Value, &Value),
    /// Checks an update of the part: the new object, the old one.
    pub check: fn(&Value, &Value, &mut Vec<Cause>),
}

/// A kind whose objects another kind holds.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The full name of the resource that holds them.
    pub(crate) of: &'static str,
    /// Turns an object into the stored form.
    pub(crate) to_stored: fn(&mut Value),
    /// Turns a stored object into the shown form.
    pub(crate) from_stored: fn(&mut Value),
}

/// How fields that no client set are removed and restored.
#[derive(Debug)]
pub struct Bare {
    pub unfill: fn(&mut Value),
    pub fill: fn(&mut Value),
}

/// The rule for names ("Object Names and IDs").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Subdomain,
    Label,
    /// A segment of a path.
    Path,
    /// A segment of a path, of any length.
    LongPath,
}

/// The changes that increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// None: plain data has no generation.
    None,
    /// All fields but metadata and status.
    Spec,
    /// Annotations as well.
    SpecAndAnnotations,
    /// Labels as well.
    SpecAndLabels,
}

/// How a deletion ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Without finalizers, at once.
    AtOnce,
    /// After the grace period of the programs inside.
    Graceful,
    /// After its content is gone, which `spec.finalizers` show.
    Emptied,
}

/// A question that is answered and never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// The node of a pod.
    Binding,
    /// The user of a token.
    Token,
    /// The caller's identity.
    Myself,
    /// The permissions of a user.
    Access,
    /// The caller's permissions.
    MyAccess,
    /// The permissions of a user in one namespace.
    LocalAccess,
    /// All rules for the caller.
    MyRules,
}

impl Review {
    /// Whether the question is about the caller.
    pub fn is_about_myself(self) -> bool {
        matches!(self, Self::Myself | Self::MyAccess | Self::MyRules)
    }
}

/// The server's own use of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// None: the server only keeps them.
    Data,
    /// They contain other objects.
    Namespace,
    /// Admission completes them; they have tokens, bindings and evictions.
    Pod,
    /// They get addresses.
    Service,
    /// Every namespace has one.
    ServiceAccount,
    /// Every namespace has one with the authority's certificate.
    ConfigMap,
    /// Admission gives them a storage class.
    Claim,
    /// Admission allows one default among them.
    PriorityClass,
    /// They can be aggregated from others.
    ClusterRole,
    /// They define resources.
    Definition,
    /// They configure webhooks.
    Webhooks,
}

impl Kind {
    /// A kind with namespaced objects and the values of most kinds.
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

    /// A kind of the whole cluster, with the values of most kinds.
    pub(super) const fn cluster(
        group: &'static str,
        versions: &'static [&'static str],
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, versions, plural, kind) }
    }

    /// A question that is answered and never stored.
    pub(super) const fn review(
        review: Review,
        namespaced: bool,
        (group, plural, kind): (&'static str, &'static str, &'static str),
        messages: &'static [Message],
    ) -> Self {
        Self { namespaced, review: Some(review), messages, ..Self::namespaced(group, &["v1"], plural, kind) }
    }

    /// For example `cronjobs.batch` or `pods`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The part of the objects that a subresource writes.
    pub fn part(&self, subresource: Option<&str>) -> Option<&'static Part> {
        self.subresources.iter().find(|one| Some(one.name) == subresource)?.part.as_ref()
    }

    /// Whether the kind has a subresource besides `status` and `scale`.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one.name == subresource)
    }
}

/// The row of custom resources; their definitions hold the other facts.
pub(crate) static CUSTOM: Kind =
    Kind { status_metadata: &[], plain_finalizers: true, needs_revision: true, ..Kind::namespaced("", &[], "", "") };
