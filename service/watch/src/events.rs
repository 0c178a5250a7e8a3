//! The names of log events about watches, the witness and the Lease, each with the keys of its fields.

service_core::events! {
    /// A list of objects became the new view.
    WATCH_LISTED = "watch.listed" ["resource", "reason", "objects", "differences"],
    /// A watch stream started.
    WATCH_OPENED = "watch.opened" ["resource"],
    /// A watch stream ended.
    WATCH_ENDED = "watch.ended" ["resource", "how"],
    /// A request or a line of the watch failed.
    WATCH_FAILED = "watch.failed" ["resource", "what"],
    /// An object was added, modified or deleted.
    WATCH_CHANGED = "watch.changed" ["resource", "change", "object", "uid", "revision"],
    /// The witness is unreachable or refuses observations.
    WITNESS_AWAY = "witness.away" ["why"],
    /// When the process ended, the witness had not accepted all observations.
    WITNESS_LEFT = "witness.left-over" ["lines"],
    /// This replica became the leader.
    LEASE_TAKEN = "lease.taken" ["identity"],
    /// This replica is no longer the leader.
    LEASE_LOST = "lease.lost" ["why"],
    /// Another replica is the leader.
    LEASE_HELD = "lease.held" ["holder"],
    /// The Lease was released.
    LEASE_GIVEN_BACK = "lease.given-back" [],
    /// The Lease could not be released.
    LEASE_NOT_GIVEN_BACK = "lease.not-given-back" ["error"],
    /// A request for the Lease failed.
    LEASE_FAILED = "lease.failed" ["lease", "error"],
}
