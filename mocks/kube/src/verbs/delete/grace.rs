//! The grace period of a pod ("Pod Lifecycle", termination of pods).
//!
//! Decides whether a deletion waits, and how long. Only the deletion of a pod that a kubelet may have started waits.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Ending;
use mock_objects::object;

/// How a deletion changes the grace period of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grace {
    /// The object's kind has no grace period.
    None,
    /// The grace period begins with this many seconds, which may be 0.
    Begins(i64),
    /// The running grace period is shortened to this many seconds.
    Shortens(i64),
    /// The grace period has already begun, and the new deletion does not shorten it.
    Pending,
}

/// How a deletion that asks for `asked_s` seconds changes the grace period of an object.
pub(super) fn of(value: &Value, resource: &Resource, asked_s: Option<i64>) -> Grace {
    if resource.rules.ending != Ending::Graceful {
        return Grace::None;
    }
    if object::is_deleting(value) {
        let given_s = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        return match asked_s {
            _ if given_s == 0 => Grace::None,
            Some(asked_s) if asked_s < given_s => Grace::Shortens(asked_s.max(0)),
            _ => Grace::Pending,
        };
    }
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Failed" | "Succeeded") {
        return Grace::Begins(0);
    }
    let own_s = value.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    // The real server turns a negative period into one second.
    let grace_s = asked_s.or(own_s).unwrap_or(0);
    Grace::Begins(if grace_s < 0 { 1 } else { grace_s })
}

/// The time `seconds` after `from`; a negative number gives an earlier time.
pub(super) fn later(from: Timestamp, seconds: i64) -> Timestamp {
    from.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
