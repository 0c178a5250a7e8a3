//! `objects.json`: facts about the subject that the control plane's objects show as a whole, beyond single versions.
//!
//! Owns the types of `objects.json` and the maximum numbers of its entries. The facts are the subject's writes while no
//! other client writes, objects that are stuck in their deletion, requests for objects of other clients, and parents
//! with too many or orphaned children. Judges compare the facts in `objects.json` with budgets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of rows for objects that were written in the quiet time (while no client but the subject writes).
/// Objects beyond this number are only counted.
pub const REWRITTEN_MAX: usize = 20;
/// Maximum number of changed fields that are listed for each object written in the quiet time.
pub const FLIPS_MAX: usize = 5;
/// Maximum number of rows about finalizers of stuck objects; a row has about 150 bytes.
pub const HUNG_MAX: usize = 1000;
/// Maximum number of parents with too many children that are listed for each kind of children.
pub const TOO_MANY_MAX: usize = 20;
/// Maximum number of children that are listed for each parent with too many children.
pub const NAMED_CHILDREN_MAX: usize = 5;
/// Maximum number of requests for objects of other clients that are described in full, for each kind of request.
/// Requests beyond this number are only counted.
pub const DEEDS_MAX: usize = 20;
/// Maximum number of orphaned children that are listed for each kind of children.
pub const ORPHANS_MAX: usize = 20;

/// Facts from the control plane's objects.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Objects {
    /// Writes in the quiet time, when only the subject wrote; none if nothing is churned, or the run did not reach that
    /// time.
    pub quiet: Option<Quiet>,
    /// Objects that were stuck in their deletion at the end of the run; none if nothing is churned, or the run did not
    /// reach its end.
    pub hanging: Option<Hanging>,
    /// The subject's requests for objects that it did not make; none if the control plane does not report the author of
    /// each request, or no resource is judged.
    pub foreign: Option<Foreign>,
    /// The number of children that parents had at any time, for each kind of children.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<Siblings>,
    /// Counts of the children that the harness deleted or edited; none if it did neither.
    pub drift: Option<Drifted>,
    /// Objects that waited for the subject when the drain was over. Only resources with waiting objects have an entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Backlog>,
    /// The expectations of `budgets.ending`, in their order; none if there are none, or they could not be compared.
    pub ending: Option<Vec<Met>>,
}

/// An expectation of the end state, and whether it is met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Met {
    pub is_met: bool,
    /// The found and the expected state, for people.
    pub text: String,
}

/// Objects of one resource that waited for the subject when the drain was over, and how their number developed in the
/// drain.
///
/// An object waits from the commit of its oldest version that the subject has not proved to have seen. A waiting object
/// is *served* when the subject proves that it saw that version. A queue serves objects in the order in which they
/// began to wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backlog {
    /// The resource of the objects.
    pub resource: String,
    /// When the drain began.
    pub from_ms: u64,
    /// When the drain was over.
    pub to_ms: u64,
    /// Number of objects that were served in each quarter of the drain.
    pub served: [u64; 4],
    /// Number of objects that were served in the whole run.
    pub served_total: u64,
    /// Number of objects that have waited since before the drain.
    pub waiting: u64,
    /// Number of waiting objects that were overtaken: an object was served that had begun to wait more than five
    /// seconds later.
    pub passed: u64,
    /// Namespace and name of the first object that was overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_passed: Option<String>,
}

/// Writes of the subject in the quiet time, after the last write of the harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quiet {
    /// The start of the quiet time: after the last write of the harness and some more time in which the subject may
    /// catch up.
    pub from_ms: u64,
    /// The end of the quiet time.
    pub to_ms: u64,
    /// The examined resources, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why some or all resources could not be examined; none if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Whether the control plane reports the author of each write. If it reports no authors, every writer that is not
    /// part of Kubernetes counts as the subject.
    pub tells_writers: bool,
    /// Number of versions that the subject wrote in the quiet time.
    pub writes: u64,
    /// Number of objects that the subject wrote in the quiet time.
    pub objects: u64,
    /// Number of objects that the subject wrote in each third of the quiet time.
    pub lasting: u64,
    /// The objects with the most writes in the quiet time, those written in each third first.
    pub worst: Vec<Rewritten>,
}

