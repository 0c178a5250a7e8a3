//! The right answer to a review. Pure.

use super::image::Refusal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    /// These images must not run. `images` are all that exist, as in an admission.
    Deny { images: Vec<Field>, refused: Vec<Refused> },
    /// Every image of the object, with the value that must be in the field in the end.
    Allow { images: Vec<Field> },
    /// The object is allowed, with any patch.
    Admit,
    /// The object is refused.
    Refuse,
    /// The right answer of this webhook is unknown: any answer that kube-apiserver accepts is right.
    Any,
}

impl Expected {
    pub(super) fn is_deny(&self) -> bool {
        matches!(self, Self::Deny { .. } | Self::Refuse)
    }
}

/// An image that must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub written: String,
    pub why: Refusal,
    /// Whether the denial has to name it and its class.
    pub named: bool,
}

/// One image field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub pointer: String,
    pub written: String,
    pub right: String,
    /// Whether the registry may have to be asked about it, for its digest or for its signatures.
    pub asked: bool,
}

impl Field {
    pub(super) fn must_change(&self) -> bool {
        self.written != self.right
    }
}
