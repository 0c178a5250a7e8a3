//! The names of log events about calls between processes, each with the keys of its fields.

service_core::events! {
    /// Changed certificates of the connection to another process are in use.
    LINK_REPLACED = "link.replaced" ["validator"],
    /// Changed certificates of the connection to another process cannot be used.
    LINK_KEPT = "link.not-replaced" ["validator", "error"],
    /// A call from another process was answered with an error.
    INTERNAL_REFUSED = "internal.refused" ["listener", "peer", "address", "status", "reason", "left_out"],
}
