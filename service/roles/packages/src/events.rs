//! The names of log events about the reconciler, each with the keys of its fields.

service_core::events! {
    /// A network policy that another client changed or deleted was restored.
    RECONCILE_RESTORED = "reconcile.restored" ["package", "restores"],
    /// An attempt to reconcile a package failed.
    RECONCILE_FAILED = "reconcile.failed" ["package", "failures", "error"],
    /// The reconciler was stopped before its work was finished.
    RECONCILE_CUT = "reconcile.cut" [],
    /// An Event object could not be written.
    EVENT_LOST = "reconcile.event-lost" ["package", "error"],
    /// A network policy whose package is gone was removed.
    ORPHAN_REMOVED = "reconcile.orphan-removed" ["policy", "uid"],
    /// A network policy whose package is gone could not be removed.
    ORPHANS_FAILED = "reconcile.orphans-failed" ["uid", "error"],
}
