//! The names of log events about alerts, each with the keys of its fields.

service_core::events! {
    /// An alert could not be sent.
    ALERT_FAILED = "alerts.failed" ["receiver", "error"],
    /// An alert was not delivered, and could not be written to the dead letters.
    LETTER_LOST = "alerts.letter-lost" ["receiver", "error"],
}
