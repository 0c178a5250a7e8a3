//! `objects.json`: facts about the subject that the control plane's objects show, beyond single versions.
//!
//! Owns the facts and their bounds: the subject's writes while nobody else writes, objects that hang in their
//! deletion, the subject's requests for objects of others, and parents with too many or orphaned children. It does not
//! judge: a budget sets the limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Objects written in the quiet time that have a row. The counts have no bound.
pub const REWRITTEN_MAX: usize = 20;
/// Changed fields that are named for each such object.
pub const FLIPS_MAX: usize = 5;
/// Finalizers of hanging objects that have a row each, of about 150 bytes.
pub const HUNG_MAX: usize = 1000;
/// Parents with too many children that are named for each kind of children.
pub const TOO_MANY_MAX: usize = 20;
/// Children that are named for each such parent.
pub const NAMED_CHILDREN_MAX: usize = 5;
/// Deeds of each kind that are described in full. The counts have no bound.
pub const DEEDS_MAX: usize = 20;
/// Orphans that are named for each kind of children.
pub const ORPHANS_MAX: usize = 20;

/// Facts from the control plane's objects.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Objects {
    /// Writes when only the subject wrote; none if nothing is churned, or the run did not reach that time.
    pub quiet: Option<Quiet>,
    /// Objects that hung in their deletion at the end; none if nothing is churned, or the run did not reach the end.
    pub hanging: Option<Hanging>,
    /// The subject's requests for objects that it did not make; none if the control plane does not report the author of
    /// each request, or nothing is judged.
    pub foreign: Option<Foreign>,
    /// The number of children that parents had at any time, by kind of children.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<Siblings>,
    /// The fate of the children that the harness deleted or edited; none if it did neither.
    pub drift: Option<Drifted>,
    /// Objects that waited for the subject when the drain was over, by resource; only resources with waiting objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Backlog>,
}

/// Objects of one resource that waited for the subject when the drain was over, and how the wait developed until then.
///
/// An object waits from the commit of its oldest version that the subject has not proved, and it is *served* when that
/// is proved. A queue serves in the order in which objects began to wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backlog {
    /// The resource of the objects.
    pub resource: String,
    /// When the drain began.
    pub from_ms: u64,
    /// When the drain was over.
    pub to_ms: u64,
    /// Objects that were served in each quarter of the drain.
    pub served: [u64; 4],
    /// Objects that were served in the whole run.
    pub served_total: u64,
    /// Objects that waited since before the drain.
    pub waiting: u64,
    /// Waiting objects that others overtook: an object was served that had begun to wait more than five seconds later.
    pub passed: u64,
    /// Namespace and name of the first object that was overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_passed: Option<String>,
}

/// Writes of the subject after the last write of the harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quiet {
    /// Its start: some time after the last write of the harness, in which the subject may catch up.
    pub from_ms: u64,
    /// Its end.
    pub to_ms: u64,
    /// The examined resources, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why some or all resources could not be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Whether the control plane reports the author of each write. If not, every writer counts that is no part of
    /// Kubernetes.
    pub tells_writers: bool,
    /// Versions that the subject wrote.
    pub writes: u64,
    /// Objects that it wrote.
    pub objects: u64,
    /// Objects among them that it wrote in each third of the time.
    pub lasting: u64,
    /// The objects with the most writes, those written in each third first.
    pub worst: Vec<Rewritten>,
}

/// One object that was written again and again.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rewritten {
    /// Its resource, such as `packages.longhaul.dev`.
    pub resource: String,
    /// Namespace and name. Objects made under ever-new names share one entry that ends with `*`.
    pub object: String,
    /// Versions in the quiet time.
    pub writes: u64,
    /// Versions in the quiet time, by third.
    pub thirds: [u64; 3],
    /// When the first of these versions was written.
    pub first_ms: u64,
    /// When the last of these versions was written.
    pub last_ms: u64,
    /// The fields that changed, the most frequent first.
    pub fields: Vec<Flip>,
    /// Whether its generation changed meanwhile.
    pub respecified: bool,
    /// The field manager that owns these fields, with its subresource: `manager (status)`.
    pub manager: Option<String>,
    /// The `User-Agent` of these writes, if the control plane reports it.
    pub user_agent: Option<String>,
}

/// A field that changed. Its values are not recorded, because they may be confidential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Flip {
    /// The field, as a JSON pointer.
    pub field: String,
    /// How often it changed.
    pub times: u64,
}

/// Objects whose deletion was requested and that still existed at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hanging {
    /// When the list was read.
    pub read_ms: u64,
    /// The examined resources.
    pub resources: Vec<String>,
    /// Why some or all resources could not be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that existed.
    pub objects: u64,
    /// Finalizers that hold deleted objects: one row for each object and finalizer, the longest first.
    pub held: Vec<Held>,
    /// Further rows beyond the bound.
    pub more: u64,
}

