//! The refusals of a fault's settings.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key that only other faults have.
    #[error("`{key}` has no meaning for `{fault}`: it belongs to {owners}")]
    NotItsKey {
        key: String,
        fault: &'static str,
        /// The faults that have the key, as text.
        owners: String,
    },
    /// A value that the fault cannot use.
    #[error("`{key}` is {given}: {instead}")]
    Value {
        key: &'static str,
        given: String,
        /// The advice for the user.
        instead: &'static str,
    },
    /// A required setting is missing.
    #[error("`{fault}`: {instead}")]
    Needs {
        fault: &'static str,
        /// The advice for the user.
        instead: &'static str,
    },
    /// A value that the row cannot read.
    #[error("{why}")]
    Unread { why: String },
    /// A probability outside 0 to 1.
    #[error("`probability` is {given}: write a number between 0 and 1, for example `0.05`")]
    Probability { given: String },
    /// `count: 0`.
    #[error("`count` is 0: a fault that may have no effect proves nothing; leave it out or write 1 or more")]
    NoCount,
    /// Both a time and another fault.
    #[error("`at` and `when` exclude each other: a fault begins at a time, or after another fault's first hit")]
    TwoBeginnings,
    /// Two faults with the same label.
    #[error("`id: {id}` is there twice: every fault's `id` must be its own")]
    IdTwice { id: String },
    /// `when` names no fault of the list, or forms a cycle.
    #[error("`when` waits for a hit of `{id}`, {why}")]
    When {
        /// The label.
        id: String,
        why: String,
    },
    /// The fault is not played here: by the mock API server, or by the proxy in front of a control plane.
    #[error("`{fault}` cannot be played here: {why}")]
    NotPlayed {
        fault: &'static str,
        /// The right player, as text.
        why: &'static str,
    },
    /// The same id was begun twice without an end.
    #[error("fault {id} is already running: end it first")]
    AlreadyRunning { id: u32 },
}
