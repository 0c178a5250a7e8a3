//! Which reviews are answered without a look at the images.
//!
//! Pure. The reasons appear in the audit log as `exempt`.

use super::review::Ask;
use super::unchanged::Stored;

/// The reason why `ask` is exempt by its request alone.
pub fn by_request(ask: &Ask<'_>) -> Option<&'static str> {
    match (&*ask.operation, ask.sub_resource.as_deref()) {
        ("CREATE" | "UPDATE", None | Some("" | "ephemeralcontainers" | "resize")) => None,
        ("CREATE" | "UPDATE", Some("status")) => Some("status update"),
        ("CREATE" | "UPDATE", Some("scale")) => Some("scale update"),
        // Bindings, evictions, tokens: none of them writes a pod spec.
        ("CREATE" | "UPDATE", Some(_)) => Some("other subresource"),
        ("DELETE", _) => Some("deletion"),
        _ => Some("other operation"),
    }
}

/// The reason why a review of an object that is stored as `stored` is exempt.
///
/// The *stored* object counts: an object that is going away must be able to lose its finalizers, while a new one could
/// carry any timestamp its writer likes.
pub fn by_stored(stored: &Stored) -> Option<&'static str> {
    stored.deleting.then_some("object is being deleted")
}
