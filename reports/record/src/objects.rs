//! `objects.json`: what the control plane's objects tell of the subject besides single versions: what it goes on writing when nobody else
//! writes, which of them hang in their deletion, what it did to objects that it did not make, and which have children too many or orphaned.
//!
//! Owns the facts and their bounds. It does not judge: how much is too much says a budget.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Objects that were written in the quiet and have a row. The counts have no bound.
pub const REWRITTEN_MAX: usize = 20;
/// Fields of one of them that are named.
pub const FLIPS_MAX: usize = 5;
/// Finalizers of hanging objects that have a row each, of about 150 bytes.
pub const HUNG_MAX: usize = 1000;
/// Parents with children too many that are named for each kind of children.
pub const TOO_MANY_MAX: usize = 20;
/// Children that are named for one of them.
pub const NAMED_CHILDREN_MAX: usize = 5;
/// Deeds of each sort that are told in full. The counts have no bound.
pub const DEEDS_MAX: usize = 20;
/// Orphans of each kind of children that are named.
pub const ORPHANS_MAX: usize = 20;

/// What was seen of the objects.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Objects {
    /// What was written when nobody but the subject wrote; none where nothing is churned, or the run did not come so far.
    pub quiet: Option<Quiet>,
    /// What hung in its deletion at the end; none likewise.
    pub hanging: Option<Hanging>,
    /// What the subject did to objects that it did not make; none where the control plane does not tell who asked for what, or nothing is
    /// judged.
    pub foreign: Option<Foreign>,
    /// How many children parents had at any time, by kind of children.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<Siblings>,
    /// What became of the children that the harness deleted or edited; none where it did neither.
    pub drift: Option<Drifted>,
    /// What waited for the subject when the drain was over, by resource; only resources of which something waited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Backlog>,
}

/// Objects of one resource that waited for the subject when the drain was over, and how it went on until then.
///
/// An object waits from the commit of its oldest version that the subject has not proved, and it is *served* when that is proved. A queue
/// serves in the order in which objects began to wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backlog {
    /// What the objects are.
    pub resource: String,
    /// When the drain began.
    pub from_ms: u64,
    /// When it was over.
    pub to_ms: u64,
    /// Objects that were served in each quarter of the drain.
    pub served: [u64; 4],
    /// Objects that were served in the whole run.
    pub served_total: u64,
    /// Objects that waited since before the drain.
    pub waiting: u64,
    /// Those of them that others overtook: one was served that had begun to wait more than five seconds later.
    pub passed: u64,
    /// Namespace and name of the first of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_passed: Option<String>,
}

/// Writes of the subject after the last write of the harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quiet {
    /// When it began: some time after the last write of the harness, in which the subject may catch up.
    pub from_ms: u64,
    /// When it was over.
    pub to_ms: u64,
    /// What was looked at, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why that is not all, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Whether the control plane told who wrote. Else each writer counts that is no part of Kubernetes.
    pub tells_writers: bool,
    /// Versions that the subject wrote.
    pub writes: u64,
    /// Objects that it wrote.
    pub objects: u64,
    /// Those of them that it wrote in each third of the time.
    pub lasting: u64,
    /// The ones that were written most, those of each third first.
    pub worst: Vec<Rewritten>,
}

/// One object that was written again and again.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rewritten {
    /// What it is, such as `packages.longhaul.dev`.
    pub resource: String,
    /// Namespace and name. What was made under ever-new names ends with `*`.
    pub object: String,
    /// Versions in the quiet.
    pub writes: u64,
    /// The same, by third.
    pub thirds: [u64; 3],
    /// When the first of them was written.
    pub first_ms: u64,
    /// When the last was.
    pub last_ms: u64,
    /// Which fields changed, the most frequent first.
    pub fields: Vec<Flip>,
    /// Whether its generation changed meanwhile.
    pub respecified: bool,
    /// The field manager that owns these fields, with its subresource: `manager (status)`.
    pub manager: Option<String>,
    /// The `User-Agent` of these writes, where the control plane tells it.
    pub user_agent: Option<String>,
}

/// A field that changed. Its values are nobody's business.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Flip {
    /// Where: a JSON pointer.
    pub field: String,
    /// How often.
    pub times: u64,
}

/// Objects that were asked to go and were still there at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hanging {
    /// When it was read.
    pub read_ms: u64,
    /// What was looked at.
    pub resources: Vec<String>,
    /// Why that is not all, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that were there.
    pub objects: u64,
    /// What holds those that should go: one row for each object and finalizer, the longest first.
    pub held: Vec<Held>,
    /// Rows that found no room.
    pub more: u64,
}

