//! The place of an image in an object under review.

/// An image to judge, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// JSON pointer (RFC 6901) of the string.
    pub pointer: String,
    pub image: String,
    /// Whether the API server accepts another value there.
    pub mutable: bool,
}

impl Site {
    /// Most images of one object that are judged. A pod with more does not fit etcd's object limit with useful content.
    pub const MAX: usize = 500;
}
