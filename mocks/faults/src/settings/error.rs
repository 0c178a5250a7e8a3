//! Why a fault is refused.

/// Why a fault was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key that other faults understand.
    #[error("`{key}` has no meaning for `{fault}`: it belongs to {owners}")]
    NotItsKey {
        /// The key.
        key: String,
        /// The fault it was given to.
        fault: &'static str,
        /// The faults that understand it, in words.
        owners: String,
    },
    /// A value that the fault cannot use.
    #[error("`{key}` is {given}: {instead}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was written.
        given: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// Something is missing that the fault needs.
    #[error("`{fault}`: {instead}")]
    Needs {
        /// The fault.
        fault: &'static str,
        /// What to write.
        instead: &'static str,
    },
    /// A value that the row cannot read.
    #[error("{why}")]
    Unread {
        /// What is wrong with it.
        why: String,
    },
    /// A probability outside 0 to 1.
    #[error("`probability` is {given}: write a number between 0 and 1, for example `0.05`")]
    Probability {
        /// What was written.
        given: String,
    },
    /// `count: 0`.
    #[error("`count` is 0: a fault that may have no effect proves nothing; leave it out or write 1 or more")]
    NoCount,
    /// Both a time and another fault.
    #[error("`at` and `when` exclude each other: a fault begins at a time, or after another fault's first hit")]
    TwoBeginnings,
    /// Two faults with the same label.
    #[error("`id: {id}` is there twice: every fault's `id` must be its own")]
    IdTwice {
        /// The label.
        id: String,
    },
    /// `when` names no fault of the list, or goes round in a circle.
    #[error("`when` waits for a hit of `{id}`, {why}")]
    When {
        /// The label.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// The fault is not played here: by the mock API server, or by the proxy in front of a control plane.
    #[error("`{fault}` cannot be played here: {why}")]
    NotPlayed {
        /// The fault.
        fault: &'static str,
        /// Who plays it.
        why: &'static str,
    },
    /// The same id was begun twice without an end.
    #[error("fault {id} is already running: end it first")]
    AlreadyRunning {
        /// The id.
        id: u32,
    },
}
