//! The events of watches, the witness and the Lease, each with the keys of its context.

service_core::events! {
    /// A list was applied.
    WATCH_LISTED = "watch.listed" ["resource", "reason", "objects", "differences"],
    /// A stream began.
    WATCH_OPENED = "watch.opened" ["resource"],
    /// A stream ended.
    WATCH_ENDED = "watch.ended" ["resource", "how"],
    /// Something went wrong with the watch.
    WATCH_FAILED = "watch.failed" ["resource", "what"],
    /// An object was added, modified or deleted.
    WATCH_CHANGED = "watch.changed" ["resource", "change", "object", "uid", "revision"],
    /// The witness does not accept observations.
    WITNESS_AWAY = "witness.away" ["why"],
    /// The witness did not accept the last observations.
    WITNESS_LEFT = "witness.left-over" ["lines"],
    /// This replica leads.
    LEASE_TAKEN = "lease.taken" ["identity"],
    /// This replica is no longer the leader.
    LEASE_LOST = "lease.lost" ["why"],
    /// Another replica leads.
    LEASE_HELD = "lease.held" ["holder"],
    /// The lease was given back.
    LEASE_GIVEN_BACK = "lease.given-back" [],
    /// The lease could not be given back.
    LEASE_NOT_GIVEN_BACK = "lease.not-given-back" ["error"],
    /// The request for the lease failed.
    LEASE_FAILED = "lease.failed" ["lease", "error"],
}
