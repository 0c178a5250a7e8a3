//! `end-state.json`: after the drain, the objects that the subject knows, compared with a fresh list of the control
//! plane.
//!
//! Owns the types of `end-state.json` and the maximum number of its examples. Judges compare the differences with the
//! budgets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of differences that are listed by name, for objects and for children separately. Differences beyond
/// this number are only counted.
pub const EXAMPLES_MAX: usize = 10;

/// The state of subject and control plane at the end of the drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndState {
    /// The compared resource, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The source of the list of objects that the subject knows.
    pub source: IdeaSource,
    /// The churned objects that still exist, if the churn deleted all objects before the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// When the fresh list was complete.
    pub listed_ms: u64,
    /// When the subject's view was read.
    pub read_ms: u64,
    /// How often the list and the view were read until they agreed, or until the time for comparing was over.
    pub readings: u32,
    /// Number of objects in the fresh list.
    pub listed: u64,
    /// Number of objects in the subject's view; none if the view could not be read.
    pub believed: Option<u64>,
    /// Whether list and view are equal; none if they could not be compared.
    pub agrees: Option<bool>,
    /// Why list and view could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Counts of the objects that differ.
    #[serde(default)]
    pub differences: Differences,
    /// The first few objects that differ, by namespace and name.
    #[serde(default)]
    pub examples: Vec<Difference>,
    /// The children that the subject makes for churned objects, if the scenario names a kind of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenState>,
    /// Further kinds of children, if the scenario names several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_children: Vec<ChildrenState>,
}

impl EndState {
    /// Each kind of children that the subject makes for churned objects.
    pub fn all_children(&self) -> impl Iterator<Item = &ChildrenState> {
        self.children.iter().chain(&self.more_children)
    }
}

/// Objects that should have been deleted and still exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Left {
    /// The number of objects.
    pub objects: u64,
    /// Namespace and name of the first few objects.
    pub examples: Vec<String>,
}

/// The sources from which the subject's view can be read, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdeaSource {
    /// An endpoint of the subject that lists the objects that the subject knows.
    Endpoint,
    /// The children that the subject makes for objects.
    Children,
    /// The last report of each object through the subject's witness.
    Told,
}

impl IdeaSource {
    /// The source for people, as it stands after "by".
    pub fn words(self) -> &'static str {
        match self {
            Self::Endpoint => "its own page",
            Self::Children => "the children that it keeps",
            Self::Told => "its last report of each object",
        }
    }
}

/// Counts of objects that differ, by the kind of difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Differences {
    /// Deleted objects that the subject still has in its view.
    pub gone: u64,
    /// Existing objects that the subject does not know.
    pub unknown: u64,
    /// Objects of which the subject knows another version.
    pub behind: u64,
    /// Objects whose name the subject knows with another uid.
    pub replaced: u64,
}

/// The kind of difference of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// The object is deleted, and the subject still has it in its view.
    Gone,
    /// The object exists, but the subject's view does not contain it.
    Unknown,
    /// The subject knows another version of the object.
    Behind,
    /// The subject knows the object's name with another uid.
    Replaced,
}

/// One object that differs between the fresh list and the subject's view, with the version in each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// The object's namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The uid in the subject's view; none if the view does not contain the object.
    pub believed_uid: Option<String>,
    /// The version in the subject's view; none if the view does not contain the object, or if the ledger has forgotten
    /// the version's name.
    pub believed_revision: Option<String>,
    /// The uid in the fresh list; none if the list does not contain the object.
    pub listed_uid: Option<String>,
    /// The version in the fresh list; none if the list does not contain the object.
    pub listed_revision: Option<String>,
}

/// The children that the subject makes for objects, compared with the expected children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildrenState {
    /// The resource of the children, such as `networkpolicies.networking.k8s.io`.
    pub resource: String,
    /// When the list of children was complete.
    pub listed_ms: u64,
    /// Why the children could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Objects that should have children.
    pub parents: u64,
    /// The number of children that all parents together should have.
    pub wanted: u64,
    /// Children that exist, including those of deleted parents.
    pub found: u64,
    /// Parents with fewer children than expected.
    pub lacking: u64,
    /// Parents among `lacking` for which an object without owner reference exists that could be the missing child.
    #[serde(skip_serializing_if = "is_zero")]
    pub unowned: u64,
    /// Parents with more children than expected.
    pub surplus: u64,
    /// Children of an older version of their parent.
    pub stale: u64,
    /// Children that still have the harness's edit.
    pub edited: u64,
    /// Children whose parent is deleted.
    pub orphans: u64,
    /// The first few problems with children.
    pub examples: Vec<ChildProblem>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChildrenState {
    pub fn problems(&self) -> u64 {
        self.lacking + self.surplus + self.stale + self.edited + self.orphans
    }
}

/// The kinds of problems with children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChildProblemKind {
    /// The parent has fewer children than expected.
    Lacking,
    /// The parent has more children than expected.
    Surplus,
    /// A child belongs to an older version of its parent.
    Stale,
    /// A child still has the harness's edit.
    Edited,
    /// The parent of a child is deleted.
    Orphan,
}

/// One problem with children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildProblem {
    /// The kind of problem.
    pub kind: ChildProblemKind,
    /// Namespace and name of the parent, or of a child whose parent is deleted.
    pub object: String,
    /// Namespace and name of the child, if the problem concerns one child.
    pub child: Option<String>,
    /// The expected state of the object or child, for people.
    pub wanted: String,
    /// The actual state of the object or child, for people.
    pub found: String,
}