/// One object that the subject wrote in the quiet time.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rewritten {
    /// The object's resource, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The object's namespace and name. Objects with ever-new names share one entry whose name ends with `*`.
    pub object: String,
    /// Number of versions of the object in the quiet time.
    pub writes: u64,
    /// Number of versions of the object in each third of the quiet time.
    pub thirds: [u64; 3],
    /// When the first version of the quiet time was written.
    pub first_ms: u64,
    /// When the last version of the quiet time was written.
    pub last_ms: u64,
    /// The fields of the object that changed, the most frequent first.
    pub fields: Vec<Flip>,
    /// Whether the object's `metadata.generation` changed in the quiet time.
    pub respecified: bool,
    /// The field manager that owns the changed fields, with its subresource: `manager (status)`.
    pub manager: Option<String>,
    /// The `User-Agent` of the writes, if the control plane reports it.
    pub user_agent: Option<String>,
}

/// A field of an object that changed in the quiet time. The record does not contain the field's values, because they
/// may be confidential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Flip {
    /// The field, as a JSON pointer.
    pub field: String,
    /// How often the field changed.
    pub times: u64,
}

/// Objects whose deletion was requested and that still existed at the end of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hanging {
    /// When the list of objects was read.
    pub read_ms: u64,
    /// The examined resources.
    pub resources: Vec<String>,
    /// Why some or all resources could not be examined; none if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that existed at the end of the run, whether their deletion was requested or not.
    pub objects: u64,
    /// Finalizers that hold deleted objects: one row for each object and finalizer, the longest held first.
    pub held: Vec<StuckFinalizer>,
    /// Objects and finalizers that have no row because of the maximum number of rows.
    pub more: u64,
    /// Objects of which a write of the subject was refused in the run.
    pub refused: u64,
}

/// A finalizer that keeps an object from being deleted.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StuckFinalizer {
    /// The object's resource.
    pub resource: String,
    /// The object's namespace and name.
    pub object: String,
    /// The name of the finalizer.
    pub finalizer: String,
    /// The program that added the finalizer.
    pub by: PutOn,
    /// The field manager that owns the finalizer; none if it is unknown.
    pub manager: Option<String>,
    /// Time since the object's deletion was requested, in milliseconds.
    pub for_ms: u64,
    /// The refused writes of the subject since its last successful write of the object. None if the last write was not
    /// refused, or the control plane does not report refused writes.
    pub refusals: Option<Refusals>,
}

/// Writes of an object that were refused one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Refusals {
    /// The number of refused writes, including those of children with the object's name.
    pub times: u64,
    /// When the last refused write of the object itself was answered.
    pub last_ms: u64,
    /// The status of the answer to the last refused write.
    pub status: u16,
    /// The wait after the last write, in milliseconds, if the pauses between earlier writes of the object doubled: the
    /// subject failed at each try. None if they did not double.
    pub wait_ms: Option<u64>,
}

/// The program that added a finalizer to an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PutOn {
    /// The subject added the finalizer: the object was made without it.
    #[default]
    Subject,
    /// The scenario added the finalizer: its object template has it.
    Scenario,
    /// The control plane added the finalizer, and also removes it.
    ControlPlane,
}

/// The subject's requests for objects that other clients made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Foreign {
    /// The examined resources, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why some of the resources could not be examined; none if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Number of objects of other clients that were deleted without a request of the subject.
    pub gone: u64,
    /// Number of objects that the subject made again after another client had deleted them, under the same namespace
    /// and name.
    pub made_again: u64,
    /// The first requests that made an object again.
    pub again: Vec<ForeignRequest>,
    /// Number of objects of other clients that the subject deleted.
    pub deleted: u64,
    /// The first requests that deleted an object of another client.
    pub deletions: Vec<ForeignRequest>,
}