/// A finalizer that holds an object.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Held {
    /// What the object is.
    pub resource: String,
    /// Namespace and name.
    pub object: String,
    /// The finalizer.
    pub finalizer: String,
    /// Who put it on.
    pub by: PutOn,
    /// The field manager that owns it; none where that is not told.
    pub manager: Option<String>,
    /// For how long the object had been asked to go.
    pub for_ms: u64,
    /// The writes of the subject that were refused since one succeeded, where the last one was and the control plane tells it.
    pub refusals: Option<Refusals>,
}

/// Writes of an object that were refused in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Refusals {
    /// How many; those of children with the object's name among them.
    pub times: u64,
    /// When the last one of the object itself was answered.
    pub last_ms: u64,
    /// With which status.
    pub status: u16,
}

/// Who put a finalizer on an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PutOn {
    /// The subject: the object did not have it when it was made.
    #[default]
    Subject,
    /// The scenario: it stands in its template.
    Scenario,
    /// The control plane, which takes it off as well.
    ControlPlane,
}

/// What the subject did to objects that others made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Foreign {
    /// What was looked at, such as `packages.longhaul.dev`.
    pub resources: Vec<String>,
    /// Why that is not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects of others that went without the subject having asked for it.
    pub gone: u64,
    /// Those of them that the subject made again under the same namespace and name.
    pub made_again: u64,
    /// The first of them.
    pub again: Vec<Deed>,
    /// Objects of others that the subject deleted.
    pub deleted: u64,
    /// The first of them.
    pub deletions: Vec<Deed>,
}

/// A request of the subject about an object that others made.
#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Deed {
    /// What the object is.
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
    /// When the object of that name was gone; none where it was there.
    pub gone_ms: Option<u64>,
    /// What the subject had read of the object before, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Read>,
}

/// What the subject had read of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "kind")]
pub enum Read {
    /// It asked for the object.
    Got {
        /// When that was answered.
        t_ms: u64,
        /// The status of the answer.
        status: u16,
        /// The version that was answered; none where there was none.
        revision: Option<u64>,
    },
    /// It listed the resource when the object was there, or when it was not.
    Listed {
        /// When that was answered.
        t_ms: u64,
        /// The version of the list.
        revision: u64,
        /// Whether the object was in it.
        there: bool,
    },
    /// A watch carried a version.
    Sent {
        /// When.
        t_ms: u64,
        /// The version.
        revision: u64,
        /// What it was.
        what: Carried,
    },
}

/// What a watch carried of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    /// A version.
    Version,
    /// The version in which its deletion was asked for.
    Leaving,
    /// Its deletion.
    Deletion,
}

impl Read {
    /// When it was read.
    pub fn t_ms(self) -> u64 {
        match self {
            Self::Got { t_ms, .. } | Self::Listed { t_ms, .. } | Self::Sent { t_ms, .. } => t_ms,
        }
    }
}

/// How many children of one kind parents had, at any time of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Siblings {
    /// What the children are.
    pub resource: String,
    /// What their parents are.
    pub of: String,
    /// Why not all of it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Parents that had children.
    pub parents: u64,
    /// Children that were made.
    pub made: u64,
    /// Parents that had too many at some time.
    pub excess: u64,
    /// The first of them.
    pub examples: Vec<TooMany>,
    /// Children without an owner reference that were there at the end, and whose parent was gone.
    #[serde(skip_serializing_if = "is_zero")]
    pub orphaned: u64,
    /// The first of them, the longest first.
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
    /// How its parent is known, such as `by its name` or `by the label app`.
    pub known: String,
    /// For how long the parent had been gone.
    pub for_ms: u64,
}

/// A parent that had too many children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TooMany {
    /// Namespace and name of the parent, or its uid where its own version was never seen.
    pub object: String,
    /// How many it should have had at most.
    pub wanted: u64,
    /// How many it had at most.
    pub found: u64,
    /// When it first had more than it should.
    pub from_ms: u64,
    /// When it had no more than it should; none: not until the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// The names of the newest of them.
    pub children: Vec<String>,
}

/// What became of the children that the harness deleted or edited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Drifted {
    /// All of them.
    pub children: u64,
    /// Those whose parents nobody writes from then on: that they are right at the end is the subject's doing.
    pub unwritten: u64,
    /// Those of the others that were right again before the next write of their parents.
    pub restored: u64,
    /// Those whose parents were written before anybody saw them right again: that they are right at the end may be a by-product.
    pub overtaken: u64,
    /// Those whose parents went meanwhile.
    pub gone: u64,
}

impl Drifted {
    /// Children of which the end state proves, or their own restoration did, that the subject restores what drifts.
    pub fn proofs(self) -> u64 {
        self.unwritten + self.restored
    }
}
