//! The events of the webhook, each with the keys of its context.

service_core::events! {
    /// No rule of the policy asks this validator.
    VALIDATOR_UNASKED = "policy.validator-unasked" ["reason"],
    /// A `trusted_root.json` has keys that are not known here.
    TRUST_LEFT_OUT = "trust.left-out" ["validator", "what"],
    /// A review was not plainly allowed.
    REVIEW = "admission.review" ["uid", "operation", "kind", "namespace", "name", "cause"],
    /// The webhook is not called, or cannot be.
    UNCALLED = "admission.uncalled" ["why"],
    /// The webhook is called again, or can be.
    CALLED = "admission.called" [],
    /// The check whether the webhook is called failed.
    CALLS_UNKNOWN = "admission.calls-unknown" ["error"],
    /// An owner that could have approved its children could not be read.
    OWNER_NOT_READ = "admission.owner-not-read" ["path", "error"],
}
