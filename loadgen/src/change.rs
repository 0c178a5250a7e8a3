//! The kinds of change that an object can go through, in Kubernetes' own words for a watch.

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It was created.
    Added,
    /// It was changed; a deletion that waits for finalizers is a change too.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    /// `ADDED`, `MODIFIED` or `DELETED`, as in a watch event.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}
