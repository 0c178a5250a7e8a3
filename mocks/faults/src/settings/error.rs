//! Errors in a fault's settings.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{key}` has no meaning for `{fault}`: it belongs to {owners}")]
    NotItsKey {
        key: String,
        fault: &'static str,
        /// The faults that have the key, as text.
        owners: String,
    },
    /// The fault cannot use the value of a key.
    #[error("`{key}` is {given}: {instead}")]
    Value {
        key: &'static str,
        given: String,
        /// The advice for the user.
        instead: &'static str,
    },
    /// A setting that the fault requires is missing.
    #[error("`{fault}`: {instead}")]
    Needs {
        fault: &'static str,
        /// The advice for the user.
        instead: &'static str,
    },
    /// A value in the fault's settings cannot be parsed.
    #[error("{why}")]
    Unread { why: String },
    #[error("`probability` is {given}: write a number between 0 and 1, for example `0.05`")]
    Probability { given: String },
    #[error("`count` is 0: a fault that may have no effect proves nothing; leave it out or write 1 or more")]
    NoCount,
    #[error("`at` and `when` exclude each other: a fault begins at a time, or with an event")]
    TwoBeginnings,
    /// Two faults have the same label.
    #[error("`id: {id}` is there twice: every fault's `id` must be its own")]
    IdTwice { id: String },
    /// `when` names no fault of the scenario, or faults wait for each other in a cycle.
    #[error("`when` waits for a hit of `{id}`, {why}")]
    When {
        /// The label that `when` names.
        id: String,
        why: String,
    },
    /// The program that was asked to inject the fault, for example the mock API server or the proxy, cannot inject it.
    #[error("`{fault}` cannot be played here: {why}")]
    NotPlayed {
        fault: &'static str,
        /// The reason for the refusal, as text for the user.
        why: &'static str,
    },
    #[error("fault {id} is already running: end it first")]
    AlreadyRunning { id: u32 },
}
