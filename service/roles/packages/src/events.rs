//! The events of the reconciler, each with the keys of its context.

service_core::events! {
    /// An object differed from its applied state.
    RECONCILE_RESTORED = "reconcile.restored" ["package", "restores"],
    /// A reconciliation failed.
    RECONCILE_FAILED = "reconcile.failed" ["package", "failures", "error"],
    /// The reconciler was stopped with work under way.
    RECONCILE_CUT = "reconcile.cut" [],
    /// An Event object could not be written.
    EVENT_LOST = "reconcile.event-lost" ["package", "error"],
    /// A policy left behind by a package was removed.
    ORPHAN_REMOVED = "reconcile.orphan-removed" ["policy", "uid"],
    /// A policy left behind by a package could not be removed.
    ORPHANS_FAILED = "reconcile.orphans-failed" ["uid", "error"],
}
