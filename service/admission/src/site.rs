//! An image of an object under review, and where it is written.

/// An image that is to be judged, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// JSON pointer (RFC 6901) of the string.
    pub pointer: String,
    pub image: String,
    /// Whether the API server takes another value there.
    pub mutable: bool,
}

impl Site {
    /// Most images of one object that are judged. A pod with more does not fit etcd's object limit with useful content.
    pub const MAX: usize = 500;
}
