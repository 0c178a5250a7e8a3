//! The events of calls between processes, each with the keys of its context.

service_core::events! {
    /// The certificates of the connection to another process were replaced.
    LINK_REPLACED = "link.replaced" ["validator"],
    /// The certificates of the connection to another process could not be replaced.
    LINK_KEPT = "link.not-replaced" ["validator", "error"],
    /// A call of another process was answered with an error.
    INTERNAL_REFUSED = "internal.refused" ["listener", "peer", "address", "status", "reason", "left_out"],
}
