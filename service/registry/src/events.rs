//! The events of the clients of registries, each with the keys of its context.

service_core::events! {
    /// Authorities of a registry were replaced.
    AUTHORITIES_REPLACED = "registry.authorities-replaced" ["file", "registry"],
    /// Authorities of a registry could not be replaced.
    AUTHORITIES_KEPT = "registry.authorities-kept" ["file", "registry", "what"],
    /// The docker configuration was replaced.
    DOCKER_REPLACED = "registry.docker-replaced" ["file"],
    /// The docker configuration could not be replaced.
    DOCKER_KEPT = "registry.docker-not-replaced" ["file", "what"],
    /// The digest lock was replaced.
    LOCK_REPLACED = "registry.lock-replaced" ["file"],
    /// The digest lock could not be replaced.
    LOCK_KEPT = "registry.lock-not-replaced" ["file", "what"],
    /// A password could not be read.
    PASSWORD_KEPT = "registry.password-not-read" ["file", "error"],
}
