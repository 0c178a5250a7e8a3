//! The names of log events about the API that scales Deployments, each with the keys of its fields.

service_core::events! {
    /// A call that changes a Deployment, or whose change was refused: caller, change and outcome.
    AUDIT_WRITE = "audit.write" ["request_id", "peer", "address", "verb", "namespace", "name", "container", "before", "after",
        "dry_run", "status", "revision", "attempts", "duration_ms", "error"],
    /// A call was refused before its path and query were parsed.
    CALL_REFUSED = "api.refused" ["request_id", "peer", "address", "reason", "left_out"],
    CALL_PANICKED = "api.panicked" ["request_id"],
}
