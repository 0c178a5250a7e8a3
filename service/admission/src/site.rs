//! The position of an image in a reviewed object.

/// An image to judge, and its position in the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// JSON pointer (RFC 6901) of the image string.
    pub pointer: String,
    pub image: String,
    /// Whether the API server accepts a change of this image.
    pub mutable: bool,
}

impl Site {
    /// Maximum number of images of one object that are judged. A Pod with more images hardly fits into etcd's size
    /// limit.
    pub const MAX: usize = 500;
}
