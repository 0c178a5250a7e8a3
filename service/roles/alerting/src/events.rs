//! The events of alerts, each with the keys of its context.

service_core::events! {
    /// An alert could not be sent.
    ALERT_FAILED = "alerts.failed" ["receiver", "error"],
    /// An alert that was not sent could not be kept either.
    LETTER_LOST = "alerts.letter-lost" ["receiver", "error"],
}
