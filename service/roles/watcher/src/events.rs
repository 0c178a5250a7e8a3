//! The events of actions on objects of any resource, each with the keys of its context.

service_core::events! {
    /// An event is due for an action without a receiver.
    WATCHER_EVENT = "watcher.event" ["action", "resource", "change", "object", "uid", "revision"],
    /// A receiver of events cannot be reached; the watch waits for it.
    WATCHER_AWAY = "watcher.away" ["action", "why"],
    /// Events were left unsent at the end.
    WATCHER_LEFT = "watcher.left-over" ["action", "lines"],
    /// A receiver or hook rejects its input as wrong; it is not sent again.
    WATCHER_REFUSED = "watcher.refused" ["action", "object", "lines", "why"],
    /// A hook did not accept an object; another attempt follows.
    WATCHER_FAILED = "watcher.failed" ["action", "object", "attempts", "why"],
    /// A hook did not accept an object in all attempts; the next attempt comes when the object changes.
    WATCHER_GAVE_UP = "watcher.gave-up" ["action", "object", "attempts", "why"],
}
