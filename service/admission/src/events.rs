//! The names of log events about the webhook, each with the keys of its fields.

service_core::events! {
    /// No rule of the policy uses this validator.
    VALIDATOR_UNASKED = "policy.validator-unasked" ["reason"],
    /// A `trusted_root.json` has unknown keys.
    TRUST_LEFT_OUT = "trust.left-out" ["validator", "what"],
    /// A review was refused, failed, or admitted with a warning.
    REVIEW = "admission.review" ["uid", "operation", "kind", "namespace", "name", "cause"],
    /// The webhook is not called, or the API server cannot call it.
    UNCALLED = "admission.uncalled" ["why"],
    /// The webhook is called again, or the API server can call it again.
    CALLED = "admission.called" [],
    /// The check whether the webhook is called failed.
    CALLS_UNKNOWN = "admission.calls-unknown" ["error"],
    /// An owner whose images could approve those of its children could not be read.
    OWNER_NOT_READ = "admission.owner-not-read" ["path", "error"],
}
