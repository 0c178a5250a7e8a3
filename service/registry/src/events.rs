//! The names of log events about registries, each with the keys of its fields.

service_core::events! {
    /// Changed authorities of a registry are in use.
    AUTHORITIES_REPLACED = "registry.authorities-replaced" ["file", "registry"],
    /// Changed authorities of a registry cannot be used.
    AUTHORITIES_KEPT = "registry.authorities-kept" ["file", "registry", "what"],
    /// A changed docker configuration is in use.
    DOCKER_REPLACED = "registry.docker-replaced" ["file"],
    /// A changed docker configuration cannot be used.
    DOCKER_KEPT = "registry.docker-not-replaced" ["file", "what"],
    /// A changed lock file is in use.
    LOCK_REPLACED = "registry.lock-replaced" ["file"],
    /// A changed lock file cannot be used.
    LOCK_KEPT = "registry.lock-not-replaced" ["file", "what"],
    /// The file of a password could not be read.
    PASSWORD_KEPT = "registry.password-not-read" ["file", "error"],
}