/// A finalizer that holds an object.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Held {
    /// The object's resource.
    pub resource: String,
    /// Namespace and name.
    pub object: String,
    /// The finalizer.
    pub finalizer: String,
    /// The party that added it.
    pub by: PutOn,
    /// The field manager that owns it; none if that is unknown.
    pub manager: Option<String>,
    /// Time since the object's deletion was requested, in milliseconds.
    pub for_ms: u64,
    /// The subject's refused writes since its last successful one. None if the last write was not refused, or the
    /// control plane does not report it.
    pub refusals: Option<Refusals>,
}

/// Writes of an object that were refused in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Refusals {
    /// Their number, including writes of children with the object's name.
    pub times: u64,
    /// When the last refused write of the object itself was answered.
    pub last_ms: u64,
    /// The status of that answer.
    pub status: u16,
}

/// The party that added a finalizer to an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PutOn {
    /// The subject: the object did not have the finalizer when it was made.
    #[default]
    Subject,
    /// The scenario: the finalizer is in its template.
    Scenario,
    /// The control plane, which also removes it.
    ControlPlane,
}

/// The subject's requests for objects that others made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Foreign {
    /// The examined resources, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why some of them could not be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects of others that were deleted without a request of the subject.
    pub gone: u64,
    /// Objects among them that the subject made again under the same namespace and name.
    pub made_again: u64,
    /// The first requests that made an object again.
    pub again: Vec<Deed>,
    /// Objects of others that the subject deleted.
    pub deleted: u64,
    /// The first of these deletions.
    pub deletions: Vec<Deed>,
}

/// A request of the subject about an object that others made.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deed {
    /// The object's resource.
    pub resource: String,
    /// Namespace and name.
    pub object: String,
    /// When the request arrived.
    pub t_ms: u64,
    /// Its method, such as `POST`.
    pub method: String,
    /// Its path.
    pub path: String,
    /// Its `User-Agent`.
    pub user_agent: String,
    /// When the previous object of that name was deleted; none if the object existed.
    pub gone_ms: Option<u64>,
    /// The subject's earlier reads of the object, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Read>,
}

/// A read of an object by the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "kind")]
pub enum Read {
    /// The subject asked for the object.
    Got {
        /// When that was answered.
        t_ms: u64,
        /// The status of the answer.
        status: u16,
        /// The version in the answer; none if the answer had none.
        revision: Option<u64>,
    },
    /// The subject listed the resource.
    Listed {
        /// When that was answered.
        t_ms: u64,
        /// The version of the list.
        revision: u64,
        /// Whether the list contained the object.
        there: bool,
    },
    /// A watch carried a version.
    Sent {
        /// When it was sent.
        t_ms: u64,
        /// The version.
        revision: u64,
        /// The kind of event.
        what: Carried,
    },
}

/// The kind of an event that a watch carried about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    /// A version.
    Version,
    /// The version that requests its deletion.
    Leaving,
    /// Its deletion.
    Deletion,
}

impl Read {
    pub fn t_ms(self) -> u64 {
        match self {
            Self::Got { t_ms, .. } | Self::Listed { t_ms, .. } | Self::Sent { t_ms, .. } => t_ms,
        }
    }
}

/// The number of children of one kind that parents had, at any time of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Siblings {
    /// The resource of the children.
    pub resource: String,
    /// The resource of their parents.
    pub of: String,
    /// Why a part of them was not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Parents that had children.
    pub parents: u64,
    /// Children that were made.
    pub made: u64,
    /// Parents that had too many children at some time.
    pub excess: u64,
    /// The first of these parents.
    pub examples: Vec<TooMany>,
    /// Children without an owner reference that existed at the end although their parent was gone.
    #[serde(skip_serializing_if = "is_zero")]
    pub orphaned: u64,
    /// The first of these children, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Orphaned>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A child that outlived its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Orphaned {
    /// Namespace and name of the child.
    pub child: String,
    /// Namespace and name of the parent.
    pub parent: String,
    /// How its parent is recognised, such as `by its name` or `by the label app`.
    pub known: String,
    /// Time since the parent was deleted, in milliseconds.
    pub for_ms: u64,
}

/// A parent that had too many children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TooMany {
    /// Namespace and name of the parent, or its uid if its own version was never seen.
    pub object: String,
    /// The most children that it should have had.
    pub wanted: u64,
    /// The most children that it had.
    pub found: u64,
    /// When it first had too many.
    pub from_ms: u64,
    /// When it no longer had too many; none: it had too many until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// The names of the newest of its children.
    pub children: Vec<String>,
}

/// The fate of the children that the harness deleted or edited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Drifted {
    /// All children that the harness deleted or edited.
    pub children: u64,
    /// Children whose parents were not written again: if they are correct at the end, the subject restored them.
    pub unwritten: u64,
    /// Other children that were correct again before the next write of their parents.
    pub restored: u64,
    /// Children whose parents were written before the child was seen correct again: the write may have corrected them.
    pub overtaken: u64,
    /// Children whose parents were deleted meanwhile.
    pub gone: u64,
}

impl Drifted {
    /// The number of children whose end state or own restoration can prove that the subject restores drifted children.
    pub fn proofs(self) -> u64 {
        self.unwritten + self.restored
    }
}
