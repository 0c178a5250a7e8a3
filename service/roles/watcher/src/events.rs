//! The names of log events about the watcher's actions, each with the keys of its fields.

service_core::events! {
    /// An event matches the filter of an action without a receiver.
    WATCHER_EVENT = "watcher.event" ["action", "resource", "change", "object", "uid", "revision"],
    /// A receiver of events is unreachable; the watch waits for the receiver.
    WATCHER_AWAY = "watcher.away" ["action", "why"],
    /// Some events could not be sent before the process ended.
    WATCHER_LEFT = "watcher.left-over" ["action", "lines"],
    /// A receiver or hook refused an event or object as invalid, so the event or object is not sent again.
    WATCHER_REFUSED = "watcher.refused" ["action", "object", "lines", "why"],
    /// A hook did not accept an object; another attempt follows.
    WATCHER_FAILED = "watcher.failed" ["action", "object", "attempts", "why"],
    /// A hook accepted an object in none of the attempts. The hook is called again when the object changes.
    WATCHER_GAVE_UP = "watcher.gave-up" ["action", "object", "attempts", "why"],
}
