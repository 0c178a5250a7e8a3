//! The names of log events about the shared cache, each with the keys of its fields.

service_core::events! {
    /// The shared cache answers again or for the first time.
    SHARED_CACHE_FOUND = "shared-cache.found" [],
    /// The shared cache gave no answer, a late answer or an invalid answer, and gets no requests for a while.
    SHARED_CACHE_LOST = "shared-cache.lost" ["error"],
}