/// A request of the subject for an object that another client made.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignRequest {
    /// The object's resource.
    pub resource: String,
    /// The object's namespace and name.
    pub object: String,
    /// When the request arrived.
    pub t_ms: u64,
    /// The HTTP method of the request, such as `POST`.
    pub method: String,
    /// The path of the request.
    pub path: String,
    /// The `User-Agent` of the request.
    pub user_agent: String,
    /// When the previous object of that name was deleted; none if the object existed when the request arrived.
    pub gone_ms: Option<u64>,
    /// The subject's earlier reads of the object, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Read>,
}

/// A read of an object by the subject: by name, by a list or by a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "kind")]
pub enum Read {
    /// The subject asked for the object.
    Got {
        /// When the request was answered.
        t_ms: u64,
        /// The status of the answer.
        status: u16,
        /// The `resourceVersion` in the answer; none if the answer had none.
        revision: Option<u64>,
    },
    /// The subject listed the resource.
    Listed {
        /// When the request was answered.
        t_ms: u64,
        /// The `resourceVersion` of the list.
        revision: u64,
        /// Whether the list contained the object.
        there: bool,
    },
    /// A watch sent the subject a version of the object.
    Sent {
        /// When the version was sent.
        t_ms: u64,
        /// The version.
        revision: u64,
        /// The kind of the event that the watch sent.
        what: Carried,
    },
}

/// The kind of an event that a watch sent for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    /// A version of an object that is not being deleted.
    Version,
    /// The version that requests the object's deletion (with `deletionTimestamp`).
    Leaving,
    /// The object's deletion.
    Deletion,
}

impl Read {
    pub fn t_ms(self) -> u64 {
        match self {
            Self::Got { t_ms, .. } | Self::Listed { t_ms, .. } | Self::Sent { t_ms, .. } => t_ms,
        }
    }
}

/// The number of children of one kind that parents had at any time of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Siblings {
    /// The resource of the children.
    pub resource: String,
    /// The resource of their parents.
    pub of: String,
    /// Why some of the children were not seen; none if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Parents that had children at any time.
    pub parents: u64,
    /// Children that were made in the run.
    pub made: u64,
    /// Number of parents that had too many children at some time.
    pub excess: u64,
    /// The first parents that had too many children.
    pub examples: Vec<TooMany>,
    /// Children without an owner reference that existed at the end of the run although their parent was deleted.
    #[serde(skip_serializing_if = "is_zero")]
    pub orphaned: u64,
    /// The first orphaned children, those of the parents that were deleted earliest first.
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
    /// How the child's parent was recognised, such as `by its name` or `by the label app`.
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
    /// The most children that the parent should have had.
    pub wanted: u64,
    /// The most children that the parent had at one time.
    pub found: u64,
    /// When the parent first had too many children.
    pub from_ms: u64,
    /// When the parent no longer had too many children; none if it had too many until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// Names of the parent's newest children.
    pub children: Vec<String>,
}

/// Counts of the children that the harness deleted or edited, by their later state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Drifted {
    /// All children that the harness deleted or edited in the run.
    pub children: u64,
    /// Children whose parents were not written after the harness deleted or edited the child. If such a child is
    /// correct at the end, the subject restored it.
    pub unwritten: u64,
    /// Children that were correct again before the next write of their parents.
    pub restored: u64,
    /// Children whose parents were written after the harness deleted or edited the child, and before it was correct
    /// again. The write of the parent may have corrected them.
    pub overtaken: u64,
    /// Children whose parents were deleted before the child was correct again.
    pub gone: u64,
}

impl Drifted {
    /// The number of children that can prove, by their end state or their restoration, that the subject restores
    /// drifted children.
    pub fn proofs(self) -> u64 {
        self.unwritten + self.restored
    }
}
