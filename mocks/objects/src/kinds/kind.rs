//! The type of a kind's row.
//!
//! Owns the meaning of each column. A column that a row does not set has the value of most kinds, see
//! [`Kind::of`]. It must not name a kind.

use jiff::Timestamp;
use serde_json::Value;

use super::print::{Cells, plain};
use crate::status::Cause;

/// Why an object is refused.
pub(crate) type Causes = Vec<Cause>;

/// One built-in kind.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Kind {
    /// The full name of its resource: `deployments.apps`, `pods`. All facts that a client is shown stand in `builtin`.
    pub(crate) name: &'static str,
    /// The text of `kubectl explain`; empty for none.
    pub(crate) about: &'static str,
    /// What `PUT` of a subresource writes: `(name, part)`.
    pub parts: &'static [(&'static str, Part)],
    /// `(field, pointers)`: selectable fields whose values stand elsewhere than their names say: the first that is set.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// `(field, value)`: the value that a selector finds if no client set the field, because the real type has no
    /// absent value; otherwise the empty text.
    pub(crate) selectable_unset: &'static [(&'static str, &'static str)],
    /// A cell for each column of `kubectl get`.
    pub(crate) cells: Cells,

    /// The kind that holds the objects, if this kind only shows them in another form.
    pub(crate) mirror: Option<Mirror>,
    /// A version whose objects have another form than the stored ones.
    pub(crate) older: Option<Older>,
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

    pub(crate) names: Names,
    /// Whether finalizers need no domain, as in custom resources.
    pub(crate) plain_finalizers: bool,
    /// Checks an object.
    pub(crate) check: fn(&Value, &mut Causes),
    /// Checks a new object further.
    pub(crate) check_new: fn(&Value, &mut Causes),
    /// JSON pointers of fields that never change.
    pub(crate) fixed: &'static [&'static str],
    /// The same, refused as forbidden: `(pointer, why)`.
    pub(crate) forbidden: &'static [(&'static str, &'static str)],
    /// Fields of features that are off by default, which are dropped: `(pointer of the object, field)`.
    pub(crate) disabled: &'static [(&'static str, &'static str)],
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

/// A version whose objects are converted when they are read and written.
#[derive(Debug)]
pub(crate) struct Older {
    /// Its `apiVersion`.
    pub(crate) api_version: &'static str,
    /// Turns an object into the form that is stored.
    pub(crate) to_stored: fn(&mut Value),
    /// Turns what is stored into the form that is shown.
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
    /// All but metadata and status, and a new object has none.
    Updates,
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
    /// They refuse objects by rules in CEL.
    Policy,
    /// They bound what a namespace uses.
    Quota,
    /// They name the user that asks for a certificate.
    CertificateRequest,
}

impl Kind {
    /// A kind by the full name of its resource, with what most kinds have.
    pub(super) const fn of(name: &'static str) -> Self {
        Self {
            name,
            about: "",
            parts: &[],
            selectable: &[],
            selectable_unset: &[],
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

    /// A question that is answered and never stored.
    pub(super) const fn review(name: &'static str, review: Review) -> Self {
        Self { review: Some(review), ..Self::of(name) }
    }

    /// The part of the objects that a subresource writes.
    pub fn part(&self, subresource: Option<&str>) -> Option<&'static Part> {
        self.parts.iter().find(|(name, _)| Some(*name) == subresource).map(|(_, part)| part)
    }
}

/// What holds for built-in kinds with which the server does nothing of its own.
pub(super) static PLAIN: Kind = Kind::of("");

/// The row of custom resources; their definitions hold the other facts.
pub(crate) static CUSTOM: Kind =
    Kind { status_metadata: &[], plain_finalizers: true, needs_revision: true, ..Kind::of("") };
