//! The names of log events about the webhook, each with the keys of its fields.

service_core::events! {
    /// A validator of the configuration is used by no rule.
    VALIDATOR_UNASKED = "policy.validator-unasked" ["reason"],
    /// A `trusted_root.json` has keys that this service does not know.
    TRUST_LEFT_OUT = "trust.left-out" ["validator", "what"],
    /// A review was refused, failed, or admitted with a warning.
    REVIEW = "admission.review" ["uid", "operation", "kind", "namespace", "name", "cause"],
    /// The webhook is not called, or the API server cannot call it.
    UNCALLED = "admission.uncalled" ["why"],
    /// The webhook is called again, or the API server can call it again.
    CALLED = "admission.called" [],
    /// The service could not check whether the webhook is called.
    CALLS_UNKNOWN = "admission.calls-unknown" ["error"],
    /// Owners can approve the images of their children, but an owner could not be read.
    OWNER_NOT_READ = "admission.owner-not-read" ["path", "error"],
}
