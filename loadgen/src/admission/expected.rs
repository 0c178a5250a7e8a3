//! The right answer to a review. Pure: no I/O.

use super::image::Refusal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    /// The object must be denied because of the images in `refused`. `images` are the images of the object that exist.
    Deny { images: Vec<Field>, refused: Vec<Refused> },
    /// The object must be allowed. `images` are all images of the object, each with the value that the field must have
    /// in the end.
    Allow { images: Vec<Field> },
    /// The object must be allowed, with any patch or none.
    Admit,
    /// The object must be denied.
    Refuse,
    /// The right answer is unknown: any answer that kube-apiserver accepts is right.
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
    /// Whether the denial must name the image and the class of its refusal.
    pub named: bool,
}

/// An image field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub pointer: String,
    pub written: String,
    pub right: String,
    /// Whether the webhook may have to ask the registry for the image's digest or its signatures.
    pub asked: bool,
}

impl Field {
    pub(super) fn must_change(&self) -> bool {
        self.written != self.right
    }
}
