//! The types that all crates of the harness share: a committed version of an object, and the proof that a client saw
//! it.
//!
//! Owns the shared types and how records store them, so that no crate defines its own. This crate does no I/O and reads
//! no clock: callers pass times.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod back_off;
mod looks;

pub use back_off::{BACK_OFF_MAX_MS, back_off_ms, longest_back_off_ms};
pub use looks::{Looks, number, seek};

/// The kind of a change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

impl Change {
    /// The type of a watch event: `ADDED`, `MODIFIED` or `DELETED`.
    #[inline]
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.event_type())
    }
}

/// `metadata.uid`, which identifies an object independent of its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Uid(Arc<str>);

/// `metadata.resourceVersion`, which identifies a version of an object. Revisions are compared only for equality,
/// because they have no order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Revision(Arc<str>);

/// The position of a commit among all commits that the harness followed, ascending.
///
/// A position is never computed from a resourceVersion: a restored control plane reuses resourceVersions, and a real
/// control plane has gaps between them:
///
/// ```compile_fail
/// let version = facts::Revision::from("17");
/// let place: facts::Order = version.into();
/// ```
///
/// [`Order::of_numbered`] is only for a source whose revisions *are* positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Order(u64);

/// A version of an object that was written to the control plane. A clone shares all texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// The position of the commit among all commits.
    pub order: Order,
    /// The resource, such as `packages.longhaul.dev`.
    #[serde(with = "text")]
    #[schemars(with = "String")]
    pub resource: Arc<str>,
    /// The object's namespace; empty for cluster-wide objects.
    #[serde(with = "text")]
    #[schemars(with = "String")]
    pub namespace: Arc<str>,
    /// The object's name.
    #[serde(with = "text")]
    #[schemars(with = "String")]
    pub name: Arc<str>,
    /// The object's uid.
    pub uid: Uid,
    /// The resourceVersion of the version, or of the deletion.
    pub revision: Revision,
    /// Whether the commit creates, changes or deletes the object.
    pub change: Change,
}

/// Proof that the subject saw a version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The time at which the harness received the observation, in milliseconds since the start of the run.
    pub t_ms: u64,
    /// The object's uid, as the subject reported it.
    pub uid: Uid,
    /// The version's resourceVersion, as the subject reported it.
    pub revision: Revision,
    /// The kind of change that the subject reported.
    pub change: Change,
}

/// The progress that an object's controller has made; see [`Looks`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// `metadata.generation`; 0 if the resource has no generations.
    pub generation: i64,
    /// The generation or version that the controller has handled, for example from `status.observedGeneration`.
    pub observed: Option<i64>,
    /// Whether the object has the controller's finalizer.
    pub held: bool,
    /// Whether the deletion of the object was requested.
    pub leaving: bool,
    /// Whether the object has a finalizer that neither Kubernetes nor the harness set: another controller has to remove
    /// it.
    pub guarded: bool,
}

/// How shared texts (`Arc<str>`) are serialized in records.
mod text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}

/// Declares the conversions from and to text of a type that contains a text.
macro_rules! meaning {
    ($name:ident) => {
        impl $name {
            /// The text as it was received.
            #[inline]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

meaning!(Uid);
meaning!(Revision);

/// Lets callers look up a plain text in a map whose keys are `Uid`s.
impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Revision {
    /// The revision of a store whose revisions are numbers.
    pub fn of_number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// The revision as a number, if the control plane uses numbers. A higher number does not prove a later commit.
    pub fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

impl Order {
    /// The position of a commit whose source numbers each commit once and in order.
    pub const fn of_numbered(number: u64) -> Self {
        Self(number)
    }

    /// The position of the next commit.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub const fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old records must stay readable, so these types are always serialized in the same form.
    #[test]
    fn facts_are_spelled_as_in_records() {
        let commit = Commit {
            order: Order::default().next(),
            resource: "pods".into(),
            namespace: "default".into(),
            name: "a".into(),
            uid: "u".into(),
            revision: Revision::of_number(7),
            change: Change::Modified,
        };
        let text = r#"{"order":1,"resource":"pods","namespace":"default","name":"a","uid":"u","revision":"7","change":"modified"}"#;
        assert_eq!(serde_json::to_string(&commit).unwrap(), text);
        assert_eq!(serde_json::from_str::<Commit>(text).unwrap(), commit);
        let text = r#"{"tMs":3,"uid":"u","revision":"7","change":"deleted"}"#;
        let observation = Observation { t_ms: 3, uid: "u".into(), revision: "7".into(), change: Change::Deleted };
        assert_eq!(serde_json::to_string(&observation).unwrap(), text);
        assert_eq!(serde_json::from_str::<Observation>(text).unwrap(), observation);
    }

    #[test]
    fn a_revision_may_be_a_number() {
        assert_eq!(Revision::from("17").number(), Some(17));
        assert_eq!(Revision::from("a7").number(), None);
        assert_ne!(Revision::from("017"), Revision::from("17"), "it is the text that names the version");
    }
}
