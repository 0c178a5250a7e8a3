//! The events of the shared cache, each with the keys of its context.

service_core::events! {
    /// The shared cache answers.
    SHARED_CACHE_FOUND = "shared-cache.found" [],
    /// The shared cache gives no answer, a late one or a wrong one: it is not asked for a while.
    SHARED_CACHE_LOST = "shared-cache.lost" ["error"],
}
