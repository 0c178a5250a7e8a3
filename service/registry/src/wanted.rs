//! The kinds of requests to a registry: a manifest by tag or digest, the referrers of a digest, a blob or a part of one.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'q> {
    /// The manifest of an image, by tag.
    Image(&'q str),
    /// A manifest that may contain signatures, by tag or digest.
    Manifest(&'q str),
    /// The referrers of a digest (OCI distribution specification 1.1).
    Referrers(&'q str),
    Blob {
        digest: &'q str,
        /// Largest accepted size of the blob, in bytes.
        bytes_max: usize,
    },
    /// A range of bytes of a blob; its size is the limit of one answer.
    Part {
        digest: &'q str,
        /// Offset of the first byte in the blob.
        from: u64,
    },
}

impl Wanted<'_> {
    pub(super) fn of(self, repository: &str) -> String {
        match self {
            Self::Image(tag) | Self::Manifest(tag) if !tag.contains(':') => format!("{repository}:{tag}"),
            Self::Image(digest) | Self::Manifest(digest) | Self::Blob { digest, .. } | Self::Part { digest, .. } => {
                format!("{repository}@{digest}")
            }
            Self::Referrers(digest) => format!("referrers of {repository}@{digest}"),
        }
    }
}
