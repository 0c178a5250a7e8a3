//! What a row says of a kind.
//!
//! Owns the type of the rows and what each column means. A column that a row does not name has the value that most kinds have, see
//! [`Kind::of`]. It must not name a kind.

use jiff::Timestamp;
use serde_json::Value;

use super::print::{Cells, plain};
use crate::status::Cause;

/// Why an object is refused.
pub(crate) type Causes = Vec<Cause>;

/// One built-in kind.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Kind {
    /// The full name of its resource: `deployments.apps`, `pods`. All facts that a client is shown stand in `builtin`.
    pub(crate) name: &'static str,
    /// What it is for, for `kubectl explain`; empty for none.
    pub(crate) about: &'static str,
    /// What `PUT` of a subresource writes: `(name, part)`.
    pub parts: &'static [(&'static str, Part)],
    /// `(field, pointers)`: selectable fields whose values stand elsewhere than their names say: the first that is set.
    pub(crate) selectable: &'static [(&'static str, &'static [&'static str])],
    /// `(field, value)`: what a selector finds where nobody set the field, because the real type has no absent value; otherwise
    /// the empty text.
    pub(crate) selectable_unset: &'static [(&'static str, &'static str)],
    /// A cell for each column of `kubectl get`.
    pub(crate) cells: Cells,

    /// Another kind holds the objects, which are shown here in another form.
    pub(crate) mirror: Option<Mirror>,
    /// A version whose objects have another form than the stored ones.
    pub(crate) older: Option<Older>,
    /// Fields that are shown when nobody set them have no owner.
    pub bare: Option<Bare>,

    /// Fills in what clients leave out, in new objects and in updates.
    pub(crate) defaults: fn(&mut Value),
    /// The same, where it needs the time.
    pub(crate) defaults_at: fn(&mut Value, Timestamp),
    /// What only a new object gets: a status.
    pub(crate) new: fn(&mut Value),
    /// What a new object gets with its name and its uid.
    pub(crate) named: fn(&mut Value),

    /// Which names are allowed.
    pub(crate) names: Names,
    /// Finalizers need no domain, as those of custom resources.
    pub(crate) plain_finalizers: bool,
    /// What is wrong with an object.
    pub(crate) check: fn(&Value, &mut Causes),
    /// What is wrong with a new one beside that.
    pub(crate) check_new: fn(&Value, &mut Causes),
    /// JSON pointers of fields that never change.
    pub(crate) fixed: &'static [&'static str],
    /// The same, refused as forbidden: `(pointer, why)`.
    pub(crate) forbidden: &'static [(&'static str, &'static str)],
    /// Fields of features that are off by default, which are dropped: `(pointer of the object, field)`.
    pub(crate) disabled: &'static [(&'static str, &'static str)],
    /// What else an update may not do: the new object, the old one.
    pub(crate) check_update: fn(&Value, &Value, &mut Causes),
    /// `(field, whether it is base64)`: the maps that hold at most 1 MiB together.
    pub(crate) data: &'static [(&'static str, bool)],

    /// What counts `metadata.generation` up.
    pub(crate) generation: Generation,
    /// What else an update counts: the new object, the old one.
    pub(crate) count: fn(&mut Value, &Value),
    /// What of the old object's status an update of the status may not change: the new object, the old one.
    pub(crate) carry_status: fn(&mut Value, &Value),
    /// The metadata that a status update may change.
    pub(crate) status_metadata: &'static [&'static str],
    /// What a change of anything else brings about in the status.
    pub(crate) follow_status: fn(&mut Value),

    /// An update must say which version it was made from.
    pub needs_revision: bool,
    /// An update of an object that is absent creates it.
    pub created_by_update: bool,
    /// A DELETE answers with the object, not with a `Status`.
    pub shown_when_deleted: bool,
    /// Dependents stay when the caller does not say what becomes of them, for the sake of old clients.
    pub orphans: bool,
    /// A new object keeps the status that it comes with.
    pub(crate) keeps_status: bool,
    /// Names of objects that are never deleted.
    pub immortal: &'static [&'static str],
    /// How long a deletion takes.
    pub ending: Ending,
    /// Reads go past no cache: etcd refuses what a cache would.
    pub uncached: bool,
    /// It is a question that is answered and never stored.
    pub review: Option<Review>,
    /// What the server itself does with the objects.
    pub meaning: Meaning,
}

/// A part of an object that only its subresource writes.
#[derive(Debug)]
pub struct Part {
    /// Puts the part of the second object, which was sent, into the first, which is stored.
    pub write: fn(&mut Value, &Value),
    /// What an update of it may not do: the new object, the old one.
    pub check: fn(&Value, &Value, &mut Vec<Cause>),
}

/// Where the objects of a kind are that another kind holds.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The full name of the resource that holds them.
    pub(crate) of: &'static str,
    /// Turns an object into the form that is stored.
    pub(crate) to_stored: fn(&mut Value),
    /// Turns what is stored into the form that is shown.
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

/// How fields that nobody set go and come back.
#[derive(Debug)]
pub struct Bare {
    /// Takes them away.
    pub unfill: fn(&mut Value),
    /// Puts them back.
    pub fill: fn(&mut Value),
}

/// Which names are allowed ("Object Names and IDs").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// What can stand in a path.
    Path,
    /// The same, of any length.
    LongPath,
}

/// What counts `metadata.generation` up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// There is none: plain data.
    None,
    /// All but metadata and status, and a new object has none.
    Updates,
    /// All but metadata and status.
    Spec,
    /// Annotations as well.
    SpecAndAnnotations,
    /// Labels as well.
    SpecAndLabels,
}

/// How long a deletion takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No longer than finalizers ask for.
    AtOnce,
    /// As long as the programs inside are given.
    Graceful,
    /// Until its content is gone, which `spec.finalizers` say.
    Emptied,
}

/// A question that is answered and never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// Where a pod runs.
    Binding,
    /// Whose token it is.
    Token,
    /// Who asks.
    Myself,
    /// What somebody may do.
    Access,
    /// What who asks may do.
    MyAccess,
    /// What somebody may do in one namespace.
    LocalAccess,
    /// All that who asks may do.
    MyRules,
}

impl Review {
    /// Whether it is about who asks.
    pub fn is_about_myself(self) -> bool {
        matches!(self, Self::Myself | Self::MyAccess | Self::MyRules)
    }
}

/// What the server itself does with the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It only keeps them.
    Data,
    /// They are rooms for names.
    Namespace,
    /// Admission completes them; they have tokens, bindings and evictions.
    Pod,
    /// They are given addresses.
    Service,
    /// Every namespace has one.
    ServiceAccount,
    /// Every namespace has one with the authority's certificate.
    ConfigMap,
    /// Admission gives them a storage class.
    Claim,
    /// Admission lets one be the default.
    PriorityClass,
    /// They are put together of others.
    ClusterRole,
    /// They make resources.
    Definition,
    /// They name webhooks.
    Webhooks,
    /// They refuse objects by rules in CEL.
    Policy,
    /// They bound what a namespace uses.
    Quota,
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

    /// The part of its objects that a subresource writes.
    pub fn part(&self, subresource: Option<&str>) -> Option<&'static Part> {
        self.parts.iter().find(|(name, _)| Some(*name) == subresource).map(|(_, part)| part)
    }
}

/// What holds for built-in kinds with which the server does nothing of its own.
pub(super) static PLAIN: Kind = Kind::of("");

/// What holds for custom resources, whose own facts are in their definitions.
pub(crate) static CUSTOM: Kind =
    Kind { status_metadata: &[], plain_finalizers: true, needs_revision: true, ..Kind::of("") };
